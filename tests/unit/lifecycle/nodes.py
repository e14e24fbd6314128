"""Worlds with one claim whose instance runs and whose Node joins, or does not."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.model.plan import DeleteObject, Plan
from tests.unit.lifecycle.world import World, node_claim, prepared


def launched(*, spec: dict[str, Any] | None = None) -> World:
    world = prepared(node_claim("a", **(spec or {})))
    world.settle()
    world.deeds.clear()
    return world


def change(world: World, name: str, **spec: Any) -> None:
    node = world.node(name)
    world.put(replace(node, spec=replace(node.spec, **spec)))


def measured(memory: str) -> World:
    """A usable node with this much memory, whose claim asks for some of it and was promised 8Gi."""
    world = launched(spec={"resources": {"requests": {"memory": "1Gi", "ephemeral-storage": "1Gi"}}})
    node = world.join(world.claim())
    capacity = {**node.status.capacity, "memory": memory, "cpu": "1"}
    world.put(replace(node, status=replace(node.status, capacity=capacity)))
    return world


def deletions(plan: Plan) -> list[str]:
    return [action.reason.code for action in plan.actions if isinstance(action, DeleteObject)]
