"""EC2 in memory: fleets, stock-outs, reclaims, the queue, and what selectors find."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from kerf.ports import AlreadyGone, Cloud, IdempotencyMismatch, Kube
from kerf.runtime.observe import looking
from kerf.sandbox.clock import START
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, SelectorTerm
from kerf_api.v1.meta import ObjectMeta

from .sandbox_world import launch, wait

DISCOVERY = SelectorTerm(tags={"karpenter.sh/discovery": "sandbox"})


def node_class(**spec: object) -> EC2NodeClass:
    base = {
        "role": "KerfNodeRole",
        "ami_selector_terms": (SelectorTerm(alias="al2023@latest"),),
        "subnet_selector_terms": (DISCOVERY,),
        "security_group_selector_terms": (DISCOVERY,),
    }
    body = EC2NodeClassSpec(**{**base, **spec})  # type: ignore[arg-type]
    return EC2NodeClass(metadata=ObjectMeta(name="default", uid="uid-1", generation=3), spec=body)


def test_adapters_are_the_ports() -> None:
    world = World()
    kube: Kube = world.kube
    cloud: Cloud = world.cloud
    assert kube is world.kube
    assert cloud is world.cloud


def test_region_sells_real_types_with_prices() -> None:
    region = looking.region(World().cloud)
    assert len(region.types) >= 110
    assert region.on_demand["m5.large"] == 96000
    assert region.types["m5.large"].memory_mib == 8192
    assert all(0 < region.spot[key] < region.on_demand[key[0]] / 2 for key in region.spot)
    assert set(World(types=["m5.large"]).cloud.region().types) == {"m5.large"}


def test_fleet_takes_the_cheapest_override() -> None:
    world = World()
    result = world.cloud.create_fleet(launch(world, "a", "b", types=("c6i.large", "m6i.large")))
    assert [(one.instance_type, one.state) for one in result.instances] == [("c6i.large", "pending")] * 2
    assert result.errors == ()


def test_stock_out_is_a_capacity_error_and_the_next_override_is_used() -> None:
    world = World()
    world.ec2.stock_out("c6i.large", "us-west-2a", "on-demand", START + timedelta(minutes=5))
    request = launch(world, "a", types=("c6i.large", "m6i.large"))
    result = world.cloud.create_fleet(request)
    assert [one.instance_type for one in result.instances] == ["m6i.large"]
    assert [(e.code, e.instance_type, e.capacity) for e in result.errors] == [
        ("InsufficientInstanceCapacity", "c6i.large", True)
    ]
    wait(world, 300)
    later = world.cloud.create_fleet(launch(world, "a", group="g2", types=("c6i.large", "m6i.large")))
    assert [one.instance_type for one in later.instances] == ["c6i.large"]


def test_fleet_call_is_idempotent_by_its_token() -> None:
    world = World()
    request = launch(world, "a")
    first = world.cloud.create_fleet(request)
    assert world.cloud.create_fleet(request).instances == first.instances
    assert len(world.ec2.instances) == 1
    with pytest.raises(IdempotencyMismatch):
        world.cloud.create_fleet(launch(world, "a", "b"))


def test_new_instance_is_described_late_and_a_terminated_one_not_at_all() -> None:
    world = World(weather=Weather(describe_lag_seconds=10, shutdown_seconds=30))
    (made,) = world.cloud.create_fleet(launch(world, "a")).instances
    wait(world, 9)
    assert list(world.cloud.instances()) == []
    wait(world, 2)
    assert [one.state for one in world.cloud.instances()] == ["running"]
    world.cloud.tag(made.id, {"Name": "one"})
    assert world.cloud.instances()[0].tags["Name"] == "one"
    world.cloud.terminate(made.id)
    assert [one.state for one in world.cloud.instances()] == ["shutting-down"]
    world.cloud.terminate(made.id)
    wait(world, 31)
    assert list(world.cloud.instances()) == []
    world.cloud.terminate(made.id)
    wait(world, 3600)
    with pytest.raises(AlreadyGone):
        world.cloud.terminate(made.id)


def test_spot_reclaim_warns_two_minutes_ahead() -> None:
    world = World()
    (made,) = world.cloud.create_fleet(launch(world, "a", capacity_type="spot")).instances
    wait(world, 60)
    for message in world.cloud.receive():
        world.cloud.delete_message(message)
    world.ec2.reclaim_spot(made.id)
    (message,) = world.cloud.receive()
    body = json.loads(message.body)
    assert (body["detail-type"], body["detail"]["instance-id"]) == ("EC2 Spot Instance Interruption Warning", made.id)
    wait(world, 119)
    assert world.ec2.instances[made.id].state == "running"
    wait(world, 2)
    assert world.ec2.instances[made.id].state == "terminated"


def test_message_comes_back_until_it_is_deleted() -> None:
    world = World()
    world.ec2.send("aws.health", "AWS Health Event", {})
    (first,) = world.cloud.receive()
    assert world.cloud.receive() == []
    wait(world, 21)
    (again,) = world.cloud.receive()
    assert again == first
    world.cloud.delete_message(again)
    wait(world, 21)
    assert world.cloud.receive() == []


def test_rate_of_reclaims_strikes_spot_instances_only() -> None:
    world = World(weather=Weather(spot_reclaim_per_hour=20))
    world.cloud.create_fleet(launch(world, *"abc", group="s", capacity_type="spot"))
    world.cloud.create_fleet(launch(world, *"abc", group="o"))
    wait(world, 6 * 3600)
    states = {(one.capacity_type, one.state) for one in world.ec2.instances.values()}
    assert states == {("spot", "terminated"), ("on-demand", "running")}


def test_subnet_without_addresses_is_a_capacity_error() -> None:
    world = World()
    (subnet,) = [one for one in world.ec2.subnets.values() if one.zone == "us-west-2a"]
    world.ec2.used_addresses[subnet.id] = subnet.free_addresses
    result = world.cloud.create_fleet(launch(world, "a"))
    assert (result.instances, result.errors[0].code) == ((), "InsufficientFreeAddressesInSubnet")
    assert result.errors[0].capacity


def test_node_class_resolves() -> None:
    cloud = World().cloud
    facts = cloud.resolve(node_class(), cloud.cluster())
    assert facts.generation == 3
    assert [one.zone for one in facts.subnets] == ["us-west-2a", "us-west-2b", "us-west-2c"]
    assert [one.name for one in facts.security_groups] == ["sandbox-node"]
    assert {(one.architecture, one.variant) for one in facts.images} >= {("amd64", "standard"), ("arm64", "standard")}
    assert facts.problems == {}


def test_selectors_that_find_nothing_are_problems() -> None:
    cloud = World().cloud
    nothing = (SelectorTerm(tags={"karpenter.sh/discovery": "other"}),)
    wrong = node_class(
        subnet_selector_terms=nothing,
        security_group_selector_terms=nothing,
        ami_selector_terms=(SelectorTerm(id="ami-none"),),
    )
    facts = cloud.resolve(wrong, cloud.cluster())
    assert {key: reason for key, (reason, _) in facts.problems.items()} == {
        "SubnetsReady": "SubnetsNotFound",
        "SecurityGroupsReady": "SecurityGroupsNotFound",
        "AMIsReady": "AMINotFound",
    }


def test_instance_profile_is_found_once_it_is_made() -> None:
    cloud = World().cloud
    assert cloud.resolve(node_class(), cloud.cluster()).instance_profile == ""
    path = "/karpenter/us-west-2/sandbox/uid-1/"
    cloud.ensure_instance_profile("sandbox_1", "KerfNodeRole", path, {})
    assert cloud.resolve(node_class(), cloud.cluster()).instance_profile == "sandbox_1"
    assert cloud.resolve(node_class(role="Other"), cloud.cluster()).instance_profile == ""
    cloud.delete_class_resources("default", path)
    assert cloud.resolve(node_class(), cloud.cluster()).instance_profile == ""


def test_pinned_image_is_older_than_the_latest() -> None:
    cloud = World().cloud
    pinned = node_class(ami_selector_terms=(SelectorTerm(alias="al2023@v20251201"),))
    latest = cloud.resolve(node_class(), cloud.cluster()).images
    older = cloud.resolve(pinned, cloud.cluster()).images
    assert max(one.created for one in older) < min(one.created for one in latest)
