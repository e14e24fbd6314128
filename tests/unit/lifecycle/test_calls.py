"""Which NodeClaims share a CreateFleet call: those for which it asks EC2 for the same types, zones and templates."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.launch.holding import Holding
from kerf.model import kinds
from kerf.model.aws.cloud import FleetError, FleetRequest
from kerf.model.aws.instance_type import InstanceType, Reservation
from kerf.model.plan import CreateNodeClaim, LaunchInstances, Reason
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.world import NOW, World, large, node_claim, node_pool, prepared


def sized(name: str, cpu: int, memory: str, price: int, **offering: Any) -> InstanceType:
    kind, room = (
        large(),
        Resources.parse({"cpu": str(cpu), "memory": memory, "pods": "29", "ephemeral-storage": "20Gi"}),
    )
    rows = {labels.INSTANCE_TYPE: name, labels.ARCH: "amd64", labels.OS: "linux"}
    return changed(
        kind,
        name=name,
        requirements=Requirements(requirement(key, IN, (value,)) for key, value in rows.items()),
        capacity=room,
        allocatable=room,
        offerings=tuple(changed(o, instance_type=name, price=price, **offering) for o in kind.offerings),
    )


SOLD = (
    sized("m5.large", 2, "8Gi", 96_000),
    sized("c5.xlarge", 4, "8Gi", 170_000),
    sized("r5.large", 2, "16Gi", 126_000),
    sized("m5.xlarge", 4, "16Gi", 192_000),
)


def asking(name: str, cpu: str = "1", memory: str = "1Gi", *types: str, **spec: Any) -> NodeClaim:
    rows = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": [*types]}] if types else []
    given = {"requirements": rows, "resources": {"requests": {"cpu": cpu, "memory": memory, "pods": "2"}}, **spec}
    return node_claim(name, **given)


def launched(
    *claims: NodeClaim, sold: tuple[InstanceType, ...] = SOLD, most: int = 60, **limits: Any
) -> list[FleetRequest]:
    """The calls, when `sold` is for sale and a call names so many types at `most`, within these limits."""
    world = prepared(*claims)
    world.settings = changed(world.settings, max_instance_types=most)
    world.facts["catalogues"] = {"default": sold}
    pool = world.get(kinds.NODE_POOL, "default")
    if limits:
        world.put(replace(pool, spec=replace(pool.spec, limits=limits)))
    world.settle()
    return [action.request for action in world.done(LaunchInstances)]


def members(requests: list[FleetRequest]) -> list[tuple[str, ...]]:
    return sorted(request.members for request in requests)


def types(request: FleetRequest) -> list[str]:
    return [override.instance_type for override in request.overrides]


def test_claims_with_other_requests_that_the_same_types_hold_share_a_call() -> None:
    (call,) = launched(asking("a", "500m"), asking("b", "1900m", "7Gi"), asking("c", "1", "2Gi"))
    assert call.members == ("a", "b", "c")
    assert types(call) == ["m5.large", "r5.large", "c5.xlarge", "m5.xlarge"]


def test_claims_whose_requests_other_types_hold_have_calls_of_their_own() -> None:
    found = launched(asking("a"), asking("cores", "3"), asking("memory", "1", "12Gi"), asking("both", "3", "12Gi"))
    assert {call.members: types(call) for call in found} == {
        ("a",): ["m5.large", "r5.large", "c5.xlarge", "m5.xlarge"],
        ("cores",): ["c5.xlarge", "m5.xlarge"],
        ("memory",): ["r5.large", "m5.xlarge"],
        ("both",): ["m5.xlarge"],
    }


def test_claims_that_list_other_types_share_a_call_when_the_same_are_for_sale() -> None:
    listed = (
        asking("a", "1", "1Gi", "m5.large", "m5.xlarge"),
        asking("b", "1", "1Gi", "m5.large", "m5.xlarge", "x9.big"),
    )
    other = asking("c", "1", "1Gi", "m5.large")
    assert members(launched(*listed, other)) == [("a", "b"), ("c",)]


@pytest.mark.parametrize(
    "own",
    [
        {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        {"meta": {"labels": {labels.NODEPOOL: "default", labels.NODECLASS: "default", "team": "x"}}},
        {"meta": {"annotations": {labels.MIN_VALUES_RELAXED: "true"}}},
        {"requirements": [{"key": labels.ARCH, "operator": "In", "values": ["amd64"]}]},
        {"requirements": [{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}]},
    ],
)
def test_only_types_and_requests_may_differ(own: dict[str, Any]) -> None:
    assert members(launched(asking("a", "500m"), asking("b", **own))) == [("a",), ("b",)]


def test_a_shared_call_keeps_the_limits_of_the_nodepool() -> None:
    found = launched(*(asking(f"c{number}", f"{number + 1}00m") for number in range(3)), cpu="6")
    assert [(call.members, types(call)) for call in found] == [(("c0", "c1", "c2"), ["m5.large", "r5.large"])]


def test_where_limits_are_too_tight_for_one_call_each_nodeclaim_gets_what_it_would_get_alone() -> None:
    sold = (sized("big", 8, "8Gi", 1), sized("small", 1, "16Gi", 2), sized("middle", 2, "16Gi", 3))
    found = launched(asking("a", "500m"), asking("b", "1500m"), sold=sold, most=1, cpu="3")
    assert [(call.members, types(call)) for call in found] == [(("a",), ["small"]), (("b",), ["middle"])]


@pytest.mark.parametrize("cpu", ["9", "100", "1000"])
def test_limits_with_room_exclude_no_type(cpu: str) -> None:
    (call,) = launched(asking("a"), cpu=cpu)
    assert types(call) == ["m5.large", "r5.large", "c5.xlarge", "m5.xlarge"]


def test_reservations_are_not_shared() -> None:
    """One may have a single machine left; EC2 would refuse all of a call that wants two."""
    held = Reservation("cr-1", 5)
    sold = (sized("m5.large", 2, "8Gi", 1, capacity_type=labels.RESERVED, reservation=held),)
    rows = [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": [labels.RESERVED]}]
    found = launched(asking("a", "500m", requirements=rows), asking("b", "1", requirements=rows), sold=sold)
    assert members(found) == [("a",), ("b",)]


def test_a_quota_that_is_used_up_refuses_as_little_as_possible() -> None:
    """EC2 may refuse a call for two machines where there is room for one."""
    error = FleetError("VcpuLimitExceeded", "more vCPU capacity than your limit", "m5.large", "us-west-2a")
    world = prepared(asking("a", "500m"), asking("b", "1"))
    world.facts["catalogues"] = {"default": SOLD}
    world.failures["0" * 32] = LaunchFailure((error,), NOW)
    world.settle()
    assert sorted(action.request.members for action in world.done(LaunchInstances)) == [("a",), ("b",)]


def test_where_a_zone_has_several_subnets_the_nodes_are_spread_over_them() -> None:
    world = prepared()
    known = world.class_facts["default"]
    rows = tuple(changed(known.subnets[0], id=f"subnet-{name}", free_addresses=100) for name in "xy")
    world.class_facts["default"] = changed(known, subnets=rows)
    world.facts["catalogues"] = {"default": SOLD}
    world.facts["resolved_at"] = {"default": NOW}
    world.settle()
    for number in range(4):
        world.put(asking(f"c{number}", f"{number + 1}00m"))
    world.settle()
    calls = [action.request for action in world.done(LaunchInstances)]
    assert sorted(override.subnet_id for call in calls for override in call.overrides[:1]) == [
        "subnet-x",
        "subnet-x",
        "subnet-y",
        "subnet-y",
    ]


@pytest.mark.parametrize("cpu", ["500m", "1"])
def test_where_minvalues_are_too_many_for_one_call_the_first_nodeclaims_are_launched(cpu: str) -> None:
    """Limits leave two small instances, of too few types; of a single one there are enough."""
    rows = [{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 4}]
    found = launched(asking("a", "500m", requirements=rows), asking("b", cpu, requirements=rows), cpu="6")
    assert members(found) == [("a",)]


def test_whatever_types_are_dearest_on_demand_only_spot_that_each_would_get_is_named() -> None:
    """Each has an own type on demand that is cheaper than most spot capacity."""

    def kind(name: str, cpu: int, memory: str, market: str, price: int) -> InstanceType:
        return sized(name, cpu, memory, price, capacity_type=market)

    sold = (
        kind("cores", 8, "2Gi", labels.ON_DEMAND, 50),
        kind("memory", 2, "16Gi", labels.ON_DEMAND, 50),
        kind("both", 8, "16Gi", labels.ON_DEMAND, 100),
        kind("spot-cheap", 8, "16Gi", labels.SPOT, 40),
        kind("spot-dear", 8, "16Gi", labels.SPOT, 80),
    )
    rows = [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": [labels.SPOT, labels.ON_DEMAND]}]
    claims = asking("a", "4", "1Gi", requirements=rows), asking("b", "1", "8Gi", requirements=rows)
    assert [types(call) for call in launched(*claims, sold=sold)] == [["spot-cheap"]] * 2


def test_a_type_that_cannot_be_understood_costs_no_more_than_the_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Holding, "of", lambda *_: 1 / 0)
    assert members(launched(asking("a", "500m"), asking("b"))) == [("a",), ("b",)]


def waiting(*coming: NodeClaim) -> World:
    world = prepared(asking("a"))
    world.facts["catalogues"] = {"default": SOLD}
    world.facts["under_way"] = tuple(CreateNodeClaim(reason=Reason("Test"), claim=claim) for claim in coming)
    return world


def test_a_claim_waits_shortly_for_similar_ones_that_are_being_created() -> None:
    similar = asking("b", "1900m")
    world = waiting(similar)
    assert world.settle().next_due == NOW + timedelta(seconds=2)
    world.put(similar)
    world.settle()
    assert [len(ids) for ids in world.calls.values()] == [2]


def test_a_similar_creation_that_hangs_delays_a_claim_by_two_seconds() -> None:
    world = waiting(asking("b", "1900m"))
    world.pass_time(2)
    world.settle()
    assert [len(ids) for ids in world.calls.values()] == [1]


def test_nobody_waits_for_others_where_calls_are_not_shared() -> None:
    error = FleetError("VcpuLimitExceeded", "more vCPU capacity than your limit", "m5.large", "us-west-2a")
    world = waiting(asking("b", "1900m"))
    world.failures["0" * 32] = LaunchFailure((error,), NOW)
    world.settle()
    assert [len(ids) for ids in world.calls.values()] == [1]


def test_nobody_waits_for_claims_of_another_nodepool() -> None:
    other = {labels.NODEPOOL: "other", labels.NODECLASS: "default"}
    world = waiting(asking("b", meta={"labels": other}))
    world.put(node_pool("other"))
    world.settle()
    assert [len(ids) for ids in world.calls.values()] == [1]


def test_instances_of_a_shared_call_are_assigned_to_its_claims() -> None:
    world = prepared(*(asking(f"c{number}", f"{number + 1}00m") for number in range(5)))
    world.facts["catalogues"] = {"default": SOLD}
    world.settle()
    assert len(world.calls) == 1
    assert len({world.claim(f"c{number}").assigned_instance for number in range(5)} - {""}) == 5
