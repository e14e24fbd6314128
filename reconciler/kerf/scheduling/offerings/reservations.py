"""Capacity reservations within one solve: how many machines each still has, and which planned node has which of them.

What is reserved is paid for, so it is used before anything is bought. A node that is planned on a reservation can be
launched there only; so no more are planned than there is room for. Source: scheduling reference §4.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.requirements import IN, NOT_IN, Requirements, requirement
from kerf_api.v1.nodeclaim import NodeClaim

#: What a node on a reservation must meet, and any other one.
ON_RESERVATION = Requirements([requirement(labels.CAPACITY_TYPE, IN, (labels.RESERVED,))])
BOUGHT = Requirements([requirement(labels.CAPACITY_TYPE, NOT_IN, (labels.RESERVED,))])
#: What EC2 says of a reservation may not know yet of machines launched so shortly before.
_LAG = timedelta(seconds=5)


class Ledger:
    """So many machines of each reservation (by ID); each host has one of a reservation, or none."""

    def __init__(self, machines: Mapping[str, int]) -> None:
        self._left = dict(machines)
        self._held: set[tuple[str, str]] = set()

    def left(self, id_: str) -> int:
        """The number of free machines. Raises ValueError for an unknown reservation."""
        if id_ not in self._left:
            raise ValueError(f"capacity reservation {id_} is unknown; known are {', '.join(sorted(self._left))}")
        return self._left[id_]

    def free(self, host: str, id_: str) -> bool:
        """Whether the host can have a machine of the reservation, or has one."""
        return self.left(id_) > 0 or (host, id_) in self._held

    def reserve(self, host: str, id_: str) -> None:
        """Give the host a machine, unless it has one. Raises ValueError when there is none left."""
        if not self.free(host, id_):
            raise ValueError(f"capacity reservation {id_} has no machine left for {host}")
        if (host, id_) not in self._held:
            self._held.add((host, id_))
            self._left[id_] -= 1

    def release(self, host: str, id_: str) -> None:
        """Take the host's machine back, if it has one."""
        if (host, id_) in self._held:
            self._held.remove((host, id_))
            self._left[id_] += 1


def machines_left(snapshot: Snapshot, offered: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """How many machines of each reservation may be planned on; nothing while reservations are offerings like others.

    `offered` is what catalogues say of each: what EC2 said when it was asked. What claims are to have, and what was
    launched since then, is not free any more.
    """
    if not snapshot.settings.gates.reserved_capacity:
        return {}
    found: dict[str, int] = {}
    for table in offered:
        for id_, number in table.items():
            found[id_] = min(number, found.get(id_, number))
    if found:
        taken = Counter(id_ for claim in snapshot.node_claims.values() for id_ in _taken(snapshot, claim))
        found = {id_: max(number - taken[id_], 0) for id_, number in found.items()}
    return found


def _taken(snapshot: Snapshot, claim: NodeClaim) -> Iterable[str]:
    """The reservations of which a claim takes a machine that EC2 has returned as free."""
    if claim.assigned_instance:
        instance = snapshot.instances.get(claim.assigned_instance)
        asked = snapshot.resolved_at.get(claim.spec.node_class_ref.name)
        held = instance.reservation if instance is not None else None
        new = instance is not None and asked is not None and instance.launched >= asked - _LAG
        return (held.id,) if new and held is not None else ()
    rows = (entry for entry in claim.spec.requirements if entry.key == labels.RESERVATION_ID)
    return {value for entry in rows if entry.operator == IN for value in entry.values}
