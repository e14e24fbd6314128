"""Why no node that exists, or is on its way, is a place for a class: how many each rule left out, rule by rule.

A node counts with the first rule that leaves it out, in the order in which the solver asks. What the solver has put
there for others is not free any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kerf.pods.topology_constraints import TopologyConstraint
from kerf.scheduling.answers import explanation
from kerf.scheduling.answers.explanation import MOST_ROWS, NodesAccount
from kerf.scheduling.offerings.instance_types import Bools
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.refusals.nearest import least_lack

#: Of nodes that the caller excludes from the solve.
LEFT_OUT: Final = "is left out of this plan"


def account_of(assignment: Assignment, cls: PodClass, closed: int) -> NodesAccount:
    """Over all places of a solve; `closed` is how many state nodes take no pods at all."""
    places, need = assignment.places, assignment.columns.vector(cls.requests)
    left = np.ones(len(places.targets), dtype=np.bool_)
    rows: list[tuple[str, int]] = (
        [("accepts no pods: it terminates, is not initialized in time or cannot be read", closed)] if closed else []
    )
    roomless, lacking = left, False
    for text, good in _rules(assignment, cls):
        lost = int((left & ~good).sum())
        if lost:
            rows.append((text, lost))
        lacking = lacking or text.startswith("lacks")
        if not lacking:
            roomless = left & good
        left = left & good
    if left.any():
        rows.append(("is left out by another rule", int(left.sum())))
    within = np.flatnonzero(roomless)
    least = least_lack(assignment.free[within], need, assignment.columns.names)
    near = "" if least is None else f"{places.targets[int(within[least[0]])].state.name} lacks {least[1]}"
    return NodesAccount(len(places.targets) + closed, _bounded(rows), explanation.cut(near))


def _rules(assignment: Assignment, cls: PodClass) -> Iterator[tuple[str, Bools]]:
    places, demand = assignment.places, cls.relaxations[-1].demand
    yield LEFT_OUT, places.open
    yield "is cordoned", places.uncordoned(demand.tolerations)
    yield "has a taint that it does not tolerate", places.tolerating(demand.tolerations)
    for key in sorted(demand.requirements):
        yield (
            f"does not have the label {explanation.cut(str(demand.requirements[key]), 80)}",
            places.serving(demand.requirements[key]),
        )
    yield "is not where its volumes are", places.attaching(cls.volumes)
    if cls.attaching.drivers:
        drivers = explanation.cut(", ".join(cls.attaching.drivers), 80)
        yield f"cannot attach its volumes within the limit of {drivers}", assignment.slots.most(cls.attaching) > 0
    if cls.settled:
        yield "had pods added or removed a moment ago (consolidateAfter)", ~places.settling
    for name in assignment.columns.unknown(cls.requests):
        yield f"lacks {name}", np.zeros(len(places.targets), dtype=np.bool_)
    need = assignment.columns.vector(cls.requests)
    for place, name in enumerate(assignment.columns.names):
        yield f"lacks {name}", assignment.free[:, place] >= need[place]
    if cls.ports:
        taken = [assignment.held_ports(place).clash(cls.ports) for place in range(len(places.targets))]
        yield "has its host ports in use", ~np.array(taken, dtype=np.bool_)
    for one, admitting in assignment.company(cls, cls.relaxations[-1]):
        if isinstance(one, TopologyConstraint):
            yield f"violates its {one.group.kind} over {one.key}", admitting
        else:
            yield f"has pods with anti-affinity to it over {one.key}", admitting


def _bounded(rows: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    if len(rows) <= MOST_ROWS:
        return tuple(rows)
    return (*rows[: MOST_ROWS - 1], ("is left out by another rule", sum(count for _, count in rows[MOST_ROWS - 1 :])))
