"""Nodes that exist or are on their way, as places for pods: room, labels, taints, host ports.

A claim that has not been launched yet counts with what is certain whatever it becomes: the least room among its types,
and a label only where all outcomes agree. The pods that it was made for fit it by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from api import labels
from api.requirements import IN, Requirement, Requirements, requirement
from api.v1.meta import Taint
from reconciler.model import pods
from reconciler.model.objects import Pod
from reconciler.model.snapshot import Snapshot, StateNode
from reconciler.scheduling.daemons import Daemon
from reconciler.scheduling.ports import HostPort, host_ports
from reconciler.scheduling.types import NO_PRICE, Ints, TypeTable
from reconciler.scheduling.world import Ground

_ABSENCE = ("NotIn", "DoesNotExist")


@dataclass(slots=True, eq=False)
class Target:
    """One place. `possible` holds each label's possible values; `marks` name the pods that it was made for.

    Once it is initialised the kube-scheduler has had its say, and the marks count no more.
    """

    key: str
    state: StateNode
    possible: Requirements
    taints: tuple[Taint, ...]
    free: list[int]
    ports: tuple[HostPort, ...]
    marks: frozenset[str]
    hostname: str
    settled_pods_refused: bool = False

    def serves(self, wanted: Requirements) -> bool:
        """Whether every outcome satisfies what is wanted; a label that is not there is absent."""
        for key, row in wanted.items():
            own = self.possible.get(key)
            if own is None:
                if row.operator not in _ABSENCE:
                    return False
            elif own.complement or not all(row.has(value) for value in own.values):
                return False
        return True

    def domains(self, key: str) -> tuple[str | None, ...]:
        """The values that a label may have; `(None,)` when the node has none."""
        if key == labels.HOSTNAME:
            return (self.hostname,)
        row = self.possible.get(key)
        return tuple(sorted(row.values)) if row is not None and row.values else (None,)


def targets_of(snapshot: Snapshot, exclude: frozenset[str], moving: frozenset[str], ground: Ground) -> list[Target]:
    """All places in the order in which they are tried: initialised ones first, then by name.

    `moving` are keys of pods that are being placed: they take no room where they run now.
    """
    found = []
    for key in sorted(snapshot.state_nodes):
        state = snapshot.state_nodes[key]
        if key in exclude or state.deleting or (state.node is not None and state.node.spec.unschedulable):
            continue
        try:
            target = _target(snapshot, key, state, moving, ground)
        except ValueError:
            continue
        if target is not None:
            found.append(target)
    return sorted(found, key=lambda t: (not t.state.initialized, t.state.name, t.key))


def refuse_settled(targets: Iterable[Target], snapshot: Snapshot) -> None:
    """Mark nodes that are still within their pool's consolidateAfter: they take no pods that run elsewhere."""
    for target in targets:
        target.settled_pods_refused = _restless(target.state, snapshot)


def _restless(state: StateNode, snapshot: Snapshot) -> bool:
    pool, claim = snapshot.node_pools.get(state.pool_name), state.claim
    if pool is None or claim is None or not pool.consolidate_after:
        return False
    initialized = claim.condition("Initialized")
    if initialized is None or initialized.status != "True":
        return False
    since = claim.status.last_pod_event_time or initialized.last_transition_time
    return since is not None and snapshot.now - since < pool.consolidate_after


def _target(snapshot: Snapshot, key: str, state: StateNode, moving: frozenset[str], ground: Ground) -> Target | None:
    claim = state.claim
    fresh = claim is not None and not state.initialized
    planned = claim.metadata.annotations.get(labels.PLANNED_PODS, "") if claim is not None and fresh else ""
    marks = frozenset(mark for mark in planned.split(",") if mark)
    if state.node is None and claim is not None and not claim.status.allocatable:
        opened = _open_claim(state, ground)
        if opened is None:
            return None
        possible, free = opened
        return Target(key, state, possible, claim.spec.taints, free, (), marks, state.name)
    own = dict(state.labels)
    hostname = own.setdefault(labels.HOSTNAME, state.name)
    possible = Requirements.of_labels(own)
    bound = [p for p in snapshot.pods.on(state.name) if not pods.terminal(p)] if state.node is not None else []
    staying = [p for p in bound if p.key not in moving]
    free = _room(state, staying, possible, ground)
    ports = tuple(sorted(port for pod in staying for port in host_ports(pod)))
    return Target(key, state, possible, state.taints, free, ports, marks, hostname)


def _room(state: StateNode, staying: Iterable[Pod], own: Requirements, ground: Ground) -> list[int]:
    """Allocatable less what runs there less what daemon sets will still bring."""
    columns = ground.columns
    used, daemon_used = columns.vector({}), columns.vector({})
    for pod in staying:
        need = columns.vector(pods.requests(pod))
        used = used + need
        if pods.of_daemon_set(pod):
            daemon_used = daemon_used + need
    expected = columns.vector({})
    for daemon in ground.daemons:
        if daemon.fits_labels(own, state.taints):
            expected = expected + columns.vector(daemon.requests)
    still = np.maximum(expected - daemon_used, 0)
    return [int(v) for v in columns.vector(state.allocatable) - used - still]


def _open_claim(state: StateNode, ground: Ground) -> tuple[Requirements, list[int]] | None:
    """What is certain of a claim that has not been launched: label values, and the least room of its types."""
    claim = state.claim
    table = ground.tables.get(claim.spec.node_class_ref.name) if claim is not None else None
    if claim is None or table is None or not table.types:
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
        table.allocatable[row] - _daemon_share(table, int(row), wanted, claim.spec.taints, ground.daemons)
        for row in np.flatnonzero(mask)
    ]
    least: Ints = np.min(np.array(rooms), axis=0)
    return _outcomes(table, mask, wanted), [int(v) for v in least]


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
