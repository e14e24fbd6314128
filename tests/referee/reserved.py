"""Capacity reservations: no more nodes than a reservation has machines for, and none of which nobody knows whether it
will be on one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kerf.model.snapshot import Snapshot
from kerf_api import labels
from tests.referee.answers import Answer, PlannedNode, Violation
from tests.referee.places import offers
from tests.referee.planned import types_of


def problems(snapshot: Snapshot, answer: Answer) -> Iterator[Violation]:
    """With the gate ReservedCapacity. A node counts with every reservation that it may be launched into, and so does a
    claim that has no instance yet."""
    if not snapshot.settings.gates.reserved_capacity:
        return
    machines = _machines(snapshot)
    wanted: Counter[str] = Counter()
    for node in answer.new_nodes:
        into, bought = _becomes(snapshot, node)
        if into and bought:
            yield Violation("reservation", f"a new node of {node.pool} may be launched into {min(into)} or be bought")
        wanted.update(into)
    for claim in snapshot.node_claims.values():
        row = claim.requirements().get(labels.RESERVATION_ID)
        if row is not None and not row.complement and not claim.assigned_instance:
            wanted.update(row.values)
    for id_, number in sorted(wanted.items()):
        if number > machines.get(id_, 0) and any(id_ in _becomes(snapshot, node)[0] for node in answer.new_nodes):
            yield Violation("reservation", f"{number} nodes may be launched into {id_}, which has {machines.get(id_)}")


def _machines(snapshot: Snapshot) -> dict[str, int]:
    sold = (o.reservation for types in snapshot.catalogues.values() for t in types for o in t.offerings)
    found: dict[str, int] = {}
    for one in sold:
        if one is not None:
            found[one.id] = min(one.left, found.get(one.id, one.left))
    return found


def _becomes(snapshot: Snapshot, node: PlannedNode) -> tuple[set[str], bool]:
    """The reservations that a planned node may be launched into, and whether it may be one that is bought."""
    pool = snapshot.node_pools.get(node.pool)
    known = types_of(snapshot, pool) if pool is not None else {}
    sold = [
        o for name in node.instance_types if name in known for o in offers(snapshot, node.requirements, known[name])
    ]
    return {o.reservation.id for o in sold if o.reservation is not None}, any(o.reservation is None for o in sold)
