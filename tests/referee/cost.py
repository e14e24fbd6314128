"""What an answer costs, and what it must cost at least: a fractional lower bound on the price of new nodes.

The bound is a linear program. Pods that ask for the same and may go to the same offerings are a class of n pods; an
offering is a (NodePool, type, zone, capacity type) that can be had, with the room that daemon sets leave. It buys x
nodes of each offering, not necessarily whole ones, and puts y of a class's pods on them, not necessarily whole ones:

    minimise  the sum of price * x        so that        for each class: the sum of its y is n,
    for each offering and resource: what its y want is at most x times the room of one node.

A pod counts on an offering only when one node of it could hold the pod by taints, labels and each resource (`pods` is
one). Every real answer is such a solution, so none is cheaper. What makes real answers dearer is left out: that nodes
and pods are whole, topology, volumes, host ports, limits, minValues and the order of NodePools. In what the bound
says of mixtures it is exact: a pod's resources are on one offering together, not cpu here and memory there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import highspy
import msgspec
import numpy as np
from numpy.typing import NDArray

from kerf.model.kubernetes.objects import Expression, Pod
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.v1.meta import Taint
from tests.referee.answers import Answer
from tests.referee.daemons import Daemons
from tests.referee.needs import requests
from tests.referee.places import offers, outcomes_of
from tests.referee.planned import stands_aside, types_of
from tests.referee.selecting import holds, required_affinity, untolerated

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

#: What a node costs besides its instance, in millionths of a dollar per hour: a root volume of 20 GiB.
VOLUME = 2200


def cost(snapshot: Snapshot, answer: Answer) -> int:
    """The price of the answer's new nodes, in millionths of a dollar per hour.

    Each counts with the cheapest offering of its types within its requirements. Raises ValueError when there is none.
    """
    total = 0
    for node in answer.new_nodes:
        known = types_of(snapshot, snapshot.node_pools[node.pool])
        listed = (known[name] for name in node.instance_types if name in known)
        total += min(o.price for one in listed for o in offers(snapshot, node.requirements, one))
    return total


def whole_cost(snapshot: Snapshot, answer: Answer) -> int:
    """The cost of the answer's new nodes with that of their volumes, which is what an answer is chosen by."""
    return cost(snapshot, answer) + VOLUME * len(answer.new_nodes)


def lp_bound(snapshot: Snapshot, pods: Sequence[Pod]) -> float:
    """What new nodes for these pods cost at least, in millionths of a dollar per hour; see the module.

    Pods that no offering can hold are left out. Room on nodes that exist is not counted: ask for the pods that the
    answer puts on new nodes.
    """
    sellers = list(_sellers(snapshot))
    classes = _Classes.of(pods, sellers)
    if not len(classes.counts):
        return 0.0
    return _solve(classes.within(_undominated(classes)))


# --- offerings ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Seller:
    """An offering of a NodePool. It does not settle the values of `open` labels: whatever a pod wants, it may get."""

    price: int
    room: Mapping[str, int]
    labels: Mapping[str, str]
    open: frozenset[str]
    taints: tuple[Taint, ...]


def _sellers(snapshot: Snapshot) -> Iterator[_Seller]:
    daemons = Daemons(snapshot)
    for pool in snapshot.node_pools.values():
        if stands_aside(pool):
            continue
        wanted, own, taints = pool.requirements(), pool.template_labels(), pool.spec.template.spec.taints
        for one in types_of(snapshot, pool).values():
            settled = {*own, *one.requirements, labels.CAPACITY_TYPE, labels.ZONE, labels.ZONE_ID}
            unsettled = frozenset({*wanted, *labels.WELL_KNOWN} - settled)
            become = outcomes_of(snapshot, wanted, own, one, wanted)
            for offer, found in zip(offers(snapshot, wanted, one) if become else (), become, strict=True):
                # A daemon set may keep away from the value that a pod wants of an open label.
                share = daemons.share(taints, found).requests if wanted.keys() <= settled else {}
                yield _Seller(offer.price, one.allocatable - share, found, unsettled, taints)


def _may_hold(seller: _Seller, pod: Pod) -> bool:
    """Whether taints and labels can let the pod onto a node of the offering."""
    if untolerated(pod, seller.taints):
        return False
    wanted = {labels.normalise(k): v for k, v in pod.spec.node_selector.items()}
    if any(key not in seller.open and seller.labels.get(key) != value for key, value in wanted.items()):
        return False
    required = required_affinity(pod)
    if required is None:
        return True
    return any(all(_may_be(seller, e) for e in t.match_expressions) for t in required.node_selector_terms)


def _may_be(seller: _Seller, row: Expression) -> bool:
    key = labels.normalise(row.key)
    return key in seller.open or holds(seller.labels, key, row.operator, row.values)


