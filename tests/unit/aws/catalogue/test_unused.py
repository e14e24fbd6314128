"""What nothing needs any more: launch templates (158), instance profiles (175, 181, 199)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.nodeclass import nodeclass
from kerf.lifecycle.nodeclass.unused import AT_ONCE, KEPT
from kerf.model import kinds
from kerf.model.aws.inventory import PROFILE, TEMPLATE, Inventory, Resource
from kerf.model.plan import DeleteUnused, LaunchInstances, Plan, Source
from kerf.runtime.observe.observer import INVENTORIES_EVERY, STEPS
from kerf.runtime.state.inventories import Inventories
from kerf_api import labels
from tests.unit.lifecycle.world import CLUSTER, FACTS, NOW, World, node_claim, prepared, running
from tests.unit.lifecycle.world import node_class as stored

HOUR = timedelta(hours=1)


def listing(kind: str, names: Iterable[str], used: Any = NOW - 2 * HOUR) -> dict[str, Inventory]:
    rows = tuple(Resource(kind, f"id-{name}", name, NOW - 24 * HOUR) for name in sorted(names))
    return {kind: Inventory(rows, dict.fromkeys((one.name for one in rows), used))}


def went(plan: Plan) -> list[str]:
    return [action.resource.name for action in plan.actions if isinstance(action, DeleteUnused)]


def shelve(world: World, kind: str, *names: str, used: Any = NOW - 2 * HOUR) -> World:
    world.facts["inventories"] = listing(kind, names, used)
    return world


# --- launch templates -------------------------------------------------------------------------------------------
def test_158_a_template_that_was_not_used_for_an_hour_goes() -> None:
    assert timedelta(hours=1) == KEPT
    world = shelve(prepared(), TEMPLATE, "old", used=NOW)
    plan = world.decide()
    assert went(plan) == []
    assert plan.next_due == NOW + KEPT
    world.pass_time((KEPT - timedelta(seconds=1)).total_seconds())
    assert went(world.decide()) == []
    world.pass_time(1)
    (deletion,) = [action for action in world.decide().actions if isinstance(action, DeleteUnused)]
    assert (deletion.resource.id, deletion.lane) == ("id-old", "launch template/id-old")
    assert {Source.NODE_CLAIMS, Source.NODE_CLASSES} <= deletion.sources


def test_158_a_template_of_a_launch_to_come_or_under_way_stays() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    (launch,) = [action for action in world.decide().actions if isinstance(action, LaunchInstances)]
    (template,) = launch.request.templates
    shelve(world, TEMPLATE, template.name, "other")
    assert went(world.decide()) == ["other"]
    world.settle()
    assert labels.LAUNCH_REQUEST not in world.claim().metadata.annotations
    shelve(world, TEMPLATE, template.name)
    world.facts["under_way"] = (launch,)
    assert went(world.decide()) == []
    world.facts["under_way"] = ()
    assert went(world.decide()) == [template.name]


@pytest.mark.parametrize("kind", [TEMPLATE, PROFILE])
def test_199_few_go_for_each_time_that_they_are_listed(kind: str) -> None:
    most, world = AT_ONCE[kind], prepared()
    names = [f"old-{number:03}" for number in range(most + 3)]
    shelve(world, kind, *names)
    assert went(world.decide()) == names[:most]
    (inventory,) = listing(kind, names[2:]).values()
    world.facts["inventories"] = {kind: changed(inventory, deleted=2)}
    assert went(world.decide()) == names[2:most]
    world.facts["inventories"] = {kind: changed(inventory, deleted=most)}
    assert went(world.decide()) == []


@pytest.mark.parametrize("kind", [TEMPLATE, PROFILE])
@pytest.mark.parametrize("source", [Source.NODE_CLAIMS, Source.NODE_CLASSES, Source.INSTANCES])
def test_199_on_stale_data_nothing_is_deleted(kind: str, source: Source) -> None:
    world = shelve(prepared(), kind, "old")
    world.facts["fresh_at"] = dict.fromkeys(Source, world.now) | {source: world.now - timedelta(seconds=91)}
    plan = world.decide()
    assert went(plan) == []
    assert [r.reason.code for r in plan.refusals if r.subject == f"unused {kind}s"] == ["StaleSource"]


# --- instance profiles ------------------------------------------------------------------------------------------
def test_199_a_profile_that_a_class_names_or_is_to_name_stays() -> None:
    world, to_be = prepared(), nodeclass.profile_for(stored(), CLUSTER)[0]
    named = world.get(kinds.NODE_CLASS, "default").status.instance_profile
    assert named == FACTS.instance_profile != to_be
    shelve(world, PROFILE, named, to_be, "old")
    assert went(world.decide()) == ["old"]


def test_199_a_profile_that_a_claim_was_launched_with_or_is_to_be_stays() -> None:
    world = prepared(node_claim("a"))
    of = world.get(kinds.NODE_CLASS, "default")
    world.put(replace(of, status=replace(of.status, instance_profile="former")))
    world.class_facts["default"] = changed(FACTS, instance_profile="former")
    world.obey(world.decide())
    of = world.get(kinds.NODE_CLASS, "default")
    world.put(replace(of, status=replace(of.status, instance_profile="new")))
    world.class_facts["default"] = changed(FACTS, instance_profile="new")
    assert labels.LAUNCH_REQUEST in world.claim().metadata.annotations
    shelve(world, PROFILE, "former", "old")
    assert went(world.decide()) == ["old"]
    world.settle()
    shelve(world, PROFILE, "former", "old")
    assert world.claim().metadata.annotations[labels.INSTANCE_PROFILE] == "former"
    world.instances.clear()
    assert went(world.decide()) == ["old"]
    world.objects.pop(kinds.ref(world.claim()))
    assert went(world.decide()) == ["former", "old"]


def test_199_a_profile_that_an_instance_has_stays_whatever_became_of_its_claim() -> None:
    world = shelve(running(node_claim("a")), PROFILE, "lost", "old")
    (instance,) = world.instances.values()
    world.instances[instance.id] = changed(instance, profile="lost")
    world.objects.pop(kinds.ref(world.claim()))
    assert went(world.decide()) == ["old"]


@pytest.mark.parametrize("kind", ["NodeClaim", "EC2NodeClass"])
def test_199_while_something_cannot_be_read_that_may_name_a_profile_all_stay(kind: str) -> None:
    world = shelve(running(node_claim("a")), PROFILE, "old")
    torn = world.claim() if kind == "NodeClaim" else world.get(kinds.NODE_CLASS, "default")
    world.put(replace(torn, metadata=replace(torn.metadata, unreadable="$.spec: torn")))
    assert went(world.decide()) == []


def test_199_they_are_listed_every_half_hour_and_what_failed_is_tried_again_at_once() -> None:
    assert timedelta(minutes=30) == INVENTORIES_EVERY
    assert STEPS.first <= timedelta(seconds=1)


def passed(world: World, inventories: Inventories, *, profile: str) -> None:
    """The class has another profile from now on, and that is noticed."""
    before = world.get(kinds.NODE_CLASS, "default")
    after = world.put(replace(before, status=replace(before.status, instance_profile=profile)))
    world.class_facts["default"] = changed(FACTS, instance_profile=profile)
    inventories.noticed(before, after, world.now)


def test_175_each_role_has_a_profile_and_those_of_before_stay_for_an_hour() -> None:
    """The present one for as long as the class names it."""
    names = [nodeclass.profile_for(stored(role=role), CLUSTER)[0] for role in "abc"]
    assert len(set(names)) == 3
    world, inventories = prepared(), Inventories()
    inventories.listed(PROFILE, [Resource(PROFILE, n, n, NOW - 24 * HOUR) for n in names], NOW - 24 * HOUR)
    for name in names:
        world.pass_time(60)
        passed(world, inventories, profile=name)
    world.facts["inventories"] = inventories.told()
    assert went(world.decide()) == []
    world.pass_time(KEPT.total_seconds() - 61)
    assert went(world.decide()) == []
    world.pass_time(1)
    assert went(world.decide()) == [names[0]]
    world.pass_time(24 * 3600)
    assert went(world.decide()) == names[:2]


def test_181_a_class_with_a_profile_of_its_own_keeps_that_of_the_role_for_an_hour() -> None:
    world, inventories = prepared(), Inventories()
    old = world.get(kinds.NODE_CLASS, "default").status.instance_profile
    inventories.listed(PROFILE, [Resource(PROFILE, old, old, NOW - 24 * HOUR)], NOW - 24 * HOUR)
    of = world.get(kinds.NODE_CLASS, "default")
    world.put(replace(of, spec=replace(of.spec, role=None, instance_profile="mine")))
    passed(world, inventories, profile="mine")
    world.facts["inventories"] = inventories.told()
    assert went(world.decide()) == []
    world.pass_time(KEPT.total_seconds())
    assert went(world.decide()) == [old]
