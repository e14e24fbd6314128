"""A node that is going, with pods of every kind, and who leaves it by a plan."""

from __future__ import annotations

from typing import Any

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import VolumeAttachment
from kerf.model.plan import DeleteObject, EvictPod, Plan
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.world import World, node_claim, running

DAEMON = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]}
MIRROR = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node"}]}
TOLERANT = [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]
CRITICAL = "system-cluster-critical"


def draining(*pods: Pod, grace: str | None = None) -> World:
    """A node that is going, tainted already, with these pods."""
    extra: dict[str, Any] = {} if grace is None else {"terminationGracePeriod": grace}
    world = running(node_claim("a", **extra))
    for value in pods:
        world.put(value)
    world.delete(kinds.ref(world.claim()))
    while labels.DISRUPTED_TAINT not in [t.key for t in world.node("node-a").spec.taints]:
        world.obey(world.decide())
    world.deeds.clear()
    return world


def evicted(plan: Plan) -> list[str]:
    return [action.ref.name for action in plan.actions if isinstance(action, EvictPod)]


def forced(plan: Plan) -> list[tuple[str, int | None]]:
    found = [a for a in plan.actions if isinstance(a, DeleteObject) and a.ref.kind == "Pod"]
    return [(a.ref.name, a.grace_seconds) for a in found]


def attachment(name: str = "va", volume: str = "pv-1") -> VolumeAttachment:
    source = {"persistentVolumeName": volume}
    return decode(VolumeAttachment, {"metadata": {"name": name}, "spec": {"nodeName": "node-a", "source": source}})
