"""Observe a run: pods, nodes and prices, from the events of the API server and of EC2."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kerf.disruption.consolidation.eligibility import WHEN_EMPTY
from kerf.model import kinds
from kerf.model.failures import NO_CAPACITY
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import of_daemon_set, workload
from kerf.planning.diary import Diary, reason_of
from kerf.planning.outcomes import Move
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.api.kinds import EVENT
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.phases import active
from kerf.sandbox.world import World
from kerf.simulating.observed import Level, NodeLife, Observed, PodLife
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim


class Observer:
    """It listens from its creation on. `acting` of the diary is True while the controller acts."""

    def __init__(self, world: World) -> None:
        self._world, self.diary = world, Diary(world)
        now = world.clock.now()
        self.observed = Observed(now, now, now)
        #: Open lives by UID, and the pods of each node.
        self._pods: dict[str, PodLife] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._nodes: dict[str, NodeLife] = {}
        self._dead: set[str] = set()  # names of nodes without an instance
        for kind in (kinds.NODE_POOL, kinds.NODE_CLAIM, kinds.POD):
            for record in world.server.records(kind):
                self._heard(None, record)
        world.server.listen(self._heard)
        world.ec2.listen(self._turned)
        self.priced()

    def refused(self, refusals: Mapping[str, str]) -> None:
        """Note the reasons of pods without a node."""
        for life in self._pods.values():
            if life.started is None:
                life.reason = refusals.get(f"pod/{life.key}", life.reason)

    def end(self, refusals: Mapping[str, str]) -> Observed:
        """The observations until now."""
        self.observed.ended = self._world.clock.now()
        self.observed.evictions = [one for one in self.diary.moves if not self._was_lost(one)]
        for record in self._world.server.records(kinds.NODE_CLAIM):
            claim, life = record.value, self._nodes[record.value.metadata.uid]
            names = (f"node/{claim.status.node_name}", f"nodeclaim/{claim.name}", f"nodepool/{claim.pool_name}")
            life.drifted = claim.is_true("Drifted")
            quiet = self._policy(claim)  # the controller has no event for it
            life.blocker = next((refusals[name] for name in names if name in refusals), quiet)
        return self.observed

    def _policy(self, claim: NodeClaim) -> str:
        """The field of its NodePool that keeps a node in use, or nothing."""
        found = (one.value for one in self._world.server.records(kinds.NODE_POOL) if one.value.name == claim.pool_name)
        pool = next(found, None)
        if pool is None or pool.spec.disruption.consolidation_policy != WHEN_EMPTY:
            return ""
        return f"consolidationPolicy of NodePool {pool.name} is {WHEN_EMPTY}, and the node is in use"

    def priced(self) -> None:
        """Note the number and the price of running instances as of now."""
        alive = [one for one in self._world.ec2.instances.values() if one.state == "running"]
        level = Level(self._world.clock.now(), len(alive), sum(one.price for one in alive))
        levels = self.observed.levels
        if levels and levels[-1].at == level.at:
            levels.pop()
        levels.append(level)

    # --- events ---------------------------------------------------------------------------------------------------
    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        if record.kind.name == kinds.POD.name:
            self._heard_pod(record.value, gone=new is None)
        elif record.kind.name == kinds.NODE_CLAIM.name:
            self._heard_claim(record.value, gone=new is None)
        elif record.kind.name == kinds.NODE_POOL.name:
            self.observed.pools.add(record.value.name)
        elif record.kind.name == EVENT.name and record.value.reason == NO_CAPACITY:
            self.observed.failures[record.value.message] += 1

    def _heard_pod(self, pod: Pod, *, gone: bool) -> None:
        if of_daemon_set(pod):
            return
        now, uid = self._world.clock.now(), pod.metadata.uid
        life = self._pods.get(uid)
        if life is None:
            life = self._pods[uid] = PodLife(pod.key, workload_of(pod), now)
            self.observed.pods.append(life)
        if gates := ", ".join(one.name for one in pod.spec.scheduling_gates):
            life.reason = f"gated: nothing in the simulation removes its schedulingGates ({gates})"
        if pod.spec.node_name:
            self._by_node.setdefault(pod.spec.node_name, {})[uid] = None
            life.lost = life.lost or pod.spec.node_name in self._dead
        if life.started is None and pod.status.phase == "Running":
            life.started, life.zone = now, self._zone(pod.spec.node_name)
        if (gone or not active(pod)) and life.stopped is None:
            life.stopped = now
        if gone:
            self._pods.pop(uid, None)
            self._by_node.get(pod.spec.node_name, {}).pop(uid, None)

    def _heard_claim(self, claim: NodeClaim, *, gone: bool) -> None:
        now, uid = self._world.clock.now(), claim.metadata.uid
        life = self._nodes.get(uid)
        if life is None:
            life = self._nodes[uid] = NodeLife(claim.name, claim.pool_name, "", "", "", now)
            self.observed.nodes.append(life)
        own = claim.metadata.labels
        life.instance_type = own.get(labels.INSTANCE_TYPE, life.instance_type)
        life.zone = own.get(labels.ZONE, life.zone)
        life.capacity_type = own.get(labels.CAPACITY_TYPE, life.capacity_type)
        life.had_drifted = life.had_drifted or claim.is_true("Drifted")
        if claim.metadata.deleting and life.ending is None:
            life.ending, life.reason = now, reason_of(claim)
        if gone:
            life.gone = now

    def _turned(self, machine: Machine) -> None:
        self.priced()
        if machine.state == "terminated":
            self._failed(machine, self._world.clock.now())

    def _failed(self, machine: Machine, now: datetime) -> None:
        """The pods of a terminated instance have stopped, whatever the API server shows."""
        for record in self._world.server.records(kinds.NODE):
            if record.value.spec.provider_id == machine.provider_id:
                self._dead.add(record.value.name)
                for uid in self._by_node.get(record.value.name, ()):
                    life = self._pods[uid]
                    life.lost = life.lost or life.stopped is None
                    life.stopped = life.stopped or now

    def _was_lost(self, move: Move) -> bool:
        """Whether the pod had stopped with its instance before: the controller only removes what is left of it."""
        same = [one for one in self.observed.pods if one.key == move.pod and one.created <= move.at]
        return bool(same) and same[-1].lost

    def _zone(self, node: str) -> str:
        record = self._world.server.find(kinds.NODE, "", node)
        return record.value.metadata.labels.get(labels.ZONE, "") if record is not None else ""


def workload_of(pod: Pod) -> str:
    """`namespace/name` of what controls a pod; its own without a controller."""
    found = workload(pod)
    return f"{pod.metadata.namespace}/{found[1]}" if found is not None else pod.key
