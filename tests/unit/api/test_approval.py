"""Annotations and setting of approval, and the digest of a plan."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf_api import approval, labels
from kerf_api.approval import OFF, ON, PlanFirst
from kerf_api.defaulting import default
from kerf_api.v1 import plan_digest
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from kerf_api.v1.plan_digest import Parts

from .manifests import BASES, placed

DAY = PlanFirst(True, timedelta(days=1))
DIGEST = "0123456789abcdef0123"


@pytest.mark.parametrize(("text", "found"), [("true", ON), ("false", OFF), ("24h", DAY)])
def test_plan_first_is_read_as_written(text: str, found: PlanFirst) -> None:
    assert approval.plan_first(text) == found
    assert approval.plan_first(str(found)) == found


@pytest.mark.parametrize("text", ["", "yes", "True", "0s", "1d", "-1h", "Never"])
def test_another_text_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(ValueError, match="must be true, false, or the longest time"):
        approval.plan_first(text)


@pytest.mark.parametrize(
    ("pool", "node_class", "setting", "found"),
    [
        ({}, {}, OFF, OFF),
        ({}, {}, DAY, DAY),
        ({}, {labels.PLAN_FIRST: "true"}, DAY, ON),
        ({labels.PLAN_FIRST: "24h"}, {labels.PLAN_FIRST: "true"}, OFF, DAY),
        ({labels.PLAN_FIRST: "false"}, {labels.PLAN_FIRST: "true"}, DAY, OFF),
        ({labels.PLAN_FIRST: "fasle"}, {}, OFF, ON),
        ({}, {labels.PLAN_FIRST: "24"}, OFF, ON),
    ],
)
def test_the_nodepool_comes_before_its_class_and_that_before_the_setting(
    pool: dict[str, str], node_class: dict[str, str], setting: PlanFirst, found: PlanFirst
) -> None:
    assert approval.of(pool, node_class, setting) == found


def test_faults_name_the_annotation_and_the_valid_form() -> None:
    notes = {labels.PLAN_FIRST: "soon", labels.APPROVED_PLAN: "all"}
    assert [key for key, _ in approval.faults("NodePool", notes)] == [labels.PLAN_FIRST, labels.APPROVED_PLAN]
    assert [key for key, _ in approval.faults("EC2NodeClass", notes)] == [labels.PLAN_FIRST]
    assert not [*approval.faults("NodePool", {labels.PLAN_FIRST: "1h", labels.APPROVED_PLAN: DIGEST})]


@pytest.mark.parametrize(
    ("pool", "node_class", "minutes"),
    [
        ({}, {}, 5),
        ({}, {labels.CANARY_SOAK: "1h"}, 60),
        ({labels.CANARY_SOAK: "0s"}, {labels.CANARY_SOAK: "1h"}, 0),
        ({labels.CANARY_SOAK: "soon"}, {labels.CANARY_SOAK: "1h"}, 10),
        ({labels.CANARY_SOAK: ""}, {}, 10),
    ],
)
def test_an_invalid_soak_time_is_no_way_around_the_canary(
    pool: dict[str, str], node_class: dict[str, str], minutes: int
) -> None:
    assert approval.soak_of(pool, node_class, timedelta(minutes=5)) == timedelta(minutes=minutes)


# --- the digest -------------------------------------------------------------------------------------------------
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "web"}},
    "spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        ],
        "taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}],
    },
}


def of_pool(**changes: Any) -> str:
    manifest: dict[str, Any] = placed(BASES["NodePool"], "spec", {"template": TEMPLATE})
    for path, value in changes.items():
        manifest = placed(manifest, path.replace("__", "."), value)
    return plan_digest.of_pool(decode(NodePool, default(manifest)))


def of_class(**changes: Any) -> str:
    manifest: dict[str, Any] = BASES["EC2NodeClass"]
    for path, value in changes.items():
        manifest = placed(manifest, path.replace("__", "."), value)
    return plan_digest.of_class(decode(EC2NodeClass, default(manifest)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec__template__metadata__labels", {"team": "shop"}),
        ("spec__template__metadata__annotations", {"a": "b"}),
        ("spec__template__spec__requirements", TEMPLATE["spec"]["requirements"][:1]),
        ("spec__template__spec__taints", []),
        ("spec__template__spec__expireAfter", "24h"),
        ("spec__template__spec__nodeClassRef__name", "other"),
        ("spec__disruption__consolidateAfter", "1h"),
        ("spec__disruption__consolidationPolicy", "WhenEmpty"),
    ],
)
def test_a_change_that_may_replace_nodes_is_another_digest(path: str, value: Any) -> None:
    assert of_pool(**{path: value}) != of_pool()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec__limits", {"cpu": "100"}),
        ("spec__weight", 10),
        ("spec__disruption__budgets", [{"nodes": "0"}]),
        ("spec__template__spec__requirements", TEMPLATE["spec"]["requirements"][::-1]),
        ("spec__template__spec__taints", TEMPLATE["spec"]["taints"][::-1]),
        ("spec__template__spec__expireAfter", "720h"),
        ("metadata__annotations", {labels.APPROVED_PLAN: DIGEST}),
        ("metadata__labels", {"a": "b"}),
    ],
)
def test_what_replaces_no_node_is_the_same_digest(path: str, value: Any) -> None:
    assert of_pool(**{path: value}) == of_pool()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec__userData", "#!/bin/bash"),
        ("spec__tags", {"a": "b"}),
        ("spec__amiSelectorTerms", [{"alias": "al2023@v20240807"}]),
        ("spec__subnetSelectorTerms", [{"id": "subnet-1"}]),
        ("spec__kubelet", {"clusterDNS": ["10.0.0.1", "10.0.0.2"]}),
    ],
)
def test_a_change_of_the_class_is_another_digest(path: str, value: Any) -> None:
    assert of_class(**{path: value}) != of_class()


def test_the_order_of_kubelet_lists_matters() -> None:
    one, other = (
        of_class(spec__kubelet={"clusterDNS": dns}) for dns in (["10.0.0.1", "10.0.0.2"], ["10.0.0.2", "10.0.0.1"])
    )
    assert one != other


def test_images_count_as_a_set() -> None:
    assert plan_digest.of_images(["ami-1", "ami-2"]) == plan_digest.of_images(["ami-2", "ami-1", "ami-1"])
    assert plan_digest.of_images(["ami-1"]) != plan_digest.of_images(["ami-2"])


def test_each_part_is_in_the_digest_and_named_when_it_changes() -> None:
    parts = Parts(node_pool="a", node_class="b", images="c")
    others = [Parts(node_pool="x", node_class="b", images="c"), Parts(node_pool="a", node_class="x", images="c")]
    others.append(Parts(node_pool="a", node_class="b", images="x"))
    assert len({parts.digest, *(other.digest for other in others)}) == 4
    assert [other.changed_since(parts) for other in others] == [
        ("spec of the NodePool",),
        ("spec of the EC2NodeClass",),
        ("images",),
    ]


def test_the_digest_is_the_same_in_every_version() -> None:
    """Recorded values: when they change, all NodePools wait for approval after an upgrade of Kerf."""
    images = plan_digest.of_images(["ami-1"])
    parts = Parts(node_pool=of_pool(), node_class=of_class(), images=images)
    assert (parts.node_pool, parts.node_class, parts.images) == (
        "073f00f959fbcef38921",
        "4e1f2d4954e71e576bda",
        "2fa750fba7379b98e600",
    )
    assert parts.digest == "dd28baf5b28800e1457a"
    assert approval.digest(parts.digest) == parts.digest
