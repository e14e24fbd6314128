"""What goes whatever budgets say: old claims, and what has lost its other half (127, 131, 132 of the catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import disrupt
from kerf.model import kinds
from kerf.model.plan import DeleteObject, Plan, TerminateInstance
from kerf.sandbox.world import World as Sandbox
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from tests.unit.disruption import worlds as w
from tests.unit.lifecycle.world import World, node_claim, prepared, running
from tests.unit.sandbox.sandbox_world import launch

SECOND = timedelta(seconds=1)
EXPIRED = "karpenter_nodeclaims_disrupted_total"


def deletions(plan: Plan) -> list[DeleteObject]:
    return [action for action in plan.actions if isinstance(action, DeleteObject)]


def deleted(plan: Plan) -> list[str]:
    return [str(action.ref) for action in deletions(plan)]


def terminated(plan: Plan) -> list[str]:
    return [action.instance_id for action in plan.actions if isinstance(action, TerminateInstance)]


def noted(world: World) -> Plan:
    """The plan after what is to be ended has been written down."""
    world.obey(world.decide())
    return world.decide()


# --- 127 --------------------------------------------------------------------------------------------------------
def old(age: timedelta, **more: Any) -> Plan:
    """Of a claim so old that lives half an hour."""
    own = w.claim("a", since=w.NOW - age, **{"expireAfter": "30m", **more})
    return disrupt(w.snapshot([w.pool(budgets=[{"nodes": "0"}]), own]), w.never)


def test_127_a_claim_that_has_reached_its_age_is_deleted_and_counted() -> None:
    (deletion,) = deletions(old(30 * w.MINUTE))
    assert (str(deletion.ref), deletion.uid, deletion.reason.code) == ("nodeclaim/a", "uid-a", "Expired")
    sandbox = Sandbox()
    telemetry = Telemetry.quiet(sandbox.kube, sandbox.clock)
    telemetry.done(deletion, "ok", None, None, w.claim("a"))
    row = {"reason": "expired", "nodepool": "default", "capacity_type": "on-demand"}
    row |= {"consolidation_policy": "", "termination_mode": "graceful"}
    assert telemetry.metrics.registry.get_sample_value(EXPIRED, row) == 1


def test_127_a_younger_one_is_looked_at_again_at_that_very_instant() -> None:
    plan = old(29 * w.MINUTE + 59 * SECOND)
    assert (deleted(plan), plan.next_due) == ([], w.NOW + SECOND)


def test_127_one_without_an_end_or_that_goes_already_is_left_alone() -> None:
    assert deleted(old(9000 * w.HOUR, expireAfter="Never")) == []
    own = w.claim("a", since=w.NOW - w.HOUR, expireAfter="30m")
    going = replace(own, metadata=replace(own.metadata, deletion_timestamp=w.NOW))
    assert deleted(disrupt(w.snapshot([w.pool(), going, w.node(own)]), w.never)) == []


def test_127_it_is_the_claim_that_ages() -> None:
    """Not its node, which may be older or younger."""
    own = w.claim("a", since=w.NOW - 29 * w.MINUTE, expireAfter="30m")
    node = w.node(own)
    for age in (9000 * w.HOUR, timedelta(0)):
        born = replace(node, metadata=replace(node.metadata, creation_timestamp=w.NOW - age))
        assert deleted(disrupt(w.snapshot([w.pool(), own, born, w.pod("web", "a")]), w.never)) == []
        late = w.NOW + w.MINUTE
        assert deleted(disrupt(w.snapshot([w.pool(), own, born], now=late), w.never)) == ["nodeclaim/a"]


# --- 131 --------------------------------------------------------------------------------------------------------
def lost(*names: str, ready: bool | None = False) -> World:
    """Registered claims whose instances are gone; their Nodes ready, not ready, or gone too (None)."""
    world = running(*map(node_claim, names))
    world.pass_time(60)
    world.instances.clear()
    for name in names:
        if ready is None:
            world.objects.pop(kinds.ref(world.node(f"node-{name}")))
        else:
            world.set_ready(f"node-{name}", ready)
    world.pass_time(5)
    return world


@pytest.mark.parametrize(("ready", "expected"), [(True, []), (False, ["nodeclaim/a"])])
def test_131_a_claim_whose_instance_is_gone_goes_unless_its_node_is_ready(*, ready: bool, expected: list[str]) -> None:
    assert deleted(noted(lost("a", ready=ready))) == expected


def test_131_a_claim_whose_instance_and_node_are_gone_goes() -> None:
    assert deleted(lost("a", ready=None).decide()) == ["nodeclaim/a"]


def test_131_one_that_has_not_registered_or_has_its_instance_stays() -> None:
    young = prepared(node_claim("a"))
    young.settle()
    young.instances.clear()
    young.pass_time(100)
    assert deleted(noted(young)) == []
    sick = running(node_claim("a"))
    sick.set_ready("node-a", False)
    sick.pass_time(500)
    assert deleted(noted(sick)) == []


@pytest.mark.parametrize(("number", "gone"), [(5, True), (6, False)])
def test_131_several_are_deleted_at_once_and_many_only_after_a_person_has_checked(number: int, gone: bool) -> None:
    names = [f"c{i}" for i in range(number)]
    found = sorted(deleted(noted(lost(*names))))
    assert found == ([f"nodeclaim/{name}" for name in names] if gone else [])


# --- 132 --------------------------------------------------------------------------------------------------------
def test_132_an_instance_without_a_claim_is_ended_with_its_node() -> None:
    world = running(node_claim("a"), node_claim("b"))
    world.objects.pop(kinds.ref(world.claim()))
    world.pass_time(60)
    plan = noted(world)
    assert terminated(plan) == ["i-0000"]
    assert deleted(plan) == ["node/node-a"]


def test_132_not_before_its_claim_has_had_the_time_to_show() -> None:
    world = prepared()
    world.add_instance("i-lost", {labels.LAUNCH_GROUP: "g"})
    for seconds in (30, 29):
        world.pass_time(seconds)
        assert terminated(noted(world)) == []
    world.pass_time(1)
    world.settle()
    assert [end.instance_id for end in world.done(TerminateInstance)] == ["i-lost"]


def test_132_one_that_a_claim_has_or_waits_for_is_left_alone() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    world.add_instance("i-mine", {labels.LAUNCH_GROUP: group})
    world.pass_time(70)
    assert terminated(noted(world)) == []
    world.settle()
    assert world.claim().instance_id == "i-mine"
    world.join(world.claim())
    world.settle()
    world.pass_time(7000)
    assert terminated(noted(world)) == []


@pytest.mark.parametrize("tag", [labels.TAG_NODEPOOL, labels.TAG_NODECLASS, labels.TAG_EKS_CLUSTER])
def test_132_what_was_not_launched_for_a_claim_is_not_even_seen(tag: str) -> None:
    """It lacks a tag that every launch gives."""
    world = Sandbox()
    world.ec2.fleet(launch(world, "a", group="ours"))
    request = launch(world, "b", group="theirs")
    tags = {key: value for key, value in request.tags.items() if key != tag}
    world.ec2.fleet(replace(request, tags=tags))
    world.clock.sleep(300)
    assert len(world.ec2.describe()) == 2
    assert len(world.cloud.instances()) == 1
