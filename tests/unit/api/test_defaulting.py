"""Defaulting is the API server's: examples, and laws on many manifests."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api.defaulting import default, patch

from .manifests import BASES, EC2NODECLASS, NODECLAIM, NODEPOOL, changed


def test_a_nodepool_gets_all_its_defaults() -> None:
    bare = copy.deepcopy(NODEPOOL)
    del bare["spec"]["disruption"]
    del bare["spec"]["template"]["spec"]["terminationGracePeriod"]
    spec = default(bare)["spec"]
    assert spec["template"]["spec"]["expireAfter"] == "720h"
    assert spec["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    assert "weight" not in spec
    assert "terminationGracePeriod" not in spec["template"]["spec"]


@pytest.mark.parametrize(
    ("disruption", "expected"),
    [
        ({}, {"consolidateAfter": "0s", "budgets": [{"nodes": "10%"}]}),
        (None, {"consolidateAfter": "0s", "budgets": [{"nodes": "10%"}]}),
        ({"budgets": []}, {"consolidateAfter": "0s", "budgets": []}),
        ({"budgets": [{"reasons": ["Empty"]}]}, {"budgets": [{"reasons": ["Empty"], "nodes": "10%"}]}),
        ({"consolidateAfter": "Never", "budgets": None}, {"consolidateAfter": "Never", "budgets": [{"nodes": "10%"}]}),
    ],
)
def test_disruption_is_defaulted_field_by_field(disruption: Any, expected: dict[str, Any]) -> None:
    found = default(changed("NodePool", "spec.disruption", disruption))["spec"]["disruption"]
    assert found | expected == found


def test_a_nodeclaim_expires_and_a_class_hides_its_metadata() -> None:
    assert default(NODECLAIM)["spec"]["expireAfter"] == "720h"
    found = default(changed("EC2NodeClass", "spec.metadataOptions", {"httpTokens": "optional"}))["spec"][
        "metadataOptions"
    ]
    assert found == {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "optional",
    }
    assert default({key: EC2NODECLASS[key] for key in ("apiVersion", "kind", "metadata")}).keys() == {
        "apiVersion",
        "kind",
        "metadata",
    }


def test_status_is_defaulted_only_where_there_is_one() -> None:
    assert "status" not in default(NODEPOOL)
    assert default({**NODEPOOL, "status": {}})["status"] == {"nodes": 0}
    reservation = {"status": {"capacityReservations": [{"id": "cr-1"}]}}
    assert default({**EC2NODECLASS, **reservation})["status"]["capacityReservations"] == [
        {"id": "cr-1", "reservationType": "default", "state": "active"}
    ]


def test_null_is_dropped_from_maps_and_kept_in_lists() -> None:
    assert "weight" not in default(changed("NodePool", "spec.weight", None))["spec"]
    assert default(changed("NodePool", "spec.limits", {"cpu": None}))["spec"]["limits"] == {}
    values = default(changed("NodePool", "R.values", [None]))["spec"]["template"]["spec"]["requirements"][0]["values"]
    assert values == [None]


def test_the_patch_is_minimal() -> None:
    whole = default(NODEPOOL)
    assert patch(whole) == []
    del whole["spec"]["disruption"]["budgets"][0]["nodes"]
    assert patch(whole) == [{"op": "add", "path": "/spec/disruption/budgets/0/nodes", "value": "10%"}]


def test_other_kinds_are_copied_as_they_are() -> None:
    other = {"apiVersion": "v1", "kind": "Pod", "spec": {"x": [None, {"y": None}]}}
    assert default(other) == other
    assert patch(other) == []


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS = {
    "NodePool": ["spec.disruption", "spec.limits", "spec.template.spec", "spec.template.metadata", "status", "spec"],
    "NodeClaim": ["spec.resources", "spec.expireAfter", "status", "metadata.labels", "spec.requirements"],
    "EC2NodeClass": ["spec.metadataOptions", "spec.kubelet", "status", "spec.tags", "spec.blockDeviceMappings"],
    "NodeOverlay": ["spec", "spec.requirements", "spec.capacity", "spec.price", "spec.priceAdjustment", "status"],
    "CapacityBuffer": ["spec", "spec.scalableRef", "spec.podTemplateRef", "spec.limits", "metadata", "status"],
}
known = st.sampled_from(
    ["budgets", "nodes", "consolidateAfter", "expireAfter", "httpTokens", "capacityReservations", "a/b~c"]
)
likely = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(known, inner, max_size=3), max_leaves=8
)
manifests = st.sampled_from(sorted(BASES)).flatmap(
    lambda kind: st.builds(changed, st.just(kind), st.sampled_from(FIELDS[kind]), anything | likely)
)


@given(manifests)
def test_defaulting_twice_is_defaulting_once(manifest: dict[str, Any]) -> None:
    once = default(manifest)
    assert default(once) == once
    assert patch(once) == []


@given(manifests)
def test_applying_the_patch_is_defaulting(manifest: dict[str, Any]) -> None:
    before = copy.deepcopy(manifest)
    assert jsonpatch.apply_patch(manifest, patch(manifest)) == default(manifest)
    assert manifest == before
