"""Filters and orders of the list of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kerf.views.cluster import NodeRow

#: The orders by name; each puts the rows first that an operator looks for.
ORDERS: Final[Mapping[str, Callable[[NodeRow], Any]]] = {
    "nodepool": lambda row: (row.machine.nodepool, row.name),
    "price": lambda row: (-(row.machine.price or 0), row.name),
    "age": lambda row: (-(row.age or timedelta()), row.name),
    "free": lambda row: (row.cpu.percent + row.memory.percent, row.name),
    "pods": lambda row: (-row.pods, row.name),
    "name": lambda row: row.name,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which nodes are listed: equal NodePool and zone where given, and `text` in a name, type, state or workload."""

    nodepool: str = ""
    zone: str = ""
    text: str = ""

    def admits(self, row: NodeRow) -> bool:
        """Whether the node is listed."""
        machine = row.machine
        if self.nodepool not in ("", machine.nodepool) or self.zone not in ("", machine.zone):
            return False
        return not self.text or self.text.lower() in _searched(row)


def _searched(row: NodeRow) -> str:
    machine = row.machine
    words = [row.name, machine.nodepool, machine.zone, machine.instance_type, machine.capacity_type, row.state]
    words += [f"{one.namespace}/{one.name}" for one in row.workloads]
    return "\n".join((*words, row.stays)).lower()


def listed(rows: Iterable[NodeRow], chosen: Filter, order: str = "nodepool") -> list[NodeRow]:
    """The nodes of a filter in one of the orders. Raises KeyError for an unknown order."""
    return sorted((row for row in rows if chosen.admits(row)), key=ORDERS[order])
