"""Values of the right type with which a kubelet stops at its start.

Source: Kubernetes 1.36, validation.go and helpers.go of the kubelet.
"""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.kubelet import rules

SIGNAL = "memory.available"
ZERO = "must be greater than 0; 0% turns the signal off"


def faults(map_: dict[str, Any], family: str = "AL2023") -> list[tuple[str, str]]:
    return [(rules.written(fault.steps), fault.words) for fault in rules.faults(map_, family)]


@pytest.mark.parametrize("family", ["AL2023", "AL2", "Bottlerocket", "Windows2022"])
@pytest.mark.parametrize("text", ["0", "0Mi", "0.0Gi", "+0"])
def test_a_threshold_of_no_quantity_is_refused(family: str, text: str) -> None:
    assert faults({"evictionHard": {SIGNAL: text}}, family) == [
        (f"evictionHard.{SIGNAL}", f"evictionHard.{SIGNAL}: {text!r} {ZERO}")
    ]
    soft = {"evictionSoft": {SIGNAL: text}, "evictionSoftGracePeriod": {SIGNAL: "1m"}}
    assert faults(soft, family) == [(f"evictionSoft.{SIGNAL}", f"evictionSoft.{SIGNAL}: {text!r} {ZERO}")]


@pytest.mark.parametrize(
    "map_",
    [
        {"evictionHard": {SIGNAL: "0%", "nodefs.available": "100%", "pid.available": "1", "nodefs.inodesFree": "0.5%"}},
        {"evictionMinimumReclaim": {SIGNAL: "0", "nodefs.available": "1%"}},
        {"imageGCHighThresholdPercent": 81},
        {"imageGCLowThresholdPercent": 84},
        {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 40},
        {"oomScoreAdj": -1000, "nodeStatusMaxImages": -1, "maxOpenFiles": 0, "eventRecordQPS": 0, "port": 10250},
        {
            "containerLogMaxFiles": 2,
            "containerLogMaxWorkers": 1,
            "containerLogMaxSize": "50Mi",
            "maxParallelImagePulls": 1,
        },
        {"maxParallelImagePulls": 5},
        {"maxParallelImagePulls": 5, "serializeImagePulls": False},
        {"maxParallelImagePulls": 1, "serializeImagePulls": True},
        {"topologyManagerPolicy": "best-effort", "topologyManagerScope": "pod", "cpuManagerPolicy": "static"},
        {"topologyManagerPolicy": "", "cpuManagerPolicy": "", "memoryManagerPolicy": "Static", "hairpinMode": "none"},
        {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "30s"},
        {"shutdownGracePeriod": "0s", "shutdownGracePeriodCriticalPods": "0"},
        {"shutdownGracePeriodCriticalPods": "10s"},  # the image may set the other one
        {"registerNode": True, "providerID": ""},
        {"clusterDNS": ["10.100.0.10", "fd00:ec2::a"]},
        {"clusterDNS": ["10.0.0.10", "kube-dns"]},  # it passes over the second
    ],
)
def test_with_these_a_kubelet_starts(map_: dict[str, Any]) -> None:
    assert faults(map_) == []


@pytest.mark.parametrize(
    ("map_", "place", "words"),
    [
        ({"evictionMinimumReclaim": {SIGNAL: "0%"}}, f"evictionMinimumReclaim.{SIGNAL}", "greater than 0%; remove it"),
        ({"imageGCHighThresholdPercent": 80}, "imageGCHighThresholdPercent", "LowThresholdPercent, by default 80"),
        ({"imageGCLowThresholdPercent": 85}, "imageGCLowThresholdPercent", "HighThresholdPercent, by default 85"),
        ({"oomScoreAdj": 1001}, "oomScoreAdj", "must be from -1000 to 1000"),
        ({"eventRecordQPS": -1}, "eventRecordQPS", "must be 0 or more"),
        ({"maxOpenFiles": -1}, "maxOpenFiles", "must be 0 or more"),
        ({"nodeStatusMaxImages": -2}, "nodeStatusMaxImages", "must be -1 or more"),
        ({"containerLogMaxFiles": 1}, "containerLogMaxFiles", "must be 2 or more"),
        ({"containerLogMaxSize": "lots"}, "containerLogMaxSize", "must be a quantity"),
        ({"readOnlyPort": 65536}, "readOnlyPort", "from 0 to 65535"),
        (
            {"maxParallelImagePulls": 5, "serializeImagePulls": True},
            "maxParallelImagePulls",
            "serializeImagePulls: false",
        ),
        ({"maxParallelImagePulls": 0}, "maxParallelImagePulls", "must be 1 or more"),
        ({"cpuManagerPolicy": "Static"}, "cpuManagerPolicy", "must be one of none, static"),
        ({"memoryManagerPolicy": "static"}, "memoryManagerPolicy", "must be one of None, Static"),
        ({"topologyManagerPolicy": "bestEffort"}, "topologyManagerPolicy", "none, best-effort, restricted"),
        ({"topologyManagerScope": "node"}, "topologyManagerScope", "must be one of container, pod"),
        (
            {"shutdownGracePeriod": "10s", "shutdownGracePeriodCriticalPods": "20s"},
            "shutdownGracePeriodCriticalPods",
            "must not be longer than shutdownGracePeriod",
        ),
        ({"shutdownGracePeriod": "300ms"}, "shutdownGracePeriod", "must be 0s, or 1s or more"),
        ({"shutdownGracePeriod": "-10s"}, "shutdownGracePeriod", "must be 0s, or 1s or more"),
        ({"registerNode": False}, "registerNode", "must not be false"),
        ({"clusterDNS": ["kube-dns"]}, "clusterDNS[0]", "must be an IP address, not 'kube-dns'"),
        ({"clusterDNS": [""]}, "clusterDNS[0]", "must be an IP address, not ''"),
        ({"clusterDNS": ["fe80::1%eth0"]}, "clusterDNS[0]", "must be an IP address"),
        ({"providerID": "aws:///us-east-1a/i-1"}, "providerID", "must not be set"),
    ],
)
def test_with_these_a_kubelet_stops_or_its_node_never_joins(map_: dict[str, Any], place: str, words: str) -> None:
    ((found, text),) = faults(map_)
    assert found == place
    assert words in text
    assert faults(map_, "Custom") == []  # the user's own user data start that kubelet
    problem = rules.problem(map_, "AL2023")
    assert problem == ("InvalidKubeletConfiguration", text)


@pytest.mark.parametrize("field", ["imageGCHighThresholdPercent", "imageGCLowThresholdPercent"])
@pytest.mark.parametrize("value", [-1, 101])
def test_a_percentage_out_of_bounds_has_one_fault(field: str, value: int) -> None:
    assert faults({field: value}) == [(field, f"{field} must be from 0 to 100")]
