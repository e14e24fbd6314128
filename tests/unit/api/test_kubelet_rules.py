"""Which kubelet maps can be used, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api import lint
from kerf_api.kubelet import rules

from .manifests import BASES, placed

INVALID = "InvalidKubeletConfiguration"


def reason(map_: dict[str, Any], family: str = "AL2023") -> str | None:
    found = rules.problem(map_, family)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    "map_",
    [
        {},
        {"maxPods": 0, "podsPerCore": 0, "clusterDNS": ["10.0.0.1", "10.0.0.2"]},
        {"kubeReserved": {"cpu": "100m", "memory": "1Gi", "ephemeral-storage": "1Gi", "pid": "100"}},
        {"evictionHard": {"memory.available": "5%", "nodefs.available": "1Gi", "pid.available": "0%"}},
        {"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"}},
        {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 70},
        {"featureGates": {"A": True}, "shutdownGracePeriod": "30s", "memoryThrottlingFactor": 0.9},
        {"authentication": {"anonymous": {"enabled": False}}, "logging": {"flushFrequency": 5, "verbosity": 2}},
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}], "tlsCurvePreferences": [1]},
    ],
)
def test_good_maps(map_: dict[str, Any]) -> None:
    assert reason(map_) is None


@pytest.mark.parametrize(
    "map_",
    [
        {"maxPods": None, "podsPerCore": None, "imageGCHighThresholdPercent": None, "cpuCFSQuota": None},
        {"evictionHard": None, "kubeReserved": {"cpu": None}, "clusterDNS": None, "registerWithTaints": None},
        {"evictionSoft": {"memory.available": None}, "evictionHard": {"memory.available": None}},
        {"authentication": {"webhook": {"cacheTTL": None}}, "reservedMemory": [{"numaNode": 0, "limits": None}]},
    ],
)
@pytest.mark.parametrize("family", ["AL2023", "Custom"])
def test_a_null_is_an_absent_field(map_: dict[str, Any], family: str) -> None:
    assert rules.problem(map_, family) is None


@pytest.mark.parametrize("family", ["AL2", "Bottlerocket", "Windows2022"])
def test_a_null_of_a_field_that_a_family_does_not_carry_is_absent_too(family: str) -> None:
    assert rules.problem({"podsPerCore": None, "cpuManagerPolicy": None, "nope": None}, family) is None


def test_a_null_is_no_expression_and_no_item_of_a_list() -> None:
    assert rules.formulas({"maxPods": None, "kubeReserved": {"cpu": None}}) == []
    assert rules.problem({"clusterDNS": [None]}, "AL2023") == (INVALID, "clusterDNS[0] must be a string")


@pytest.mark.parametrize(
    ("map_", "words"),
    [
        ({"nope": 1}, "unknown field nope"),
        ({"MaxPods": 1}, "unknown field MaxPods"),
        ({"maxPods": 1.5}, "maxPods must be an int32"),
        ({"maxPods": True}, "maxPods must be an int32"),
        ({"port": 2**31}, "port must be an int32"),
        ({"cpuCFSQuota": "true"}, "cpuCFSQuota must be a bool"),
        ({"clusterDNS": "10.0.0.1"}, "clusterDNS must be a list"),
        ({"clusterDNS": [1]}, "clusterDNS[0] must be a string"),
        ({"kubeReserved": ["cpu"]}, "kubeReserved must be an object"),
        ({"kubeReserved": {"cpu": 1}}, "kubeReserved.cpu must be a string"),
        ({"syncFrequency": "soon"}, "syncFrequency must be a duration"),
        ({"authentication": {"webhook": {"nope": 1}}}, "unknown field authentication.webhook.nope"),
        ({"registerWithTaints": []}, "registerWithTaints may not be set"),
        ({"evictionHard": {"memory": "5%"}}, "unknown signal memory"),
        ({"evictionHard": {"memory.available": "101%"}}, "evictionHard.memory.available"),
        ({"evictionHard": {"memory.available": "-1Gi"}}, "evictionHard.memory.available"),
        ({"evictionHard": {"memory.available": "much"}}, "evictionHard.memory.available"),
        ({"evictionSoft": {"memory.available": "5%"}}, "must have the same keys"),
        (
            {"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "-1m"}},
            "is no duration",
        ),
        ({"kubeReserved": {"gpu": "1"}}, "unknown resource gpu"),
        ({"systemReserved": {"cpu": "-1"}}, "must not be negative"),
        ({"imageGCHighThresholdPercent": 101}, "from 0 to 100"),
        ({"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}, "must be greater"),
        ({"maxPods": -1}, "maxPods must not be negative"),
        ({"podsPerCore": -1}, "podsPerCore must not be negative"),
    ],
)
def test_bad_maps(map_: dict[str, Any], words: str) -> None:
    found = rules.problem(map_, "AL2023")
    assert found is not None
    assert found[0] == INVALID
    assert words in found[1]


def test_a_wrong_type_is_reported_alone_and_senseless_values_together() -> None:
    both = rules.problem({"nope": 1, "maxPods": -1}, "AL2023")
    assert both == (INVALID, "unknown field nope")
    two = rules.problem({"maxPods": -1, "podsPerCore": -1}, "AL2023")
    assert two == (INVALID, "podsPerCore must not be negative; maxPods must not be negative")


@pytest.mark.parametrize("map_", [{"maxPods": "vcpus * 4"}, {"kubeReserved": {"cpu": "vcpus"}}])
def test_expressions_are_not_enabled(map_: dict[str, Any]) -> None:
    assert reason(map_) == "KubeletExpressionsDisabled"


EXPRESSIONS = {
    "maxPods": "vcpus * 4",
    "kubeReserved": {"cpu": "vcpus", "memory": "1Gi"},
    "systemReserved": {"pid": "1+1"},
}


def test_where_there_are_expressions_max_pods_first() -> None:
    assert rules.formulas(EXPRESSIONS) == [
        (("maxPods",), "vcpus * 4"),
        (("kubeReserved", "cpu"), "vcpus"),
        (("systemReserved", "pid"), "1+1"),
    ]
    assert rules.formulas({"maxPods": 4, "kubeReserved": {"cpu": "5e3"}}) == []
    assert rules.formulas({"maxPods": "4"}) == [(("maxPods",), "4")]
    assert rules.formulas({"kubeReserved": {"gpu": "vcpus"}}) == rules.formulas(None) == []


def test_where_they_are_allowed_each_that_cannot_be_right_is_told() -> None:
    assert rules.problem(EXPRESSIONS, "AL2023", allowed=True) is None
    two = rules.problem({"maxPods": "cores", "kubeReserved": {"cpu": "1 +"}}, "AL2023", allowed=True)
    assert two is not None
    assert two[0] == "KubeletExpressionInvalid"
    assert "maxPods: 'cores' asks for cores" in two[1]
    assert "; kubeReserved.cpu: '1 +' cannot be read: column 4" in two[1]


@pytest.mark.parametrize(
    ("map_", "reason_"),
    [
        ({"nope": 1, "maxPods": "1 +"}, INVALID),
        ({"podsPerCore": -1, "maxPods": "1 +"}, INVALID),
        ({"podsPerCore": "vcpus"}, INVALID),
        ({"evictionHard": {"memory.available": "memory_mib / 20"}}, INVALID),
        ({"kubeReserved": {"cpu": "-vcpus"}}, INVALID),
        ({"cpuManagerPolicy": "static", "maxPods": "1 +"}, "KubeletExpressionInvalid"),
        ({"cpuManagerPolicy": "static", "maxPods": "1 + 1"}, "UnsupportedKubeletConfiguration"),
    ],
)
def test_the_first_check_that_fails_is_told(map_: dict[str, Any], reason_: str) -> None:
    found = rules.problem(map_, "AL2", allowed=True)
    assert found is not None
    assert found[0] == reason_


def said(map_: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    found = lint.validate(placed(BASES["EC2NodeClass"], "spec.kubelet", map_))
    return [(p.severity, p.rule, p.path, p.message, p.hint) for p in found]


def test_the_linter_takes_expressions_and_says_that_they_need_a_gate() -> None:
    gate = "is an expression, and those need the feature gate NodeClassCEL"
    assert said({"maxPods": "vcpus * 8", "kubeReserved": {"cpu": "60 + vcpus"}}) == [
        (
            "warning",
            "KERF-EC2-215",
            f"spec.kubelet.{place}",
            f"{place} {gate}",
            "open it (AWS_FEATURE_GATES), or write a number",
        )
        for place in ("kubeReserved.cpu", "maxPods")
    ]
    ((*_, hint),) = said({"maxPods": "110"})
    assert hint == "write 110, without quotes"
    assert said({"maxPods": 110}) == []


def test_the_linter_names_the_place_in_an_expression_and_what_there_is() -> None:
    ((severity, rule, path, message, hint),) = said({"kubeReserved": {"cpu": "60 + vcpu"}})
    assert (severity, rule, path) == ("error", "KERF-EC2-105", "spec.kubelet.kubeReserved.cpu")
    assert message.startswith("kubeReserved.cpu: '60 + vcpu' asks for vcpu; allowed variables: vcpus, memory_mib")
    assert "min(vcpus * 8, 110)" in hint


@pytest.mark.parametrize(
    ("family", "map_", "expected"),
    [
        ("AL2", {"podsPerCore": 2, "maxPods": 10, "clusterDNS": ["10.0.0.1"]}, None),
        ("Bottlerocket", {"podsPerCore": 2}, "UnsupportedKubeletConfiguration"),
        ("Bottlerocket", {"maxPods": 2}, None),
        ("AL2", {"cpuManagerPolicy": "static"}, "UnsupportedKubeletConfiguration"),
        ("Windows2022", {"clusterDNS": ["10.0.0.1", "10.0.0.2"]}, "UnsupportedKubeletConfiguration"),
        ("Custom", {"cpuManagerPolicy": "static", "clusterDNS": ["10.0.0.1", "10.0.0.2"]}, None),
    ],
)
def test_what_a_family_can_carry(family: str, map_: dict[str, Any], expected: str | None) -> None:
    assert reason(map_, family) == expected
