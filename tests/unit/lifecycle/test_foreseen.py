"""What pending launches need is made before their claims are there: the launch templates of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kerf.decide import decide
from kerf.ec2.launch import fleet
from kerf.lifecycle.nodeclaim import foreseen
from kerf.lifecycle.nodeclaim.foreseen import prepare
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim, EnsureTemplate, LaunchInstances, Plan
from kerf.model.snapshot import Batch
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.world import NOW, World, node_claim, prepared
from tests.unit.scheduling import worlds as w


def names(plan: Plan) -> list[str]:
    return [action.template.name for action in plan.actions if isinstance(action, EnsureTemplate)]


def tainted(name: str, value: str) -> NodeClaim:
    return node_claim(name, taints=[{"key": "for", "value": value, "effect": "NoSchedule"}])


def test_the_templates_are_those_that_the_calls_name_later() -> None:
    claims = [node_claim("a"), node_claim("b"), tainted("c", "batch")]
    made = names(prepare(prepared().snapshot(), claims))
    later = prepared(*claims)
    later.settle()
    used = {template.name for launch in later.done(LaunchInstances) for template in launch.request.templates}
    assert len(used) == 2
    assert made == sorted(used)


def test_what_cannot_be_launched_now_needs_nothing() -> None:
    world = prepared()
    assert prepare(world.snapshot(), ()).actions == ()
    del world.objects[Ref(kinds.NODE_CLASS.name, "", "default")]
    assert prepare(world.snapshot(), [node_claim("a")]).actions == ()


def test_claims_of_many_kinds_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, original = list[str](), fleet.plan

    def noted(claims: Sequence[NodeClaim], *rest: Any, **more: Any) -> Any:
        asked.append(claims[0].name)
        return original(claims, *rest, **more)

    monkeypatch.setattr(fleet, "plan", noted)
    many = [tainted(f"c{number}", str(number)) for number in range(3 * foreseen.CALLS)]
    assert len(names(prepare(prepared().snapshot(), many))) == len(asked) == foreseen.CALLS


# --- in the whole -----------------------------------------------------------------------------------------------
def waiting() -> World:
    """A pool at rest, and nine pods that came at once; their batch closes after a second."""
    world = prepared()
    for value in w.replicas(9, "p", "900m"):
        world.put(value)
    world.facts["batch"] = Batch(NOW, NOW)
    return world


def look(world: World, seconds: float) -> Plan:
    world.now = NOW + timedelta(seconds=seconds)
    return decide(world.snapshot(), Memory())


def created(plan: Plan) -> list[NodeClaim]:
    return [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]


def test_templates_are_asked_for_while_the_pods_wait_and_claims_when_their_time_has_come() -> None:
    world = waiting()
    soon, early, late = look(world, 0.1), look(world, 0.3), look(world, 1)
    assert [len(names(plan)) for plan in (soon, early, late)] == [0, 1, 0]
    assert [len(created(plan)) for plan in (soon, early)] == [0, 0]
    assert created(late) == list(early.foreseen) != []
