"""ARC zonal shift: what is left alone in a zone that traffic is shifted away from, and who is told (56 to 218)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.instance_types.catalogue import build
from kerf.model import kinds
from kerf.model.aws.cloud import Instance, ZonalShift
from kerf.model.plan import Event, Plan, Source, TagInstance, TerminateInstance
from kerf.runtime.inbox import Described, RegionRead, Resolved, ShiftsRead
from kerf.runtime.state.shifts import HELD
from kerf.runtime.state.state import State
from kerf_api import labels
from tests.unit.ec2.ec2_facts import NOW, SETTINGS, ZONES, facts, node_class, region
from tests.unit.ec2.test_fleet_reservations import held
from tests.unit.lifecycle import world as w
from tests.unit.lifecycle.world import FACTS, World, node_claim, node_pool, prepared, running

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SHIFT = ZonalShift("usw2-az1", NOW + HOUR)
HERE, THERE = (
    Instance(f"i-{zone}", "m5.large", zone, "running", "on-demand", NOW, zone_id=id_)
    for zone, id_ in ((ZONES[0], "usw2-az1"), (ZONES[1], "usw2-az2"))
)


def known(*shifts: ZonalShift, instances: tuple[Instance, ...] = (HERE, THERE)) -> State:
    """A class with a subnet in each zone, machines, and what ARC told last."""
    state = State(changed(SETTINGS, zonal_shift=True), build=build, interpret=lambda _: None)
    state.put(kinds.NODE_CLASS, node_class(), NOW)
    state.take(RegionRead(region("m5.large"), NOW), NOW)
    of_class = facts(reservations=(held("cr-1"), held("cr-2", zone=ZONES[1])))
    state.take(Resolved("default", "class-uid", of_class, NOW), NOW)
    state.take(Described(instances, NOW), NOW)
    state.take(ShiftsRead(shifts, NOW), NOW)
    return state


def listed(state: State, *instances: Instance, after: timedelta = MINUTE) -> dict[str, Instance]:
    """What is known once EC2 has listed only these."""
    state.take(Described(instances, NOW + after), NOW + after)
    return dict(state.snapshot(NOW + after).instances)


# --- instances that are not shown -------------------------------------------------------------------------------
def test_056_a_machine_in_a_zone_shifted_away_is_what_it_was_although_ec2_does_not_show_it() -> None:
    assert listed(known(SHIFT)).get(HERE.id) == HERE


def test_061_elsewhere_what_is_listed_no_more_is_gone() -> None:
    assert set(listed(known(SHIFT))) == {HERE.id}
    assert listed(known()) == {}
    state = known(SHIFT)
    listed(state)
    assert listed(state, after=HOUR) == {}, "the shift is over"


def test_061_a_zone_is_known_by_its_name_or_its_id() -> None:
    nameless, idless = changed(HERE, zone="us-west-2z"), changed(HERE, id="i-other", zone_id="")
    assert set(listed(known(SHIFT, instances=(nameless, idless)))) == {nameless.id, idless.id}


def test_061_what_was_ended_is_believed_to_be() -> None:
    state = known(SHIFT, instances=(changed(HERE, state="shutting-down"),))
    assert listed(state) == {}
    state = known(SHIFT)
    state.fleet.terminated(HERE.id, NOW)
    assert listed(state) == {}


# --- offerings --------------------------------------------------------------------------------------------------
def to_be_had(state: State, at: datetime) -> set[tuple[str, str]]:
    """Zones and capacity types in which the type is to be had."""
    (found,) = state.snapshot(at).catalogues["default"]
    return {(o.zone, o.capacity_type) for o in found.offerings if o.available}


def test_110_nothing_is_to_be_had_in_a_zone_shifted_away_until_it_is_over() -> None:
    state = known(SHIFT)
    bought = {(zone, kind) for zone in ZONES for kind in ("on-demand", "spot")}
    everywhere = bought | {(ZONES[0], "reserved"), (ZONES[1], "reserved")}
    elsewhere = {(zone, kind) for zone, kind in everywhere if zone != ZONES[0]}
    assert to_be_had(known(), NOW) == everywhere
    assert to_be_had(state, NOW) == elsewhere
    assert to_be_had(state, NOW + HOUR - MINUTE) == elsewhere
    assert to_be_had(state, NOW + HOUR) == everywhere, "by itself"


def test_110_a_cancelled_one_is_over_and_one_without_an_end_holds_while_it_is_reported() -> None:
    state = known(SHIFT)
    state.take(ShiftsRead((), NOW + MINUTE), NOW + MINUTE)
    assert to_be_had(state, NOW + MINUTE) == to_be_had(known(), NOW)
    auto = known(ZonalShift("usw2-az1"))
    before = HELD - MINUTE
    assert (ZONES[0], "spot") not in to_be_had(auto, NOW + before)
    auto.take(ShiftsRead((ZonalShift("usw2-az1"),), NOW + before), NOW + before)
    assert (ZONES[0], "spot") not in to_be_had(auto, NOW + HELD)
    assert (ZONES[0], "spot") in to_be_had(auto, NOW + before + HELD)


def test_110_a_class_that_is_resolved_during_a_shift_knows_of_it() -> None:
    state = known(SHIFT)
    state.snapshot(NOW)
    state.take(Resolved("default", "class-uid", facts(instance_profile="another"), NOW), NOW)
    assert ZONES[0] not in {zone for zone, _ in to_be_had(state, NOW)}


# --- what is not ended, and not tagged --------------------------------------------------------------------------
UNTIL = w.NOW + HOUR
AWAY = {"us-west-2a": UNTIL, "usw2-az1": UNTIL}


def shifting(world: World) -> World:
    """From now on traffic is shifted away from the zone of its machines."""
    world.settings = changed(world.settings, zonal_shift=True)
    world.facts["shifted"] = AWAY
    return world


def ending(world: World) -> World:
    """The claim is being deleted."""
    world.delete(kinds.ref(world.claim()))
    return world


def drained(world: World) -> Plan:
    """The last plan once the drain is over and nothing but the instance is left."""
    for _ in range(3):
        plan = world.settle()
        world.pass_time(10)
    return plan


def refusals(plan: Plan) -> dict[str, str]:
    return {refusal.subject: refusal.reason.code for refusal in plan.refusals}


def test_057_a_machine_there_is_not_ended_before_the_shift_is_over() -> None:
    world = ending(shifting(running(node_claim("a"))))
    plan = drained(world)
    assert (world.done(TerminateInstance), refusals(plan).get("nodeclaim/a")) == ([], "ZonalShift")
    assert world.condition("InstanceTerminating") is None
    world.pass_time(HOUR.total_seconds())
    world.settle()
    assert [deed.instance_id for deed in world.done(TerminateInstance)] == ["i-0000"]


def test_057_one_in_another_zone_is() -> None:
    world = shifting(running(node_claim("a")))
    world.facts["shifted"] = {"us-west-2b": UNTIL, "usw2-az2": UNTIL}
    drained(ending(world))
    assert len(world.done(TerminateInstance)) == 1


def test_057_tags_wait_too() -> None:
    world = prepared(node_claim("a"))
    world.settle()
    shifting(world).join(world.claim())
    plan = world.settle()
    assert world.claim().is_true("Initialized")
    assert world.done(TagInstance) == []
    assert refusals(plan).get("nodeclaim/a") == "ZonalShift"
    world.pass_time(HOUR.total_seconds())
    world.settle()
    assert len(world.done(TagInstance)) == 1


def unlisted(*sources: Source) -> dict[Source, datetime]:
    return {source: w.NOW for source in Source if source not in sources}


def test_058_after_a_restart_instances_are_listed_before_any_is_ended() -> None:
    world = shifting(running(node_claim("a")))
    machines, world.instances = world.instances, {}
    world.facts["fresh_at"] = unlisted(Source.INSTANCES)
    plan = drained(ending(world))
    assert (world.done(TerminateInstance), refusals(plan).get("nodeclaim/a")) == ([], "ZonalShiftUnknown")
    world.facts.pop("fresh_at")
    world.instances = machines
    plan = drained(world)
    assert (world.done(TerminateInstance), refusals(plan).get("nodeclaim/a")) == ([], "ZonalShift")


def test_058_and_arc_is_asked_before_any_is_ended() -> None:
    world = shifting(running(node_claim("a")))
    world.facts |= {"fresh_at": unlisted(Source.ZONAL_SHIFTS), "shifted": {}}
    plan = drained(ending(world))
    assert (world.done(TerminateInstance), refusals(plan).get("nodeclaim/a")) == ([], "ZonalShiftUnknown")
    world.facts.pop("fresh_at")
    world.settle()
    assert len(world.done(TerminateInstance)) == 1


def test_058_of_a_machine_that_is_not_listed_the_claim_says_where_it_is() -> None:
    world = shifting(running(node_claim("a")))
    world.instances.clear()
    plan = drained(ending(world))
    assert (world.done(TerminateInstance), refusals(plan).get("nodeclaim/a")) == ([], "ZonalShift")


def test_058_without_the_setting_no_launch_waits_for_it() -> None:
    world = running(node_claim("a"))
    world.facts["fresh_at"] = unlisted(Source.ZONAL_SHIFTS)
    drained(ending(world))
    assert len(world.done(TerminateInstance)) == 1


def test_059_nor_is_one_tagged_of_which_nothing_is_known_yet() -> None:
    world = prepared(node_claim("a"))
    world.settle()
    shifting(world).join(world.claim())
    machines, world.instances = world.instances, {}
    world.settle()
    assert world.done(TagInstance) == []
    world.instances = machines
    world.settle()
    assert world.done(TagInstance) == []


def test_what_nothing_stands_for_is_not_ended_there_and_its_claim_not_given_up() -> None:
    orphan = shifting(running(node_claim("a")))
    orphan.add_instance("i-9", {labels.TAG_NODEPOOL: "default"}, launched=w.NOW - HOUR)
    for _ in range(3):
        orphan.settle()
        orphan.pass_time(120)
    assert orphan.done(TerminateInstance) == []
    lost = shifting(running(node_claim("a")))
    lost.instances.clear()
    lost.set_ready("node-a", False)
    for _ in range(3):
        lost.settle()
        lost.pass_time(120)
    assert not lost.claim().metadata.deleting


# --- NodePools are told -----------------------------------------------------------------------------------------
SHIFTED = changed(FACTS, shifted=frozenset({"usw2-az1"}))


def told(world: World) -> list[Event]:
    """What NodePools are told of shifts before the world has come to rest, and once more after that."""
    found: list[Event] = []
    for _ in range(4):
        plan = world.decide()
        found += [event for event in plan.events if event.reason.startswith("ZonalShift")]
        world.obey(plan)
    return found


def pools(*requirements: dict[str, Any]) -> World:
    world = World(w.node_class(), node_pool(requirements=list(requirements)))
    world.settings = changed(world.settings, zonal_shift=True)
    assert told(world) == []
    return world


def begin(world: World) -> None:
    world.class_facts, world.facts["shifted"] = {"default": SHIFTED}, AWAY


def end(world: World) -> None:
    world.class_facts, world.facts["shifted"] = {"default": FACTS}, {}


IN_A = {"key": labels.ZONE, "operator": "In", "values": ["us-west-2a"]}


@pytest.mark.parametrize("requirements", [(), (IN_A,)])
def test_218_a_node_pool_has_one_event_at_the_begin_and_one_at_the_end(requirements: Any) -> None:
    world = pools(*requirements)
    begin(world)
    (event,) = told(world)
    assert (event.ref.kind, event.type, event.reason) == ("NodePool", "Warning", "ZonalShiftActive")
    assert "usw2-az1" in event.message
    assert told(world) == [], "no change"
    world.facts["shifted"] = {key: until + HOUR for key, until in AWAY.items()}
    assert told(world) == [], "it was only made longer"
    end(world)
    (event,) = told(world)
    assert (event.type, event.reason) == ("Normal", "ZonalShiftCleared")
    assert told(world) == []


@pytest.mark.parametrize(
    "row",
    [
        {"key": labels.ZONE, "operator": "In", "values": ["us-west-2b"]},
        {"key": labels.ZONE, "operator": "NotIn", "values": ["us-west-2a"]},
        {"key": labels.ZONE_ID, "operator": "In", "values": ["usw2-az2"]},
    ],
)
def test_218_one_that_has_no_nodes_there_is_not(row: dict[str, Any]) -> None:
    world = pools(row)
    begin(world)
    assert told(world) == []
    end(world)
    assert told(world) == []


def test_218_nor_when_the_class_has_no_subnet_there_or_is_not_resolved() -> None:
    for known_facts in ({"default": FACTS}, {}):
        world = pools()
        world.class_facts, world.facts["shifted"] = known_facts, AWAY
        assert told(world) == []


def test_218_a_restart_repeats_nothing_and_takes_nothing_back() -> None:
    world = pools()
    begin(world)
    told(world)
    before = world.get(kinds.NODE_POOL, "default").metadata.annotations[labels.ZONAL_SHIFT]
    world.facts["fresh_at"] = unlisted(Source.ZONAL_SHIFTS)
    end(world)
    assert told(world) == []
    assert world.get(kinds.NODE_POOL, "default").metadata.annotations[labels.ZONAL_SHIFT] == before == "usw2-az1"


def test_218_a_malformed_pool_has_the_event_of_one_without_requirements() -> None:
    world = pools()
    known_pool = world.get(kinds.NODE_POOL, "default")
    bad = node_pool(requirements=[{"key": "a", "operator": "Gt", "values": ["x"]}])
    world.put(replace(known_pool, spec=bad.spec))
    begin(world)
    assert [event.reason for event in told(world)] == ["ZonalShiftActive"]
