"""Capacity, overhead and pod counts against known figures of real types.

Pods: Amazon's published list of maximum pods; branch interfaces: the VPC resource controller's limits; the rest: worked
values of the reference and what Karpenter 1.14 wrote into the claims of a recorded cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.ec2.instance_types import branch_interfaces
from kerf.model.settings import Settings
from tests.unit.ec2.ec2_facts import SETTINGS, all_names, catalogue, info, node_class, one

MIB, GIB = 2**20, 2**30
EFA = "vpc.amazonaws.com/efa"

#: type, pods, memory MiB, cpu reserved, memory reserved by kubelet MiB, branch interfaces, devices
TYPES: list[tuple[str, int, int, int, int, int, dict[str, int]]] = [
    ("t3.nano", 4, 473, 70, 299, 0, {}),
    ("t3.micro", 4, 947, 70, 299, 0, {}),
    ("t3.small", 11, 1894, 70, 376, 0, {}),
    ("t3.medium", 17, 3788, 70, 442, 0, {}),
    ("t3.large", 35, 7577, 70, 640, 0, {}),
    ("t3.xlarge", 58, 15155, 80, 893, 0, {}),
    ("t4g.small", 11, 1835, 70, 376, 0, {}),
    ("t4g.medium", 17, 3729, 70, 442, 0, {}),
    ("t4g.xlarge", 58, 15096, 80, 893, 0, {}),
    ("m5.large", 29, 7577, 70, 574, 9, {}),
    ("m5.xlarge", 58, 15155, 80, 893, 18, {}),
    ("m5a.xlarge", 58, 15155, 80, 893, 18, {}),
    ("m5.4xlarge", 234, 60620, 110, 2829, 54, {}),
    ("m5.24xlarge", 737, 363724, 310, 8362, 107, {}),
    ("c5.18xlarge", 737, 136396, 250, 8362, 107, {}),
    ("c6a.2xlarge", 58, 15155, 90, 893, 38, {}),
    ("c6a.4xlarge", 234, 30310, 110, 2829, 54, {}),
    ("m6g.medium", 8, 3729, 60, 343, 4, {}),
    ("m7g.large", 29, 7518, 70, 574, 9, {}),
    ("m7a.medium", 8, 3788, 60, 343, 4, {}),
    ("m7i-flex.large", 29, 7577, 70, 574, 3, {}),
    ("a1.medium", 8, 1835, 60, 343, 10, {}),
    ("i3.large", 29, 14444, 70, 574, 0, {}),
    ("r5.2xlarge", 58, 60620, 90, 893, 38, {}),
    ("m6i.8xlarge", 234, 121241, 150, 2829, 84, {}),
    ("m6idn.32xlarge", 394, 484966, 390, 4589, 106, {EFA: 2}),
    ("g4dn.8xlarge", 58, 121241, 150, 893, 58, {"nvidia.com/gpu": 1, EFA: 1}),
    ("p4d.24xlarge", 737, 1091174, 310, 8362, 62, {"nvidia.com/gpu": 8, EFA: 4}),
    ("inf1.xlarge", 38, 7577, 80, 673, 38, {"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 4}),
    ("inf2.xlarge", 58, 15155, 80, 893, 18, {"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2}),
    (
        "trn1.32xlarge",
        247,
        484966,
        390,
        2972,
        82,
        {"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32, EFA: 8},
    ),
    ("m5.metal", 737, 363724, 310, 8362, 120, {}),
]


@pytest.mark.parametrize(("name", "pods", "memory", "cpu_kept", "memory_kept", "branches", "devices"), TYPES)
def test_a_real_type(
    name: str, pods: int, memory: int, cpu_kept: int, memory_kept: int, branches: int, devices: dict[str, int]
) -> None:
    found = one(name)
    expected = {
        "cpu": info(name).vcpus * 1000,
        "memory": memory * MIB,
        "ephemeral-storage": 20 * GIB,
        "pods": pods,
        **({"vpc.amazonaws.com/pod-eni": branches} if branches else {}),
        **devices,
    }
    assert dict(found.capacity) == expected
    kept = {"cpu": cpu_kept, "memory": (memory_kept + 100) * MIB, "ephemeral-storage": 3 * GIB}
    assert dict(found.allocatable) == {key: value - kept.get(key, 0) for key, value in expected.items()}


def kept(name: str, family: str = "AL2023", *, settings: Settings = SETTINGS, **kubelet: Any) -> dict[str, int]:
    found = one(name, node_class(family, kubelet=kubelet), settings)
    return {key: found.capacity[key] - found.allocatable[key] for key in ("cpu", "memory", "ephemeral-storage")}


def test_bottlerocket_reserves_memory_for_the_pods_it_takes() -> None:
    assert kept("m5.xlarge", "Bottlerocket", maxPods=110)["memory"] == 1565 * MIB


@pytest.mark.parametrize(
    ("family", "memory"),
    [("AL2", 640), ("AL2023", 640), ("Custom", 640), ("Bottlerocket", 365), ("Windows2022", 365)],
)
def test_max_pods_and_reserved_memory(family: str, memory: int) -> None:
    assert kept("t3.large", family, maxPods=10)["memory"] == (memory + 100) * MIB
    assert one("t3.large", node_class(family, kubelet={"maxPods": 10})).capacity["pods"] == 10


@pytest.mark.parametrize(
    ("family", "pods", "memory"),
    [("AL2", 24, 640), ("AL2023", 24, 640), ("Bottlerocket", 24, 519), ("Windows2022", 110, 1465)],
)
def test_reserved_interfaces(family: str, pods: int, memory: int) -> None:
    settings = replace(SETTINGS, reserved_enis=1)
    assert one("t3.large", node_class(family), settings).capacity["pods"] == pods
    assert kept("t3.large", family, settings=settings)["memory"] == (memory + 100) * MIB


def test_too_many_reserved_interfaces_leave_no_pods() -> None:
    assert one("m5.large", settings=replace(SETTINGS, reserved_enis=1_000_000)).capacity["pods"] == 0


@pytest.mark.parametrize(
    ("family", "kubelet", "pods"),
    [
        ("AL2023", {"podsPerCore": 1}, 4),
        ("AL2023", {"podsPerCore": 4, "maxPods": 20}, 16),
        ("AL2023", {"podsPerCore": 40, "maxPods": 20}, 20),
        ("AL2023", {"podsPerCore": 0}, 58),
        ("Bottlerocket", {"podsPerCore": 1}, 58),
        ("AL2023", {"maxPods": "vcpus * 10"}, 58),
    ],
)
def test_pods_per_core(family: str, kubelet: dict[str, Any], pods: int) -> None:
    assert one("m5.xlarge", node_class(family, kubelet=kubelet)).capacity["pods"] == pods


def test_what_the_user_reserves_replaces_its_default_and_adds_the_systems_share() -> None:
    own = {"cpu": "2", "memory": "10Gi", "ephemeral-storage": "2Gi"}
    assert kept("m5.xlarge", kubeReserved=own) == {
        "cpu": 2000,
        "memory": 10 * GIB + 100 * MIB,
        "ephemeral-storage": 4 * GIB,
    }
    assert kept("m5.xlarge", kubeReserved={"cpu": "2"})["memory"] == 993 * MIB
    assert kept("m5.xlarge", systemReserved={"cpu": "100m", "memory": "1Gi"}) == {
        "cpu": 180,
        "memory": (993 + 1024) * MIB,
        "ephemeral-storage": 3 * GIB,
    }


@pytest.mark.parametrize(
    ("hard", "memory"),
    [
        ({"memory.available": "500Mi"}, 500 * MIB),
        ({"memory.available": "100%"}, 0),
        ({"memory.available": "10%"}, 1589116928),
        ({"nodefs.available": "5%"}, 100 * MIB),
    ],
)
def test_eviction_thresholds(hard: dict[str, str], memory: int) -> None:
    found = kept("m5.xlarge", evictionHard=hard)
    assert found["memory"] == 893 * MIB + memory
    assert found["ephemeral-storage"] == (2 if "nodefs.available" in hard else 3) * GIB


def test_soft_eviction_keeps_nothing() -> None:
    soft: dict[str, Any] = {
        "evictionSoft": {"memory.available": "5Gi"},
        "evictionSoftGracePeriod": {"memory.available": "1m"},
    }
    assert kept("m5.xlarge", **soft) == kept("m5.xlarge")


def volume(device: str, size: str | None = None, **more: Any) -> dict[str, Any]:
    return {"deviceName": device, "ebs": {"volumeSize": size} if size else {"snapshotID": "snap-1"}, **more}


@pytest.mark.parametrize(
    ("family", "mappings", "size"),
    [
        ("AL2023", [volume("/dev/xvda", "40Gi")], 40 * GIB),
        ("AL2023", [volume("/dev/xvda", "40G")], 40 * 10**9),
        ("AL2023", [volume("/dev/xvda")], 20 * GIB),
        ("AL2023", [volume("/dev/xvdz", "40Gi")], 20 * GIB),
        ("AL2023", [volume("/dev/xvda", "40Gi"), volume("/dev/xvdz", "90Gi", rootVolume=True)], 90 * GIB),
        ("Bottlerocket", [volume("/dev/xvda", "40Gi")], 20 * GIB),
        ("Bottlerocket", [volume("/dev/xvdb", "40Gi")], 40 * GIB),
        ("Custom", [volume("/dev/a", "10Gi"), volume("/dev/b", "40Gi")], 40 * GIB),
        ("Custom", [volume("/dev/a", "10Gi"), volume("/dev/b")], 20 * GIB),
        ("Custom", [], 20 * GIB),
        ("Windows2022", [], 50 * GIB),
    ],
)
def test_ephemeral_storage(family: str, mappings: list[dict[str, Any]], size: int) -> None:
    found = one("m5.xlarge", node_class(family, blockDeviceMappings=mappings))
    assert found.capacity["ephemeral-storage"] == size


def test_instance_store_counts_with_raid0_where_there_is_one() -> None:
    raid = node_class(instanceStorePolicy="RAID0")
    assert one("m6idn.32xlarge", raid).capacity["ephemeral-storage"] == 7600 * 10**9
    assert one("m5.xlarge", raid).capacity["ephemeral-storage"] == 20 * GIB


def test_windows_nodes_count_addresses() -> None:
    assert one("m5.large", node_class("Windows2022")).capacity["vpc.amazonaws.com/PrivateIPv4Address"] == 9
    assert "vpc.amazonaws.com/PrivateIPv4Address" not in one("m5.large").capacity


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t3.large", 0),
        ("m4.large", 0),
        ("trn2.48xlarge", 0),
        ("m5.metal", 120),
        ("i4i.16xlarge", 120),
        ("m6g.8xlarge", 54),
        ("i7i.12xlarge", 84),
        ("p5.48xlarge", 120),
        ("x2iezn.4xlarge", 114),
    ],
)
def test_branch_interfaces(name: str, expected: int) -> None:
    assert branch_interfaces.capacity(info(name)) == expected


def test_every_type_of_the_region_is_sized_without_a_negative_amount() -> None:
    for found in catalogue(*all_names()):
        assert all(value >= 0 for value in found.capacity.values()), found.name
        assert found.allocatable["cpu"] > 0, found.name
