"""Messages about selectors that match nothing: Karpenter's text first, then the terms."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.ec2.nodeclass import unmatched
from tests.unit.ec2.ec2_facts import node_class


@pytest.mark.parametrize(
    ("condition", "spec", "message"),
    [
        (
            "SecurityGroupsReady",
            {"securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "nobody", "a": "*"}}]},
            "SecurityGroupSelector did not match any SecurityGroups: "
            "securityGroupSelectorTerms: tag a=*, tag karpenter.sh/discovery=nobody",
        ),
        (
            "SubnetsReady",
            {"subnetSelectorTerms": [{"id": f"subnet-{n}"} for n in range(5)]},
            "SubnetSelector did not match any Subnets: "
            "subnetSelectorTerms: id subnet-0 or id subnet-1 or id subnet-2 or 2 more",
        ),
        (
            "AMIsReady",
            {"amiSelectorTerms": [{"name": "nodes-*", "owner": "self"}, {"ssmParameter": "/our/image"}]},
            "AMISelector did not match any AMIs: amiSelectorTerms: name nodes-*, owner self or ssmParameter /our/image",
        ),
    ],
)
def test_the_terms_are_named(condition: str, spec: dict[str, Any], message: str) -> None:
    assert unmatched.problem(condition, node_class(**spec))[1] == message


def test_a_long_selector_is_cut() -> None:
    terms = [{"tags": {f"{n}" * 100: "v" * 200 for n in range(3)}} for _ in range(30)]
    assert len(unmatched.problem("SubnetsReady", node_class(subnetSelectorTerms=terms))[1]) < 1000


def test_a_placement_group_is_named() -> None:
    of = node_class(placementGroupSelector={"name": "close"})
    reason, message = unmatched.placement_group(of)
    assert reason == "PlacementGroupNotFound"
    assert message.endswith(": placementGroupSelector: name close")
