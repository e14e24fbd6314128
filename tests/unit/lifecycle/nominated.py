"""Claims that were made for pods, the nodes they become, and what those pods are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed

from msgspec.structs import replace

from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import PatchObject
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels
from tests.unit.lifecycle.world import World, node_claim, pod, prepared

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REFUSED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str, **spec: object) -> Pod:
    one = pod(name, "", status=REFUSED, **spec)
    return replace(one, status=replace(one.status, start_time=None))


def marked(*planned: str) -> dict[str, str]:
    return {labels.PLANNED_PODS: ",".join(pod_mark(f"uid-{name}") for name in planned)}


def launched(*planned: str, on: bool = True, **spec: object) -> World:
    """A claim that was made for these pods, with its instance; `web` and `db` wait."""
    world = prepared(node_claim("a", meta={"annotations": marked(*planned)}, **spec))
    world.settings = changed(world.settings, nominate_pods=on)
    world.settle()
    world.put(waiting("web"))
    world.put(waiting("db"))
    world.deeds.clear()
    return world


def ranked(*, web: Sequence[str] = ("web",), db: Sequence[str] = ("db",), **more: object) -> World:
    """Two claims with their instances: `a` was made for `web`, `b` for `db`, which is more important; both wait."""
    world = prepared(
        node_claim("a", meta={"annotations": marked(*web)}), node_claim("b", meta={"annotations": marked(*db), **more})
    )
    world.settings = changed(world.settings, nominate_pods=True)
    world.settle()
    important = waiting("db")
    world.put(waiting("web"))
    world.put(replace(important, spec=replace(important.spec, priority=100)))
    return world


def join(world: World, claim: str = "a", *, ready: bool = True, taints: Sequence[dict[str, str]] = ()) -> Node:
    """Its machine joins now."""
    held = {"key": labels.UNREGISTERED_TAINT, "effect": "NoExecute"}
    node = world.join(world.claim(claim), ready=ready, taints=[held, *taints])
    found: Node = world.put(replace(node, metadata=replace(node.metadata, creation_timestamp=world.now)))
    return found


def name_node(world: World, name: str, node_name: str) -> None:
    """What the kube-scheduler writes when it forgets, or makes others go."""
    one = world.objects[Ref("Pod", "default", name)]
    world.put(replace(one, status=replace(one.status, nominated_node_name=node_name)))


def bind(world: World, name: str, node_name: str) -> None:
    one = world.objects[Ref("Pod", "default", name)]
    world.put(replace(one, spec=replace(one.spec, node_name=node_name)))


def occupy(world: World, node_name: str, cpu: str) -> None:
    world.put(pod("stranger", node_name, containers=[{"name": "a", "resources": {"requests": {"cpu": cpu}}}]))


def writes(world: World) -> list[tuple[str, str]]:
    """What pods are to be told now."""
    return [(a.verb, a.ref.name) for a in world.decide().actions if isinstance(a, PatchObject) and a.ref.kind == "Pod"]


def has_just_come(world: World, node: Node) -> None:
    ready = tuple(replace(c, last_transition_time=world.now) for c in node.status.conditions)
    world.put(replace(node, status=replace(node.status, conditions=ready)))


def told(world: World) -> dict[str, str]:
    found = (world.objects[Ref("Pod", "default", name)] for name in ("db", "web"))
    return {one.metadata.name: one.status.nominated_node_name for one in found}
