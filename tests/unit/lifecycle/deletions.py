"""A fleet of nodes of which somebody deletes many, and what is seen of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.ends import HELD
from kerf.model.kinds import Kind
from kerf.model.plan import EvictPod, Plan
from kerf.model.writes import with_annotations
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from tests.unit.lifecycle.world import World, node_claim, pod, running

WAIT = timedelta(minutes=10)


def fleet(number: int = 8, **spec: Any) -> World:
    """So many nodes, each with a pod."""
    names = [f"c{place:02}" for place in range(number)]
    world = running(*(node_claim(name, **spec) for name in names))
    for name in names:
        world.put(pod(f"web-{name}", f"node-{name}"))
    return world


def delete(world: World, *names: str, kind: Kind = kinds.NODE_CLAIM) -> None:
    """Somebody deletes these; without names every claim, and the NodePool first."""
    if not names:
        world.delete(kinds.ref(world.get(kinds.NODE_POOL, "default")))
    for name in names or [claim.name for claim in claims(world)]:
        world.delete(kinds.ref(world.get(kind, name)))


def claims(world: World) -> list[Any]:
    return [value for ref, value in sorted(world.objects.items(), key=str) if ref.kind == "NodeClaim"]


def settle(world: World) -> Plan:
    return world.settle(rounds=40)


def drained(world: World) -> set[str]:
    """The nodes whose pods have been made to leave."""
    return {deed.node_name for deed in world.done(EvictPod)}


def live(world: World, seconds: float, step: float = 15) -> None:
    """Time passes, and whatever is to be done is done."""
    for _ in range(int(seconds // step)):
        world.pass_time(step)
        settle(world)


def told(world: World, kind: Kind = kinds.NODE_CLAIM, name: str = "c00") -> Condition | None:
    return conditions.get(world.get(kind, name).status.conditions, HELD)


def held(world: World) -> list[str]:
    return [claim.name for claim in claims(world) if claim.is_true(HELD)]


def annotate(world: World, kind: Kind, name: str, **words: str) -> None:
    world.put(with_annotations(world.get(kind, name), words))


ALLOW = labels.ALLOW_DELETION