# --- classes ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Classes:
    """`counts` [classes], `wants` [classes, resources], `fit` [classes, offerings] whether one node holds one pod;
    `price` [offerings], `room` [offerings, resources]."""

    counts: Floats
    wants: Floats
    fit: Bools
    price: Floats
    room: Floats

    @classmethod
    def of(cls, pods: Sequence[Pod], sellers: Sequence[_Seller]) -> _Classes:
        samples: dict[bytes, Pod] = {}
        counted: Counter[tuple[bytes, tuple[tuple[str, int], ...]]] = Counter()
        for pod in pods:
            affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
            look = msgspec.json.encode((pod.spec.node_selector, affinity, pod.spec.tolerations))
            samples.setdefault(look, pod)
            counted[look, tuple(sorted((r, a) for r, a in requests(pod).items() if a > 0))] += 1
        names = sorted({name for _, wanted in counted for name, _ in wanted})
        column = {name: i for i, name in enumerate(names)}
        wants = np.zeros((len(counted), len(names)))
        for row, (_, wanted) in enumerate(counted):
            for name, amount in wanted:
                wants[row, column[name]] = amount
        room = np.array([[s.room.get(name, 0) for name in names] for s in sellers]).reshape(len(sellers), len(names))
        admitted = {look: np.array([_may_hold(s, pod) for s in sellers], dtype=bool) for look, pod in samples.items()}
        fit = np.array([admitted[look] for look, _ in counted], dtype=bool).reshape(len(counted), len(sellers))
        for i in range(len(names)):
            fit &= wants[:, i : i + 1] <= room[:, i]
        some = fit.any(axis=1)
        counts = np.array(list(counted.values()), dtype=float)
        price = np.array([max(s.price, 1) for s in sellers], dtype=float)
        return cls(counts[some], wants[some], fit[some], price, room.astype(float))

    def within(self, offerings: NDArray[np.intp]) -> _Classes:
        """The same with fewer offerings."""
        return _Classes(self.counts, self.wants, self.fit[:, offerings], self.price[offerings], self.room[offerings])


def _undominated(classes: _Classes) -> NDArray[np.intp]:
    """Offerings than which no other holds all the same classes and has, for the same money, as much of everything.

    As nodes need not be whole, the other can take the place of what it dominates.
    """
    held = np.unique(classes.fit, axis=0)
    useful = np.flatnonzero(held.any(axis=0) & (classes.room >= 0).all(axis=1))
    for_money = classes.room / classes.price[:, None]
    for_money /= for_money.max(axis=0, initial=1e-12).clip(min=1e-12)
    order = np.lexsort((useful, -held[:, useful].sum(axis=0), -for_money[useful].sum(axis=1)))
    kept: list[int] = []
    for one in useful[order]:
        better = (for_money[kept] >= for_money[one]).all(axis=1) & (held[:, kept] >= held[:, [one]]).all(axis=0)
        if not better.any():
            kept.append(int(one))
    return np.array(sorted(kept), dtype=np.intp)


# --- the program --------------------------------------------------------------------------------------------------
def _solve(classes: _Classes) -> float:
    """Columns: nodes of each offering, then pods of a class on an offering where they fit."""
    which, where = np.nonzero(classes.fit)
    offerings, kinds, resources = len(classes.price), len(classes.counts), classes.wants.shape[1]
    program = highspy.HighsLp()
    program.num_col_ = offerings + len(which)
    program.num_row_ = kinds + offerings * resources
    program.col_cost_ = np.concatenate([classes.price / 1e6, np.zeros(len(which))])
    program.col_lower_ = np.zeros(program.num_col_)
    program.col_upper_ = np.full(program.num_col_, highspy.kHighsInf)
    program.row_lower_ = np.concatenate([classes.counts, np.full(offerings * resources, -highspy.kHighsInf)])
    program.row_upper_ = np.concatenate([classes.counts, np.zeros(offerings * resources)])
    # A pod's part of one node's room; where there is no room, nobody who fits wants any.
    room = np.where(classes.room > 0, classes.room, 1.0)
    parts = classes.wants[which] / room[where]
    first = kinds + np.arange(offerings)[:, None] * resources + np.arange(resources)
    rows = [first.reshape(-1), np.column_stack([which, first[where]]).reshape(-1)]
    values = [np.full(offerings * resources, -1.0), np.column_stack([np.ones(len(which)), parts]).reshape(-1)]
    sizes = np.concatenate([np.full(offerings, resources), np.full(len(which), resources + 1)])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(sizes)])
    program.a_matrix_.index_ = np.concatenate(rows)
    program.a_matrix_.value_ = np.concatenate(values)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"the linear program has no answer: {solver.modelStatusToString(solver.getModelStatus())}")
    return float(solver.getInfo().objective_function_value) * 1e6
