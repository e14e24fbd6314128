"""Launch templates: what is in them, and which launches share one (121 to 157, user data apart)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.launch.fleets import parameters
from kerf.aws.launch.launch_templates import template_data
from kerf.ec2.launch import fleet
from kerf.model.aws.cloud import ClusterFacts, FleetRequest, Image, LaunchTemplate
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import CLUSTER, SETTINGS, ZONES, catalogue, claim, facts, images, node_class, ready
from tests.unit.ec2.fleet_requests import BOTH, CAPACITY_TYPE, CLASS, GENERIC, names, problem, request, typed
from tests.unit.ec2.test_fleet_reservations import held
from tests.unit.ec2.test_nodeclass import status, verdict

LARGE = typed("m5.large")
IPV6 = changed(CLUSTER, dns_ip="fd00::a")


def template(
    one: NodeClaim | None = None,
    family: str = "AL2023",
    *,
    cluster: ClusterFacts = CLUSTER,
    settings: Settings = SETTINGS,
    **spec: Any,
) -> LaunchTemplate:
    """The only template of a launch of an m5.large from a class of this spec."""
    of = ready(node_class(family, **spec))
    types = catalogue("c5.large", "m5.large", of=of, settings=settings)
    found = request(one or claim("a", LARGE), types=types, node_class=of, cluster=cluster, settings=settings)
    (made,) = found.templates
    return made


def data(*args: Any, region: str = "us-west-2", **changes: Any) -> dict[str, Any]:
    """As CreateLaunchTemplate gets it."""
    return template_data(template(*args, **changes), region)


def interface(**changes: Any) -> dict[str, Any]:
    (only,) = data(**changes)["NetworkInterfaces"]
    return dict(only)


# --- which launches share one -----------------------------------------------------------------------------------
def test_122_classes_that_differ_by_name_only_have_templates_of_their_own() -> None:
    renamed = replace(CLASS, metadata=replace(CLASS.metadata, name="other"))
    one = claim("a", LARGE)
    assert request(one, node_class=renamed).templates[0].name != request(one).templates[0].name


def test_123_without_an_instance_profile_nothing_is_launched() -> None:
    found = problem(node_class=replace(CLASS, status=replace(CLASS.status, instance_profile="")))
    assert (found.kind, "instance profile" in found.message) == (fleet.NOT_READY, True)


def test_124_the_users_instance_profile_is_in_it() -> None:
    assert data(role=None, instanceProfile="mine")["IamInstanceProfile"] == {"Name": "mine"}


def test_125_the_order_of_what_is_asked_for_changes_no_name() -> None:
    rows = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
    straight = template(claim("a", LARGE, BOTH, labels={"x": "1", "y": "2"}, requests={"cpu": "1", "memory": "1Gi"}))
    turned = template(claim("b", BOTH, LARGE, labels={"y": "2", "x": "1"}, requests={"memory": "1Gi", "cpu": "1"}))
    assert straight.name == turned.name
    assert template(claim("a", LARGE, taints=rows)).name == template(claim("b", LARGE, taints=rows)).name


@pytest.mark.parametrize(
    "spec",
    [
        {"associatePublicIPAddress": True},
        {"detailedMonitoring": True},
        {"ipPrefixCount": 1},
        {"tags": {"a": "b"}},
        {"metadataOptions": {"httpTokens": "optional"}},
        {"connectionTracking": {"udpTimeout": 45}},
        {"cpuOptions": {"nestedVirtualization": "disabled"}},
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "30Gi"}}]},
        {"instanceStorePolicy": "RAID0"},
        {"userData": "#!/bin/bash"},
        {"family": "Bottlerocket"},
        {"kubelet": {"maxPods": 10}},
        {"kubelet": {"cpuManagerPolicy": "static"}},
        {"kubelet": {"kubeReserved": {"cpu": "1"}}},
        {"cluster": changed(CLUSTER, endpoint="https://other.example")},
        {"cluster": changed(CLUSTER, ca_bundle="b3RoZXI=")},
        {"cluster": IPV6},
        {"one": claim("a", LARGE, labels={"x": "y"})},
        {"one": claim("a", LARGE, taints=[{"key": "a", "effect": "NoSchedule"}])},
        {"one": claim("a", LARGE, (CAPACITY_TYPE, "In", ["spot"]))},
    ],
)
def test_126_what_makes_another_machine_makes_another_name(spec: dict[str, Any]) -> None:
    assert template(**spec).name != template().name


def test_126_another_list_of_types_makes_no_other() -> None:
    assert template(claim("a", typed("m5.large", "c5.large"))).name == template().name


def test_127_tags_are_on_all_that_a_launch_makes() -> None:
    own = {"Key": "team", "Value": "platform"}
    for kind in ("on-demand", "spot"):
        found = request(
            claim("a", LARGE, (CAPACITY_TYPE, "In", [kind])), node_class=ready(node_class(tags={"team": "platform"}))
        )
        by_fleet = {row["ResourceType"]: row["Tags"] for row in parameters(found)["TagSpecifications"]}
        by_template = {
            row["ResourceType"]: row["Tags"]
            for row in template_data(found.templates[0], "us-west-2")["TagSpecifications"]
        }
        assert set(by_fleet) == {"instance", "volume", "fleet"}
        assert set(by_template) == {"network-interface"} | ({"spot-instances-request"} if kind == "spot" else set())
        assert all(own in tags for tags in (*by_fleet.values(), *by_template.values()))


def test_128_a_name_that_the_user_gives_stays() -> None:
    found = request(claim("a", LARGE), node_class=ready(node_class(tags={"Name": "mine"})))
    assert found.tags["Name"] == "mine"


# --- volumes ----------------------------------------------------------------------------------------------------
def ebs(size: int) -> dict[str, Any]:
    return {"Encrypted": True, "VolumeSize": size, "VolumeType": "gp3"}


@pytest.mark.parametrize(
    ("family", "volumes"),
    [
        ("AL2", {"/dev/xvda": ebs(20)}),
        ("AL2023", {"/dev/xvda": ebs(20)}),
        ("Bottlerocket", {"/dev/xvda": ebs(4), "/dev/xvdb": ebs(20)}),
        ("Custom", {}),
    ],
)
def test_129_the_volumes_of_each_family(family: str, volumes: dict[str, Any]) -> None:
    found = data(family=family)
    assert {row["DeviceName"]: row["Ebs"] for row in found.get("BlockDeviceMappings", ())} == volumes
    assert ("BlockDeviceMappings" in found) is bool(volumes)


@pytest.mark.parametrize(("size", "whole"), [("4G", 4), ("2G", 2), ("20Gi", 20), ("1Ti", 1024), ("1500Mi", 2)])
def test_130_sizes_are_whole_gibibytes_rounded_up(size: str, whole: int) -> None:
    found = data(blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": size}}])
    assert found["BlockDeviceMappings"][0]["Ebs"] == {"VolumeSize": whole}


# --- images -----------------------------------------------------------------------------------------------------
def test_143_without_the_clusters_addresses_nothing_is_launched() -> None:
    unknown = changed(CLUSTER, service_cidr="")
    of = replace(node_class(), status=status(node_class(), facts(), cluster=unknown))
    assert verdict(of.status, "ValidationSucceeded") == ("False", "ClusterCIDRResolutionFailed")
    assert problem(node_class=of, cluster=unknown).kind == fleet.NOT_READY


def test_144_a_kubelet_configuration_that_cannot_be_read_is_not_passed_over() -> None:
    of = node_class(kubelet={"maxPods": 10, "nope": 1})
    told = replace(of, status=status(of, facts()))
    assert verdict(told.status, "ValidationSucceeded") == ("False", "InvalidKubeletConfiguration")
    assert problem(node_class=told).kind == fleet.NOT_READY


def two(*kinds: str, **more: Any) -> FleetRequest:
    """Launches of two types from these images."""
    rows = tuple(Image(f"ami-{n}", f"n{n}", kind, f"2026-0{n}-01", **more) for n, kind in enumerate(kinds, start=1))
    types = catalogue("m5.large", "m7g.large", images=rows)
    return request(claim("a"), types=types, node_class=ready(node_class("Custom"), facts(images=rows)))


def test_146_each_image_has_a_template_and_of_equal_ones_the_newest_only() -> None:
    found = two("amd64", "arm64")
    assert {t.image_id for t in found.templates} == {"ami-1", "ami-2"}
    assert {o.instance_type: o.image_id for o in found.overrides} == {"m5.large": "ami-1", "m7g.large": "ami-2"}
    assert {t.image_id for t in two("amd64", "amd64").templates} == {"ami-2"}


def test_147_without_an_image_for_any_of_the_types_nothing_is_launched() -> None:
    none = replace(CLASS, status=replace(CLASS.status, amis=()))
    assert problem(node_class=none).kind == fleet.CREATE
    arm = tuple(one for one in images() if one.architecture == "arm64")
    types = catalogue("m5.large", images=arm)
    assert (
        problem(claim("a", LARGE), types=types, node_class=ready(node_class(), facts(images=arm))).kind
        == fleet.CAPACITY
    )


# --- interfaces -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("public", [True, False])
def test_148_a_public_address_is_requested_or_refused_when_it_is_set(public: bool) -> None:
    assert interface(associatePublicIPAddress=public)["AssociatePublicIpAddress"] is public
    assert "AssociatePublicIpAddress" not in interface()


TWO = [
    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
    {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
]


@pytest.mark.parametrize("count", [0, 1, 10, 100])
def test_149_address_prefixes_are_of_the_clusters_family(count: int) -> None:
    assert interface(ipPrefixCount=count)["Ipv4PrefixCount"] == count
    of_ipv6 = interface(ipPrefixCount=count, cluster=IPV6)
    assert (of_ipv6.get("Ipv6PrefixCount", 0), of_ipv6.get("Ipv6AddressCount", 0)) == (count, 0 if count else 1)
    assert "Ipv4PrefixCount" not in interface(ipPrefixCount=count, cluster=IPV6)
    assert not {"Ipv4PrefixCount", "Ipv6PrefixCount"} & interface().keys()


def test_150_instances_are_monitored_in_detail_when_that_is_asked_for() -> None:
    assert data()["Monitoring"] == {"Enabled": False}
    assert data(detailedMonitoring=True)["Monitoring"] == {"Enabled": True}


def test_152_metadata_are_had_with_a_token_one_hop_away() -> None:
    expected = {
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
        "HttpPutResponseHopLimit": 1,
        "HttpTokens": "required",
        "InstanceMetadataTags": "disabled",
    }
    assert data()["MetadataOptions"] == expected
    del expected["HttpProtocolIpv6"]
    for region in ("us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isof-south-1"):
        assert data(region=region)["MetadataOptions"] == expected


def test_153_in_an_ipv6_cluster_interfaces_have_such_an_address() -> None:
    found = interface(cluster=IPV6)
    assert (found["PrimaryIpv6"], found["Ipv6AddressCount"]) == (True, 1)
    assert not {"PrimaryIpv6", "Ipv6AddressCount"} & interface().keys()


def test_154_connections_are_tracked_as_the_class_says() -> None:
    found = interface(connectionTracking={"tcpEstablishedTimeout": 432, "udpTimeout": 45})
    assert found["ConnectionTrackingSpecification"] == {"TcpEstablishedTimeout": 432, "UdpTimeout": 45}
    assert "ConnectionTrackingSpecification" not in interface()


def test_156_processor_options_are_those_that_are_set() -> None:
    for nested in ("enabled", "disabled"):
        made = replace(template(), nested_virtualization=nested)
        assert template_data(made, "us-west-2")["CpuOptions"] == {"NestedVirtualization": nested}
    assert template(cpuOptions={"nestedVirtualization": "disabled"}).nested_virtualization == "disabled"
    assert "CpuOptions" not in data()
    assert "CpuOptions" not in data(cpuOptions={})


# --- reservations -----------------------------------------------------------------------------------------------
def test_157_each_reservation_has_a_template_that_names_it() -> None:
    rows = tuple(held(f"cr-{n}", zone=zone) for n, zone in enumerate(ZONES))
    types = catalogue(*GENERIC, reservations=rows)
    found = request(claim("a", LARGE, (CAPACITY_TYPE, "Exists", [])), types=types)
    told = [template_data(one, "us-west-2")["CapacityReservationSpecification"] for one in found.templates]
    assert {one["CapacityReservationPreference"] for one in told} == {"capacity-reservations-only"}
    targets = sorted(one["CapacityReservationTarget"]["CapacityReservationId"] for one in told)
    assert targets == ["cr-0", "cr-1", "cr-2"]


def test_157_other_launches_leave_open_reservations_to_others_unless_the_gate_is_shut() -> None:
    assert data()["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}
    shut = changed(SETTINGS, gates=changed(SETTINGS.gates, reserved_capacity=False))
    assert "CapacityReservationSpecification" not in data(settings=shut)


def test_121_kerf_does_not_sync_the_taints_of_nodes_that_register_with_them() -> None:
    said = f"{labels.DO_NOT_SYNC_TAINTS}=true"
    for family in ("AL2", "AL2023", "Windows2022"):
        assert said in template(family=family).user_data
    assert f'"{labels.DO_NOT_SYNC_TAINTS}" = "true"' in template(family="Bottlerocket").user_data
    assert said not in template(family="Custom", userData="#!/bin/bash").user_data


def test_132_another_number_of_pods_is_another_template() -> None:
    found = request(claim("a", typed("m5.large", "m5.xlarge")), node_class=ready(node_class("AL2")))
    assert names(found) == ["m5.large", "m5.xlarge"]
    numbers = sorted(t.user_data.partition("--max-pods=")[2].partition("'")[0] for t in found.templates)
    assert numbers == ["29", "58"]
    assert all("--use-max-pods false" in t.user_data for t in found.templates)
