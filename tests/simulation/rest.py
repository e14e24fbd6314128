"""What must be true of a world that has come to rest: nothing is on its way, and nothing is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from datetime import timedelta
from typing import Any

from kerf.disruption.command import failure_of
from kerf.disruption.consolidation.pausing import pause_of
from kerf.model import kinds
from kerf.model.kinds import DEPLOYMENT, STATEFUL_SET, Kind
from kerf.model.kubernetes.objects import Node, Pod
from kerf.sandbox.nodes.kubelets import COMPLETES_AFTER
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

#: So long after a back-off, at most, the slow half has thought again, and what it proposes has stood its time.
THOUGHT_AGAIN = timedelta(minutes=3)
#: A back-off that ends later than this is a state of rest: replacements that came up other than planned wait a day. So
#: is the hour after two that were late.
_DAY_ENDS = timedelta(hours=12)


def unrest(world: World, waiting: Container[str] = ()) -> list[str]:
    """Objects that are still on their way, or left over. Pods that are `waiting`, by key, may stay as they are."""
    return [*_pools(world), *_claims(world), *_nodes(world), *_pods(world, waiting)]


def _pools(world: World) -> Iterator[str]:
    now = world.clock.now()
    for pool in _values(world, kinds.NODE_POOL):
        pause = pause_of(pool, now)
        if pause is not None and pause.until(pool.name) + THOUGHT_AGAIN > now:
            yield f"the consolidation of pool {pool.name} is paused"


def _claims(world: World) -> Iterator[str]:
    claims: list[NodeClaim] = list(_values(world, kinds.NODE_CLAIM))
    for claim in claims:
        if claim.metadata.deleting or not claim.is_true("Initialized"):
            yield f"claim {claim.name} is {'going' if claim.metadata.deleting else 'not initialized'}"
        for key in (labels.COMMAND, labels.TERMINATION_TIMESTAMP):
            if key in claim.metadata.annotations:
                yield f"claim {claim.name} carries {key}"
        if claim.is_true("DisruptionReason"):
            yield f"claim {claim.name} has a DisruptionReason"
        failure = failure_of(claim.metadata.annotations, world.clock.now())
        wait = failure.until - world.clock.now() if failure is not None else -THOUGHT_AGAIN
        if -THOUGHT_AGAIN < wait < _DAY_ENDS and not (failure is not None and failure.late and failure.count > 1):
            yield f"claim {claim.name} is to be replaced again when it has backed off"
    living = {m.id for m in world.ec2.instances.values() if m.state != "terminated"}
    nodes = {n.spec.provider_id.rpartition("/")[2] for n in _values(world, kinds.NODE)}
    held = {instance_of(claim) for claim in claims}
    if not living == nodes == held:
        yield f"instances {sorted(living)}, nodes {sorted(nodes)}, claims {sorted(held)} are not the same"


def _nodes(world: World) -> Iterator[str]:
    nodes: list[Node] = list(_values(world, kinds.NODE))
    for node in nodes:
        odd = [t.key for t in node.spec.taints if t.key != "team"]
        if node.metadata.deleting or not node.ready or odd or labels.EXCLUDE_BALANCERS in node.metadata.labels:
            yield f"node {node.name} is going, not ready, tainted ({', '.join(odd)}) or out of load balancers"


def _pods(world: World, waiting: Container[str]) -> Iterator[str]:
    """No pod with a controller is lost; none waits but those that may."""
    here: list[Pod] = [p for p in _values(world, kinds.POD) if not p.metadata.deleting]
    settled = [p for p in here if p.status.phase in ("Running", "Succeeded") or p.key in waiting]
    yield from (f"pod {p.key} is {p.status.phase}" for p in here if p not in settled)
    working = [p for p in settled if COMPLETES_AFTER in p.metadata.annotations and p.status.phase == "Running"]
    yield from (f"pod {p.key} has not completed" for p in working)
    running = Counter(p.metadata.labels.get("app") for p in settled if p.status.phase != "Succeeded")
    held_up = {
        p.metadata.labels.get("app") for p in here if p.key in waiting
    }  # a StatefulSet makes one after the other
    for kind in (DEPLOYMENT, STATEFUL_SET):
        for app in _values(world, kind):
            if running[app.metadata.name] != app.spec.replicas and app.metadata.name not in held_up:
                yield f"{app.metadata.name} has {running[app.metadata.name]} of {app.spec.replicas} pods"


def instance_of(claim: NodeClaim) -> str:
    """The instance that a claim has, also before its status says so; empty while it has none."""
    return claim.instance_id or claim.metadata.annotations.get(labels.INSTANCE, "")


def _values(world: World, kind: Kind) -> Iterator[Any]:
    return (record.value for record in world.server.records(kind))
