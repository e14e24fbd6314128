"""The price of nodes by their users. Money is in millionths of a dollar per hour.

Half of a node's price is for its CPU and half for its memory. A pod's part is that of its requests in the allocatable
amounts; the remainder is unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kerf.disruption.view import View
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.facts.nodes import Needs
from kerf.views.cluster import CPU, MEMORY, NodeRow, amounts

#: The label of pods that names a team, unless another one is asked for.
TEAM: Final = "team"
#: Rows for pods without the label, and for resources that no pod requests.
UNLABELED, UNUSED = "", "unused"


@dataclass(frozen=True, slots=True)
class CostRow:
    """A share of the price. `percent` is its part of the total; `pods` are those that it is for."""

    name: str
    price: int
    percent: int
    pods: int


@dataclass(frozen=True, slots=True)
class Costs:
    """`by_namespace` and `by_label` each add up to the total with `unused`, the most expensive first."""

    total: int
    unused: int
    by_namespace: tuple[CostRow, ...]
    by_label: tuple[CostRow, ...]
    label: str


def costs(view: View, rows: Iterable[NodeRow], needs: Needs, label: str = TEAM) -> Costs:
    """The price of these nodes by namespace and by a label of pods."""
    priced = [row for row in rows if row.machine.price]
    shares = [(pod, share) for row in priced for pod, share in _shares(view, row, needs)]
    total = sum(row.machine.price or 0 for row in priced)
    unused = total - sum(share for _, share in shares)
    by_namespace = _summed(((pod.metadata.namespace, share) for pod, share in shares), total)
    by_label = _summed(((pod.metadata.labels.get(label, UNLABELED), share) for pod, share in shares), total)
    return Costs(total, unused, by_namespace, by_label, label)


def _shares(view: View, row: NodeRow, needs: Needs) -> list[tuple[Pod, int]]:
    """The part of each pod of a node; of a node with more requests than resources the parts shrink."""
    own = [pod for pod in view.pods_on(row.name) if not pods.terminal(pod)]
    half = (row.machine.price or 0) // 2
    wholes = {
        CPU: max(row.cpu.allocatable, row.cpu.requested),
        MEMORY: max(row.memory.allocatable, row.memory.requested),
    }
    return [(pod, _share(amounts(needs, pod), wholes, half)) for pod in own]


def _share(known: Mapping[str, int], wholes: Mapping[str, int], half: int) -> int:
    return sum(half * known.get(name, 0) // whole for name, whole in wholes.items() if whole)


def _summed(shares: Iterable[tuple[str, int]], total: int) -> tuple[CostRow, ...]:
    prices: dict[str, int] = {}
    counts: dict[str, int] = {}
    for name, share in shares:
        prices[name] = prices.get(name, 0) + share
        counts[name] = counts.get(name, 0) + 1
    found = (CostRow(name, price, percent(price, total), counts[name]) for name, price in prices.items())
    return tuple(sorted(found, key=lambda row: (-row.price, row.name)))


def percent(price: int, total: int) -> int:
    """The part of a price in a total; 0 of none."""
    return round(100 * price / total) if total else 0
