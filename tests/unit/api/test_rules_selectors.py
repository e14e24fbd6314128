"""Terms of selectors that match nothing in any account."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.lint import validate
from tests.unit.api.manifests import changed

AMI, GROUP, SUBNET = "spec.amiSelectorTerms", "spec.securityGroupSelectorTerms", "spec.subnetSelectorTerms"
RESERVATION = "spec.capacityReservationSelectorTerms"
HEX = "0123456789abcdef0"


def found(path: str, term: dict[str, Any]) -> list[tuple[str, str]]:
    manifest = changed("EC2NodeClass", path, [term])
    manifest["spec"]["amiFamily"] = "AL2023"
    return [(problem.rule, problem.severity) for problem in validate(manifest)]


@pytest.mark.parametrize(
    ("path", "term"),
    [
        (GROUP, {"id": "sg-nodes"}),
        (GROUP, {"id": "sg-0123"}),
        (GROUP, {"name": f"sg-{HEX}"}),
        (GROUP, {"name": "n" * 256}),
        (GROUP, {"tags": {"k" * 129: "*"}}),
        (SUBNET, {"id": f"subnet-{HEX}0"}),
        (SUBNET, {"tags": {"Name": "v" * 257}}),
        (AMI, {"id": "ami-latest"}),
        (AMI, {"alias": "al2023@20250505"}),
        (AMI, {"alias": "al2023@v2025"}),
        (AMI, {"alias": "al2023@newest"}),
        (AMI, {"name": "ab"}),
        (AMI, {"name": "n" * 129}),
        (AMI, {"name": "nodes-*", "owner": "our-account"}),
        (AMI, {"name": "nodes-*", "owner": "12345678901"}),
        (AMI, {"ssmParameter": "/our image"}),
        (RESERVATION, {"id": "cr-mine"}),
    ],
)
def test_a_term_that_matches_nothing_is_warned_of(path: str, term: dict[str, Any]) -> None:
    assert found(path, term) == [("KERF-EC2-219", "warning")]


@pytest.mark.parametrize(
    ("path", "term"),
    [
        (GROUP, {"id": "sg-01234567"}),
        (GROUP, {"id": f"sg-{HEX}"}),
        (GROUP, {"name": "eks-cluster-sg-prod"}),
        (GROUP, {"tags": {"aws:eks:cluster-name": "*", "k" * 128: "v" * 256}}),
        (SUBNET, {"id": f"subnet-{HEX}"}),
        (AMI, {"id": f"ami-{HEX}"}),
        (AMI, {"name": "*"}),
        (AMI, {"name": "nodes-*", "owner": "123456789012"}),
        (AMI, {"name": "nodes", "owner": "self"}),
        (AMI, {"ssmParameter": "/our/image:3"}),
        (AMI, {"ssmParameter": "arn:aws:ssm:eu-west-1:123456789012:parameter/our/image"}),
        (RESERVATION, {"id": f"cr-{HEX}"}),
    ],
)
def test_a_term_that_may_match_is_not(path: str, term: dict[str, Any]) -> None:
    assert found(path, term) == []
