"""The events of a simulation: removed and launched nodes, evicted pods, and the time of the last change."""

from __future__ import annotations

from dataclasses import replace

from kerf.model import ends, kinds
from kerf.model.ends import HELD
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import of_daemon_set
from kerf.planning.outcomes import Departure, Move, PlannedNode
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.phases import active
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim


class Diary:
    """Record events from the start. `acting` is True while the controller acts: evictions then are Kerf's."""

    def __init__(self, world: World) -> None:
        self._world, self.acting, self.changed = world, False, world.clock.now()
        #: NodeClaims by the name of their node, and the keys of the pods there except those of DaemonSets.
        self._claims: dict[str, str] = {}
        self._pods: dict[str, set[str]] = {}
        #: The NodeClaims at the start; those of them that are removed, by name; later ones that are removed again.
        self.first = frozenset(record.key[1] for record in world.server.records(kinds.NODE_CLAIM))
        self.departures: dict[str, Departure] = {}
        self.passing: dict[str, PlannedNode] = {}
        self.moves: list[Move] = []
        #: By NodePool, the NodeClaims whose drain the deletion guard has delayed, in order of the delay.
        self.guarded: dict[str, list[str]] = {}
        for kind in (kinds.NODE_CLAIM, kinds.POD):
            for record in world.server.records(kind):
                self._heard(record, record)
        world.server.listen(self._heard)

    def node(self, claim: NodeClaim) -> PlannedNode:
        """Return the planned node of a NodeClaim."""
        machine, own = self._world.ec2.instances.get(claim.instance_id), claim.metadata.labels
        return PlannedNode(
            claim.name,
            claim.pool_name,
            own.get(labels.INSTANCE_TYPE, ""),
            own.get(labels.ZONE, ""),
            own.get(labels.CAPACITY_TYPE, ""),
            machine.price if machine is not None else 0,
            len(self._pods.get(claim.status.node_name, ())),
        )

    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        if record.kind.name == kinds.NODE_CLAIM.name:
            self._heard_claim(old, new)
        elif record.kind.name == kinds.POD.name:
            self._heard_pod(old.value if old is not None else None, new.value if new is not None else None)

    def _heard_pod(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.spec.node_name and not of_daemon_set(pod):
                there = self._pods.setdefault(pod.spec.node_name, set())
                (there.add if pod is new and active(pod) else there.discard)(pod.key)
        if new is None or old is None or of_daemon_set(new) or not self.acting:
            return
        if new.metadata.deleting and not old.metadata.deleting:
            self.changed = self._world.clock.now()
            node = new.spec.node_name
            self.moves.append(Move(self.changed, new.key, self._claims.get(node, node)))

    def _heard_claim(self, old: Record | None, new: Record | None) -> None:
        now, claim = self._world.clock.now(), (new or old).value  # type: ignore[union-attr]
        if old is None or new is None:
            self.changed = now
        if claim.status.node_name:
            self._claims[claim.status.node_name] = claim.name
        if claim.is_true(HELD) and claim.name not in (names := self.guarded.setdefault(claim.pool_name, [])):
            names.append(claim.name)
        if claim.metadata.deleting and claim.name not in self.departures and claim.name not in self.passing:
            self.changed = now
            if claim.name in self.first:
                self.departures[claim.name] = Departure(self.node(claim), reason_of(claim), now)
            else:
                self.passing[claim.name] = self.node(claim)
        if new is None and claim.name in self.departures:
            self.departures[claim.name] = replace(self.departures[claim.name], ended=now)


def reason_of(claim: NodeClaim) -> str:
    """Return the reason of a deletion, from the condition of a voluntary disruption or from Kerf's annotation."""
    condition = claim.condition("DisruptionReason")
    if condition is not None and condition.status == "True":
        return condition.reason
    return ends.code(claim) or "Deleted"
