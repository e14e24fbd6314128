"""The cost of blocked nodes by the blocker: PodDisruptionBudgets, and pods that are annotated do-not-disrupt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kerf.disruption.candidates.candidates import Blocker, pod_blockers
from kerf.disruption.view import View
from kerf.judgement.values import End
from kerf.model.kubernetes import pods
from kerf.views.cluster import UNREADABLE, NodeRow
from kerf_api import labels

_PDB: Final = "PodDisruptionBudget"
_CODES: Final = (_PDB, "PodDoNotDisrupt")
_NODE: Final = "NodeDoNotDisrupt"


@dataclass(frozen=True, slots=True)
class BlockedCost:
    """The nodes of one blocker. Money is in millionths of a dollar per hour.

    Attributes:
        kind: PodDisruptionBudget, or the annotation.
        name: the PodDisruptionBudget, or the owner of annotated pods (`namespace/name`).
        nodes: names of the nodes that it blocks, the most expensive first.
        pods: the number of pods that it protects there.
        price: of the nodes; each counts for every blocker that it has.
        wanted: the part of nodes that are empty, drifted or proposed for consolidation.
        alone: the part of nodes without another blocker.
        reasons: of the wanted disruptions.
    """

    kind: str
    name: str
    nodes: tuple[str, ...]
    pods: int
    price: int
    wanted: int
    alone: int
    reasons: tuple[str, ...]


@dataclass(slots=True)
class _Sum:
    rows: dict[str, NodeRow] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)
    alone: int = 0


def blocked_costs(view: View, rows: Iterable[NodeRow]) -> tuple[BlockedCost, ...]:
    """Blockers of nodes in use, those of wanted disruptions first, the most expensive first."""
    sums: dict[tuple[str, str], _Sum] = {}
    for row in rows:
        if row.stage.code == UNREADABLE or not row.ends:
            continue
        found = [(_subject(view, one), one.pod) for one in pod_blockers(view, view.pods_on(row.name))]
        own = [(subject, pod) for subject, pod in found if subject is not None]
        alone = len({subject for subject, _ in found}) == 1 and not any(map(_otherwise, row.ends))
        for subject, pod in own:
            one = sums.setdefault(subject, _Sum())
            one.alone += (row.machine.price or 0) if alone and row.name not in one.rows else 0
            one.rows[row.name] = row
            one.pods.add(pod)
    made = (_cost(kind, name, one) for (kind, name), one in sums.items())
    return tuple(sorted(made, key=lambda one: (-one.wanted, -one.price, one.kind, one.name)))


def _subject(view: View, blocker: Blocker) -> tuple[str, str] | None:
    """The kind and name of the blocker; None for another one, such as an unreadable pod."""
    if blocker.code not in _CODES:
        return None
    if blocker.budgets:
        return _PDB, ", ".join(blocker.budgets)
    namespace, _, name = blocker.pod.partition("/")
    kind, name = pods.workload(view.snapshot.pods[blocker.pod]) or ("Pod", name)
    return labels.DO_NOT_DISRUPT, f"{kind} {namespace}/{name}"


def _cost(kind: str, name: str, found: _Sum) -> BlockedCost:
    rows = sorted(found.rows.values(), key=lambda row: (-(row.machine.price or 0), row.name))
    wanted = {row.name: tuple(_wanted(row)) for row in rows}
    price, due = (sum(row.machine.price or 0 for row in some) for some in (rows, [r for r in rows if wanted[r.name]]))
    reasons = tuple(sorted({reason for some in wanted.values() for reason in some}))
    return BlockedCost(kind, name, tuple(row.name for row in rows), len(found.pods), price, due, found.alone, reasons)


def _otherwise(end: End) -> bool:
    """Whether the node itself is annotated do-not-disrupt, so that the removal of the pods' blockers has no effect."""
    return any(hold.code == _NODE for hold in end.holds)


def _wanted(row: NodeRow) -> Iterator[str]:
    """The reasons of voluntary disruptions that a blocker of pods delays."""
    for end in row.ends:
        if end.wanted and not end.forceful and any(hold.code in _CODES for hold in end.holds) and not _otherwise(end):
            yield end.code
