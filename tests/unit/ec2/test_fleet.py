"""Fleet requests: their content, their names, and which claims may share one."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace as copy
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.ec2.launch.fleet import equal_launch
from kerf.model.aws.cloud import Subnet
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import CLUSTER, SETTINGS, ZONES, catalogue, claim, facts, node_class, ready
from tests.unit.ec2.fleet_requests import BOTH, CLASS, GENERIC, TYPE, request, typed


# --- the request ------------------------------------------------------------------------------------------------
def test_one_override_for_each_zone_ordered_by_price() -> None:
    found = request(claim("a", typed("m5.large", "c5.large")))
    assert [(o.instance_type, o.zone, o.price, o.subnet_id) for o in found.overrides] == [
        (name, zone, price, f"subnet-{zone[-1]}")
        for name, price in (("c5.large", 85000), ("m5.large", 96000))
        for zone in ZONES
    ]
    assert found.capacity_type == "on-demand"
    assert {o.image_id for o in found.overrides} == {"ami-1"}


def test_the_content_of_a_launch() -> None:
    spec: dict[str, Any] = {
        "tags": {"team": "platform", "Name": "mine"},
        "detailedMonitoring": True,
        "associatePublicIPAddress": False,
        "ipPrefixCount": 2,
        "connectionTracking": {"udpTimeout": 45},
        "cpuOptions": {"nestedVirtualization": "disabled"},
        "context": "ctx",
    }
    found = request(claim("a", typed("m5.large"), labels={"team": "x"}), node_class=ready(node_class(**spec)))
    (template,) = found.templates
    assert template.instance_profile == "demo_1"
    assert template.security_group_ids == ("sg-1", "sg-2")
    assert template.detailed_monitoring is True
    assert template.associate_public_ip_address is False
    assert template.ip_prefix_count == 2
    assert template.connection_tracking is not None
    assert template.nested_virtualization == "disabled"
    assert template.ipv6 is False
    assert template.network_interfaces == ()
    assert template.capacity_reservations == "none"
    assert [m.device_name for m in template.block_device_mappings] == ["/dev/xvda"]
    assert "karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true" in template.user_data
    assert "maxPods: 29" in template.user_data
    tags = {
        "Name": "mine",
        "eks:eks-cluster-name": "demo",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/nodepool": "default",
        "kubernetes.io/cluster/demo": "owned",
        "team": "platform",
    }
    assert template.tags == tags
    assert found.tags == {**tags, "kerf.sh/launch-group": found.group}
    assert found.context == "ctx"


def test_an_ipv6_cluster_gives_ipv6_interfaces() -> None:
    found = request(claim("a", typed("m5.large")), cluster=copy(CLUSTER, dns_ip="fd00::a"))
    assert found.templates[0].ipv6 is True


def test_interfaces_of_the_class_reach_the_template() -> None:
    rows = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]
    found = request(claim("a", typed("m5.large")), node_class=ready(node_class(networkInterfaces=rows)))
    assert [i.interface_type for i in found.templates[0].network_interfaces] == ["interface"]


def test_without_the_gate_nothing_is_said_of_reservations_and_the_template_is_another() -> None:
    one = claim("a", typed("m5.large"))
    shut = copy(SETTINGS, gates=copy(SETTINGS.gates, reserved_capacity=False))
    with_gate, without = request(one).templates[0], request(one, settings=shut).templates[0]
    assert without.capacity_reservations == ""
    assert with_gate.name != without.name


def test_templates_differ_by_image_and_pod_count_and_are_named_by_content() -> None:
    found = request(claim("a", typed("m5.large", "c5.large", "m5.xlarge", "m7g.large")))
    shapes = {(t.image_id, "maxPods: 58" in t.user_data) for t in found.templates}
    assert shapes == {("ami-1", False), ("ami-1", True), ("ami-4", False)}
    assert len(found.templates) == 3
    assert all(t.name.startswith("karpenter.k8s.aws/") and t.name[18:].isdigit() for t in found.templates)
    by_name = {t.name: t for t in found.templates}
    for override in found.overrides:
        expected = "maxPods: 58" if override.instance_type == "m5.xlarge" else "maxPods: 29"
        assert expected in by_name[override.template].user_data
        assert override.image_id == by_name[override.template].image_id


def test_template_names_follow_the_content() -> None:
    def name(one: NodeClaim | None = None, **spec: Any) -> str:
        of = ready(node_class(**spec))
        return request(one or claim("a", typed("m5.large")), node_class=of).templates[0].name

    base = name()
    assert name() == base
    assert name(claim("another", typed("m5.large"))) == base, "a claim's identity is no content"
    assert name(claim("a", typed("m5.large", "c5.large"))) == base, "nor is the list of types"
    others = [
        name(detailedMonitoring=True),
        name(tags={"a": "b"}),
        name(userData="#!/bin/bash"),
        name(kubelet={"cpuManagerPolicy": "static"}),
        name(metadataOptions={"httpTokens": "optional"}),
        name(ipPrefixCount=1),
        name(claim("a", typed("m5.large"), labels={"x": "y"})),
        name(claim("a", typed("m5.large"), taints=[{"key": "a", "effect": "NoSchedule"}])),
        name(claim("a", typed("m5.large"), BOTH)),
    ]
    renamed = replace(CLASS, metadata=replace(CLASS.metadata, name="other"))
    others.append(request(claim("a", typed("m5.large")), node_class=renamed).templates[0].name)
    assert len({base, *others}) == len(others) + 1


def test_a_template_of_an_older_version_with_ipv6_prefixes_is_not_used_again() -> None:
    """Its name came from the content alone; EC2 launches nothing from it."""
    cluster = copy(CLUSTER, dns_ip="fd00::a")
    (template,) = request(
        claim("a", typed("m5.large")), node_class=ready(node_class(ipPrefixCount=1)), cluster=cluster
    ).templates
    older = msgspec.json.encode(replace(template, name=""), order="deterministic")
    assert template.ipv6
    assert template.name != f"karpenter.k8s.aws/{int.from_bytes(hashlib.sha256(older).digest()[:8], 'big')}"


def test_members_and_group() -> None:
    a, b = claim("default-a"), claim("default-b")
    found = request(b, a)
    assert found.members == ("default-a", "default-b")
    assert found == request(a, b)
    groups = {
        found.group,
        request(a).group,
        request(a, b, attempt=1).group,
        request(a, claim("default-b", uid="reborn")).group,
    }
    assert len(groups) == 4
    assert all(len(group) == 32 for group in groups), "a client token holds 64 characters"


def test_the_same_whatever_the_order_of_the_catalogue() -> None:
    types = catalogue(*GENERIC)
    one = claim("a", BOTH)
    requests = {msgspec.json.encode(request(one, types=rows)) for rows in itertools.permutations(types[:4])}
    assert len(requests) == 1


def test_the_subnet_with_most_free_addresses_of_each_zone() -> None:
    rows = (
        Subnet("subnet-1", ZONES[0], free_addresses=10),
        Subnet("subnet-2", ZONES[0], free_addresses=100),
        Subnet("subnet-3", ZONES[1], free_addresses=5),
    )
    found = request(claim("a", typed("m5.large")), node_class=ready(node_class(), facts(subnets=rows)))
    assert [o.subnet_id for o in found.overrides] == ["subnet-2", "subnet-3"]


def test_no_context_when_min_values_were_relaxed() -> None:
    of = ready(node_class(context="ctx"))
    assert request(claim(annotations={labels.MIN_VALUES_RELAXED: "true"}), node_class=of).context == ""
    assert request(claim(annotations={labels.MIN_VALUES_RELAXED: "false"}), node_class=of).context == "ctx"


@pytest.mark.parametrize(
    ("family", "devices"),
    [
        ("AL2", ["/dev/xvda"]),
        ("Bottlerocket", ["/dev/xvda", "/dev/xvdb"]),
        ("Windows2022", ["/dev/sda1"]),
        ("Custom", []),
    ],
)
def test_default_volumes(family: str, devices: list[str]) -> None:
    of = ready(node_class(family))
    found = request(claim("a", typed("m5.large")), node_class=of)
    assert [m.device_name for m in found.templates[0].block_device_mappings] == devices
    assert all(m.ebs is not None and m.ebs.encrypted for m in found.templates[0].block_device_mappings)


# --- equal launches ---------------------------------------------------------------------------------------------
def test_equal_launches() -> None:
    base = claim("a", BOTH, typed("m5.large"))
    assert equal_launch(base) == equal_launch(claim("b", typed("m5.large"), BOTH))
    others = [
        claim("a", BOTH),
        claim("a", BOTH, typed("m5.large"), requests={"cpu": "2"}),
        claim("a", BOTH, typed("m5.large"), labels={"x": "y"}),
        claim("a", BOTH, typed("m5.large"), taints=[{"key": "a", "effect": "NoSchedule"}]),
        claim("a", BOTH, typed("m5.large"), startupTaints=[{"key": "a", "effect": "NoSchedule"}]),
        claim("a", BOTH, typed("m5.large"), min_values={TYPE: 2}),
        claim("a", BOTH, typed("m5.large"), annotations={labels.MIN_VALUES_RELAXED: "true"}),
    ]
    assert len({equal_launch(base), *map(equal_launch, others)}) == len(others) + 1
