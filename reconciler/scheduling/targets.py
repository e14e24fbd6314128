"""Nodes that exist or are on their way, as places for pods: room, labels, taints, host ports.

A claim that has not been launched yet counts with what is certain whatever it becomes: the least room among its types,
and a label only where all outcomes agree. The pods that it was made for fit it by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from api import labels
from api.requirements import IN, Requirement, Requirements, requirement
from api.v1.meta import Taint
from api.v1.nodeclaim import NodeClaim
from reconciler.model import pods
from reconciler.model.claims import check
from reconciler.model.objects import Pod
from reconciler.model.snapshot import Snapshot, StateNode
from reconciler.scheduling.daemons import Daemon
from reconciler.scheduling.ports import HostPort, host_ports
from reconciler.scheduling.types import NO_PRICE, Columns, Ints, TypeTable


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One place. `possible` holds each label's possible values; `marks` name the pods that it was made for.

    Once it is initialised the kube-scheduler has had its say, and the marks count no more. While it is `settling`
    (within its pool's consolidateAfter) consolidation moves nothing there.
    """

    key: str
    state: StateNode
    possible: Requirements
    taints: tuple[Taint, ...]
    free: Ints
    ports: tuple[HostPort, ...]
    marks: frozenset[str]
    hostname: str
    settling: bool

    def domains(self, key: str) -> tuple[str | None, ...]:
        """The values that a label may have; `(None,)` when the node has none."""
        if key == labels.HOSTNAME:
            return (self.hostname,)
        row = self.possible.get(key)
        return tuple(sorted(row.values)) if row is not None and row.values else (None,)


class Surveyor:
    """Reads state nodes as targets. What pods of one shape take is read once, as long as it is the same object."""

    def __init__(
        self, snapshot: Snapshot, columns: Columns, tables: Mapping[str, TypeTable], daemons: Sequence[Daemon]
    ) -> None:
        self._snapshot, self._columns, self._tables, self._daemons = snapshot, columns, tables, daemons
        self._shares = [(daemon, columns.vector(daemon.requests)) for daemon in daemons]
        #: By the identities of what the amounts are read from; the pod keeps these alive.
        self._needs: dict[tuple[int, ...], tuple[Pod, Ints]] = {}

    def targets(self) -> list[Target]:
        """All places in the order in which they are tried: initialised ones first, then by name."""
        states = self._snapshot.state_nodes
        found = [self.target(key, states[key]) for key in sorted(states)]
        open_ = [target for target in found if target is not None]
        return sorted(open_, key=lambda t: (not t.state.initialized, t.state.name, t.key))

    def target(self, key: str, state: StateNode, moving: frozenset[str] = frozenset()) -> Target | None:
        """The place that a state node is; None when it takes no pods. Pods in `moving` take no room there."""
        if any(one is not None and one.metadata.unreadable for one in (state.node, state.claim)):
            return None
        if state.deleting or (state.node is not None and state.node.spec.unschedulable):
            return None
        try:
            return self._target(key, state, moving)
        except Exception:  # what nobody can reckon with takes no pods
            return None

    def _target(self, key: str, state: StateNode, moving: frozenset[str]) -> Target | None:
        claim = state.claim
        if claim is not None:
            check(claim)
        fresh = claim is not None and not state.initialized
        planned = claim.metadata.annotations.get(labels.PLANNED_PODS, "") if claim is not None and fresh else ""
        marks = frozenset(mark for mark in planned.split(",") if mark)
        if state.node is None and claim is not None and not claim.status.allocatable:
            opened = _open_claim(claim, self._tables.get(claim.spec.node_class_ref.name), self._daemons)
            if opened is None:
                return None
            possible, free = opened
            return Target(key, state, possible, claim.spec.taints, free, (), marks, state.name, False)
        own = dict(state.labels)
        hostname = own.setdefault(labels.HOSTNAME, state.name)
        possible = Requirements.of_labels(own)
        bound = self._snapshot.pods.on(state.name) if state.node is not None else ()
        staying = [pod for pod in bound if not pods.terminal(pod) and (not moving or pod.key not in moving)]
        taints, settling = state.taints, _settling(state, self._snapshot)
        free = self._room(state, staying, possible, taints)
        ports = tuple(sorted(port for pod in staying for port in host_ports(pod)))
        return Target(key, state, possible, taints, free, ports, marks, hostname, settling)

    def _room(self, state: StateNode, staying: Iterable[Pod], own: Requirements, taints: tuple[Taint, ...]) -> Ints:
        """Allocatable less what runs there less what daemon sets will still bring."""
        used, daemon_used = self._columns.vector({}), self._columns.vector({})
        for pod in staying:
            need = self._need(pod)
            used += need
            if pods.of_daemon_set(pod):
                daemon_used += need
        expected = self._columns.vector({})
        for daemon, share in self._shares:
            if daemon.fits_labels(own, taints):
                expected += share
        still = np.maximum(expected - daemon_used, 0)
        free: Ints = self._columns.vector(state.allocatable) - used - still
        return free

    def _need(self, pod: Pod) -> Ints:
        spec = pod.spec
        parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead or None)
        key = tuple(id(part) for part in parts)
        known = self._needs.get(key)
        if known is None:
            known = self._needs[key] = (pod, self._columns.vector(pods.requests(pod)))
        return known[1]


