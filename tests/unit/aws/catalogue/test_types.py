"""Instance types: what pods get which of them, what a node of each will hold, and what the system keeps (79 to 99)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from kerf.ec2.instance_types.catalogue import build
from kerf.model.aws.cloud import Gpu, InstanceTypeInfo, Region, Subnet
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.aws.catalogue.pods import BOUGHT, TYPE, asked, pod, row
from tests.unit.ec2.ec2_facts import SETTINGS, catalogue, claim, facts, images, info, node_class, one, ready, region
from tests.unit.ec2.fleet_requests import request

MIB, GIB = 2**20, 2**30
FLEX = "karpenter.k8s.aws/instance-capability-flex"
POD_ENI, ADDRESS = "vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/PrivateIPv4Address"


def built(*infos: InstanceTypeInfo, of: EC2NodeClass | None = None, **changes: Any) -> Catalogue:
    """The types of a region that sells these, each for a dollar."""
    names = {one.name: one for one in infos}
    sold = Region(
        "us-west-2",
        names,
        dict.fromkeys(names, frozenset({"us-west-2a"})),
        dict.fromkeys(names, 1_000_000),
        {},
        ("us-west-2a",),
    )
    return build(of or node_class(), facts(**changes), sold, SETTINGS)


# --- which types pods get ---------------------------------------------------------------------------------------
def test_079_branch_interfaces_are_had_on_types_that_can_be_trunked_only() -> None:
    wants = {POD_ENI: "1"}
    assert all(one(name).capacity[POD_ENI] > 0 for name in asked(pod(needs=wants)).types)
    t3 = [BOUGHT, row("karpenter.k8s.aws/instance-family", "In", "t3")]
    assert asked(pod(), rows=t3).types == ["t3.large", "t3.xlarge"]
    assert asked(pod(needs=wants), rows=t3).pending == ("a",)


@pytest.mark.parametrize(
    ("operator", "value", "flex"), [("In", "true", True), ("NotIn", "true", False), ("In", "false", False)]
)
def test_080_flex_types_are_distinguished_from_others(operator: str, value: str, flex: bool) -> None:
    found = asked(pod(wants=[(FLEX, operator, [value])]), rows=[BOUGHT, row(TYPE, "In", "m7i.large", "m7i-flex.large")])
    assert found.types == (["m7i-flex.large"] if flex else ["m7i.large"])


def test_081_addresses_of_windows_nodes_are_had_on_windows_nodes_only() -> None:
    wants = pod(needs={ADDRESS: "1"})
    windows = tuple(changed(i, variant="", windows_build="10.0.20348") for i in images() if i.architecture == "amd64")
    os = [BOUGHT, row(labels.OS, "In", "windows")]
    found = asked(wants, of=node_class("Windows2022"), images=windows[:1], rows=os)
    assert "m7g.large" not in found.types
    assert {one(name, node_class("Windows2022")).capacity[ADDRESS] for name in found.types} >= {9}
    assert asked(wants).pending == ("a",)


@pytest.mark.parametrize(
    ("resource", "types"),
    [
        ("nvidia.com/gpu", {"g4dn.xlarge", "p4d.24xlarge"}),
        ("aws.amazon.com/neuron", {"inf1.xlarge", "inf2.xlarge", "trn1.2xlarge"}),
        ("aws.amazon.com/neuroncore", {"inf1.xlarge", "inf2.xlarge", "trn1.2xlarge"}),
    ],
)
def test_082_devices_are_had_on_the_types_that_have_them(resource: str, types: set[str]) -> None:
    found = asked(pod(needs={resource: "1"})).types
    assert found
    assert set(found) <= types


def test_082_gpus_of_each_maker_have_a_resource_of_their_own() -> None:
    radeon = changed(info("g4dn.xlarge"), name="g4ad.xlarge", gpus=(Gpu("Radeon Pro V520", "AMD", 1, 8192),))
    gaudi = changed(info("p4d.24xlarge"), name="dl1.24xlarge", gpus=(Gpu("Gaudi HL-205", "Habana", 8, 32768),))
    types = built(info("g4dn.xlarge"), radeon, gaudi)
    for resource, name in (("amd.com/gpu", "g4ad.xlarge"), ("habana.ai/gaudi", "dl1.24xlarge")):
        assert asked(pod(needs={resource: "1"}), types=types).types == [name]
    assert asked(pod(needs={"nvidia.com/gpu": "1"}), types=types).types == ["g4dn.xlarge"]


# --- files ------------------------------------------------------------------------------------------------------
def disk(size: str) -> Any:
    return {"ephemeral-storage": size}


def test_083_with_raid0_the_instance_store_is_what_pods_write_to() -> None:
    large = [BOUGHT, row(TYPE, "In", "m6idn.32xlarge")]
    assert asked(pod(needs=disk("5000Gi")), rows=large).pending == ("a",)
    raid = node_class(instanceStorePolicy="RAID0")
    assert asked(pod(needs=disk("5000Gi")), of=raid, rows=large).types == ["m6idn.32xlarge"]
    assert one("m6idn.32xlarge", raid).capacity["ephemeral-storage"] == 7600 * 10**9


def test_084_of_the_root_volume_a_gibibyte_and_a_tenth_are_kept() -> None:
    for size in ("19Gi", "18Gi"):
        assert asked(pod(needs=disk(size))).pending == ("a",)
    for size in ("17Gi", "10Gi"):
        assert len(asked(pod(needs=disk(size))).calls) == 1
    two = asked(pod("a", needs=disk("10Gi")), pod("b", needs=disk("10Gi")))
    assert (len(two.calls), two.pending) == (2, ())


def volume(device: str, size: str | None = None, **more: Any) -> dict[str, Any]:
    return {"deviceName": device, "ebs": {"volumeSize": size} if size else {"snapshotID": "snap-1"}, **more}


@pytest.mark.parametrize(
    ("family", "mappings"),
    [
        ("AL2023", [volume("/dev/xvda", "40Gi")]),
        ("AL2", [volume("/dev/xvda", "40Gi")]),
        ("Bottlerocket", [volume("/dev/xvdb", "40Gi")]),
        ("Custom", [volume("/dev/a", "5Gi"), volume("/dev/b", "40Gi")]),
        ("AL2023", [volume("/dev/xvda", "5Gi"), volume("/dev/xvdz", "40Gi", rootVolume=True)]),
    ],
)
def test_085_a_larger_volume_holds_more(family: str, mappings: list[Any]) -> None:
    large = pod(needs=disk("25Gi"))
    assert asked(large, of=node_class(family)).pending == ("a",)
    assert asked(large, of=node_class(family, blockDeviceMappings=mappings)).call


@pytest.mark.parametrize(
    ("family", "device"),
    [("Custom", "/dev/a"), ("AL2", "/dev/xvda"), ("AL2023", "/dev/xvda"), ("Bottlerocket", "/dev/xvdb")],
)
def test_086_a_volume_without_a_size_is_taken_for_20_gibibytes(family: str, device: str) -> None:
    found = one("m5.large", node_class(family, blockDeviceMappings=[volume(device)]))
    assert found.capacity["ephemeral-storage"] == 20 * GIB


# --- pods -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "pods"), [("t3.large", 35), ("m5.large", 29), ("m6idn.32xlarge", 394)])
@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022"])
def test_087_linux_nodes_take_as_many_pods_as_their_interfaces_have_addresses(
    family: str, name: str, pods: int
) -> None:
    assert one(name, node_class(family)).capacity["pods"] == (110 if family.startswith("Windows") else pods)


def test_088_a_local_zone_is_a_zone_like_others() -> None:
    zone = "us-west-2-lax-1a"
    local = (Subnet("subnet-lax", zone, "usw2-lax1-az1", 100),)
    sold = region("m5.large", zones=(zone,))
    types = build(node_class(), facts(subnets=local), sold, SETTINGS)
    found = request(
        claim("a", (labels.ZONE, "In", [zone])), types=types, node_class=ready(node_class(), facts(subnets=local))
    )
    assert [(o.zone, o.subnet_id) for o in found.overrides] == [(zone, "subnet-lax")]


# --- what the system keeps --------------------------------------------------------------------------------------
def kept(found: InstanceType) -> dict[str, int]:
    return {key: found.capacity[key] - found.allocatable[key] for key in ("cpu", "memory", "ephemeral-storage")}


def of(name: str, family: str = "AL2023", *, settings: Settings = SETTINGS, **kubelet: Any) -> InstanceType:
    return one(name, node_class(family, kubelet=kubelet), settings)


def test_089_what_is_kept_of_a_plain_node() -> None:
    assert kept(of("m5.xlarge")) == {"cpu": 80, "memory": 993 * MIB, "ephemeral-storage": 3 * GIB}


def test_090_bottlerocket_keeps_memory_for_the_pods_it_may_take() -> None:
    assert kept(of("m5.xlarge", "Bottlerocket", maxPods=110))["memory"] == 1565 * MIB


def test_091_what_the_user_reserves_is_what_is_reserved() -> None:
    own = {"cpu": "2", "memory": "10Gi", "ephemeral-storage": "2Gi"}
    evicted = {"cpu": 0, "memory": 100 * MIB, "ephemeral-storage": 2 * GIB}
    asked_for = {"cpu": 2000, "memory": 10 * GIB, "ephemeral-storage": 2 * GIB}
    assert kept(of("m5.xlarge", kubeReserved=own)) == {key: asked_for[key] + evicted[key] for key in evicted}
    plain = kept(of("m5.xlarge"))
    assert kept(of("m5.xlarge", systemReserved=own)) == {key: asked_for[key] + plain[key] for key in plain}


@pytest.mark.parametrize(
    ("hard", "threshold"),
    [
        ({}, 100 * MIB),
        ({"memory.available": "500Mi"}, 500 * MIB),
        ({"memory.available": "10%"}, -(-15155 * MIB // 10)),
        ({"memory.available": "7%"}, -(-15155 * MIB * 7 // 100)),
        ({"memory.available": "100%"}, 0),
    ],
)
def test_092_memory_below_which_pods_are_evicted_is_kept(hard: dict[str, str], threshold: int) -> None:
    found = of("m5.xlarge", evictionHard=hard) if hard else of("m5.xlarge")
    assert kept(found)["memory"] == 893 * MIB + threshold


@pytest.mark.parametrize("soft", ["5%", "50%", "10Gi"])
@pytest.mark.parametrize("hard", [{}, {"evictionHard": {"memory.available": "1Gi"}}])
def test_093_soft_thresholds_keep_nothing(soft: str, hard: dict[str, Any]) -> None:
    grace = {"memory.available": "1m"}
    with_soft = {**hard, "evictionSoft": {"memory.available": soft}, "evictionSoftGracePeriod": grace}
    assert kept(of("m5.xlarge", **with_soft)) == kept(of("m5.xlarge", **hard))


@pytest.mark.parametrize(
    ("family", "memory"),
    [("AL2", 640), ("AL2023", 640), ("Custom", 640), ("Bottlerocket", 365), ("Windows2022", 365)],
)
def test_094_fewer_pods_need_less_memory_where_it_follows_their_number(family: str, memory: int) -> None:
    found = of("t3.large", family, maxPods=10)
    assert (found.capacity["pods"], kept(found)["memory"]) == (10, (memory + 100) * MIB)


@pytest.mark.parametrize(
    ("family", "pods", "memory"),
    [
        *((family, 24, 640) for family in ("AL2", "AL2023", "Custom")),
        ("Bottlerocket", 24, 519),
        ("Windows2022", 110, 1465),
    ],
)
def test_095_interfaces_that_are_reserved_are_not_for_pods(family: str, pods: int, memory: int) -> None:
    found = of("t3.large", family, settings=changed(SETTINGS, reserved_enis=1))
    assert (found.capacity["pods"], kept(found)["memory"]) == (pods, (memory + 100) * MIB)


def test_096_more_than_there_are_leave_no_pods() -> None:
    assert of("m5.large", settings=changed(SETTINGS, reserved_enis=1_000_000)).capacity["pods"] == 0


@pytest.mark.parametrize(
    ("family", "kubelet", "pods"),
    [
        ("AL2023", {"podsPerCore": 1}, 4),
        ("AL2", {"podsPerCore": 4, "maxPods": 20}, 16),
        ("Windows2022", {"podsPerCore": 40, "maxPods": 20}, 20),
        ("AL2023", {"podsPerCore": 0}, 58),
        ("Bottlerocket", {"podsPerCore": 1}, 58),
    ],
)
def test_097_pods_per_core_may_make_them_fewer(family: str, kubelet: dict[str, Any], pods: int) -> None:
    assert of("m5.xlarge", family, **kubelet).capacity["pods"] == pods


@pytest.mark.parametrize(
    ("name", "memory_kib", "cpu"),
    [
        ("t4g.small", 1408312, 1930),
        ("t4g.medium", 3377496, 1930),
        ("t4g.xlarge", 15136012, 3920),
        ("m5.large", 7220184, 1930),
    ],
)
def test_098_no_more_is_promised_than_was_measured(name: str, memory_kib: int, cpu: int) -> None:
    promised = one(name).allocatable
    assert promised["memory"] <= memory_kib * 1024
    assert promised["cpu"] <= cpu


def test_082_a_type_without_what_is_asked_for_is_not_named() -> None:
    assert asked(pod(needs={"nvidia.com/gpu": "1"}), types=catalogue("m5.large")).pending == ("a",)