def _settling(state: StateNode, snapshot: Snapshot) -> bool:
    """Whether the node is still within its pool's consolidateAfter."""
    pool, claim = snapshot.node_pools.get(state.pool_name), state.claim
    if pool is None or claim is None or not pool.consolidate_after:
        return False
    initialized = claim.condition("Initialized")
    if initialized is None or initialized.status != "True":
        return False
    since = claim.status.last_pod_event_time or initialized.last_transition_time
    return since is not None and snapshot.now - since < pool.consolidate_after


def _open_claim(
    claim: NodeClaim, table: TypeTable | None, daemons: Sequence[Daemon]
) -> tuple[Requirements, Ints] | None:
    """What is certain of a claim that has not been launched: label values, and the least room of its types."""
    if table is None or not table.types:
        return None
    wanted = claim.requirements() & Requirements.of_labels(claim.metadata.labels)
    mask = np.ones(len(table.types), dtype=np.bool_)
    for row in wanted.values():
        mask &= table.mask(row)
    markets = table.market_mask(wanted)
    mask &= (table.price[:, markets].min(axis=1, initial=NO_PRICE) < NO_PRICE) if markets.any() else False
    if not mask.any():
        return None
    rooms = [
        table.allocatable[row] - _daemon_share(table, int(row), wanted, claim.spec.taints, daemons)
        for row in np.flatnonzero(mask)
    ]
    least: Ints = np.min(np.array(rooms), axis=0)
    return _outcomes(table, mask, wanted), least


def _daemon_share(
    table: TypeTable, row: int, wanted: Requirements, taints: Sequence[Taint], daemons: Sequence[Daemon]
) -> Ints:
    share = table.columns.vector({})
    for daemon in daemons:
        if daemon.accepts(taints) and any(
            table.types[row].requirements.conflict(term) is None for term in daemon.terms_for(wanted)
        ):
            share = share + table.columns.vector(daemon.requests)
    return share


def _outcomes(table: TypeTable, mask: np.typing.NDArray[np.bool_], wanted: Requirements) -> Requirements:
    """For each label the values that the launched node may have."""
    rows: list[Requirement] = [row for row in wanted.values() if not row.complement]
    for instance_type_key in sorted({k for i in np.flatnonzero(mask) for k in table.types[int(i)].requirements}):
        values = {v for v in table.values(instance_type_key, mask) if wanted.allowed(instance_type_key).has(v)}
        if values:
            rows.append(requirement(instance_type_key, IN, values))
    allowed = np.flatnonzero(table.market_mask(wanted) & (table.price[mask] < NO_PRICE).any(axis=0))
    for place, key in ((0, labels.ZONE), (1, labels.CAPACITY_TYPE), (2, labels.ZONE_ID)):
        values = {table.markets[int(i)][place] for i in allowed} - {""}
        if values:
            rows.append(requirement(key, IN, values))
    return Requirements(rows)
