"""No node is made that is like the late ones of its NodePool, but for the attempts that the limit of that allows.

Each pod is judged by a node of its own: one that only shares a node like the late ones with others gets another one.
The others get a node of another NodePool, if one fits. Of pods that only together require such a node, the oldest has
one, and those of its shape. Pods with a hard spread cannot avoid a NodePool: the nodes that they avoid would no longer
count for the spread in the solver, and do for the kube-scheduler. In their stead these NodePools make no nodes at all,
if that costs no other pod anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, Protocol

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import must_be_spread, virtual
from kerf.model.snapshot import Snapshot
from kerf.provisioning.avoiding import avoiding
from kerf.provisioning.boundary import NO_PROBLEMS, Problems
from kerf.scheduling.answers.nodeclaims import pod_mark, uid_of
from kerf.scheduling.facts.joining import NOT_INITIALIZED, NOT_REGISTERED, Limit, Limits, latest_failures
from kerf.scheduling.placing.classes import age
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf.scheduling.solve import NewNode, PodRefusal, Solution
from kerf_api import labels


class Solver(Protocol):
    """Places pods. NodePools that are left out (`without`) make no nodes, for that reason. `roughly`: without a search
    for a cheaper answer, to see which pods need a new node."""

    def __call__(
        self, some: Sequence[Pod], without: Problems = NO_PROBLEMS, /, *, roughly: bool = False
    ) -> Solution: ...


#: Of so many shapes of pods that share nodes with others it is judged in a pass whether they have a node by themselves:
#: each is a solve. The others count as if they had none, and have their turn in another pass.
_JUDGED: Final = 16
#: Pods avoid so many NodePools at most, one after the other.
_AVOIDED: Final = 10
#: So many times it is tried to part pods that only together require a node like the late ones.
_PARTED: Final = 3


def beside_late(snapshot: Snapshot, limits: Limits, pods: Sequence[Pod], solved: Solver) -> Solution:
    """The solution for these pods without nodes like the late ones of their NodePools. Pods that have no place because
    of that are refused."""
    solution = solved(pods)
    left, barred = _avoiding_late(snapshot, limits, pods, solution, solved)
    if barred:
        solution = solved(left)
    for _ in range(_PARTED):
        company = _company_of_oldest(snapshot, limits, left, solution)
        if not company:
            break
        barred |= company
        left = [pod for pod in left if pod.key not in company]
        solution = solved(left)
    solution = _one_at_a_time(snapshot, limits, solution)
    unserved = solution.unplaced.keys() | barred.keys() - {pod.key for pod in left}
    refused = {key: _another_first(limit) for key, limit in barred.items() if key in unserved}
    if not refused:
        return solution
    solution = replace(solution, unplaced={**solution.unplaced, **refused})
    return _with_hard_spreads(snapshot, limits, pods, barred, solution, solved)


def _avoiding_late(
    snapshot: Snapshot, limits: Limits, pods: Sequence[Pod], solution: Solution, solved: Solver
) -> tuple[Sequence[Pod], dict[str, Limit]]:
    """The pods of which each avoids the NodePools that may make no node for it, without those that cannot; and by key
    the latest limits by which that is so."""
    another, barred = len(snapshot.node_pools) > 1, dict[str, Limit]()
    for _ in range(_AVOIDED):
        found = _barred(snapshot, limits, pods, solution, solved)
        if not found:
            break
        barred |= found
        pods = [
            avoiding(pod, frozenset({found[pod.key].pool}), labels.NODEPOOL) if pod.key in found else pod
            for pod in pods
            if pod.key not in found or (another and not must_be_spread(pod))
        ]
        solution = solved(pods, roughly=True)
    return pods, barred


def _barred(
    snapshot: Snapshot, limits: Limits, pods: Sequence[Pod], solution: Solution, solved: Solver
) -> Mapping[str, Limit]:
    """By key, the pods of new nodes that may not be made, without those that only share them with others.

    How many of a shape do so is seen when all its pods, and no others, are placed: by those that have places on
    existing nodes these are as full as they will be.
    """
    nodes = [(node, limit) for node in solution.new_nodes if (limit := limits.bars(node)) is not None]
    if not nodes:
        return {}
    barred, known = {key: limit for node, limit in nodes for key in node.pods}, PodShapes(snapshot)
    shapes, members = {pod.key: known.of(pod) for pod in pods}, dict[str, list[Pod]]()
    for pod in sorted(pods, key=real_first):
        members.setdefault(shapes[pod.key], []).append(pod)
    mixed = {shapes[key] for node, _ in nodes if len({shapes[k] for k in node.pods}) > 1 for key in node.pods}
    turns = [shape for shape in members if shape in mixed]
    first = int(snapshot.now.timestamp()) % len(turns) if len(turns) > _JUDGED else 0
    for shape in (*turns[first:], *turns[:first])[:_JUDGED]:
        alone = solved(members[shape], roughly=True).new_nodes
        need = sum(len(node.pods) for node in alone if limits.bars(node) is not None)
        own = [pod.key for pod in members[shape] if pod.key in barred]
        for key in own[: max(len(own) - need, 0)]:
            del barred[key]
    return barred


def real_first(pod: Pod) -> tuple[bool, tuple[float, str, str]]:
    """Oldest first, and virtual pods last."""
    return virtual(pod), age(pod)


def _company_of_oldest(
    snapshot: Snapshot, limits: Limits, pods: Sequence[Pod], solution: Solution
) -> Mapping[str, Limit]:
    """By key, of each new node that may not be made the pods that are unlike its oldest one. Each of them may have a
    node of its own, and only all together require one like the late ones: the others get theirs later."""
    known, shapes, found = {pod.key: pod for pod in pods}, PodShapes(snapshot), dict[str, Limit]()
    for node in solution.new_nodes:
        if len(node.pods) > 1 and (limit := limits.bars(node)) is not None:
            oldest = shapes.of(min((known[key] for key in node.pods), key=real_first))
            found |= {key: limit for key in node.pods if shapes.of(known[key]) != oldest}
    return found


def _with_hard_spreads(
    snapshot: Snapshot,
    limits: Limits,
    pods: Sequence[Pod],
    barred: Mapping[str, Limit],
    solution: Solution,
    solved: Solver,
) -> Solution:
    """The solution in which the NodePools of refused pods with a hard spread make no nodes, if more pods have a place
    by that, and each other one keeps its place or has a node of the same NodePool."""
    spread = {pod.key for pod in pods if must_be_spread(pod)}
    asked = barred.keys() & spread & solution.unplaced.keys()
    pools = {barred[key].pool: _another_first(barred[key]) for key in sorted(asked)}
    if not pools or len(snapshot.node_pools) == 1:
        return solution
    for _ in range(_AVOIDED):
        more = _barring(limits, solved(pods, pools, roughly=True), spread)
        if more.keys() <= pools.keys():
            break
        pools |= more
    other = _one_at_a_time(snapshot, limits, solved(pods, pools))
    before, after = _pools_of(solution), _pools_of(other)
    free = spread | solution.unplaced.keys()
    if not other.unplaced.keys() < solution.unplaced.keys() or any(
        before.get(key) != name for key, name in after.items() if key not in free
    ):
        return solution
    return replace(other, pool_problems={name: why for name, why in other.pool_problems.items() if name not in pools})


def _barring(limits: Limits, solution: Solution, keys: Set[str]) -> dict[str, PodRefusal]:
    """The NodePools that may not make the new nodes of these pods, and why."""
    nodes = (node for node in solution.new_nodes if not keys.isdisjoint(node.pods))
    found = (limit for node in nodes if (limit := limits.bars(node)) is not None)
    return {limit.pool: _another_first(limit) for limit in found}


def _pools_of(solution: Solution) -> Mapping[str, str]:
    """By key, the NodePools of the new nodes of pods."""
    return {key: node.pool for node in solution.new_nodes for key in node.pods}


def _one_at_a_time(snapshot: Snapshot, limits: Limits, solution: Solution) -> Solution:
    """With one new node, or none, of those of each NodePool that are under a limit."""
    groups = dict[str, list[tuple[NewNode, Limit]]]()
    for node in solution.new_nodes:
        if (limit := limits.of(node)) is not None:
            groups.setdefault(node.pool, []).append((node, limit))
    refused = dict[str, PodRefusal]()
    for name, rows in groups.items():
        free = [node for node, limit in rows if limit.left]
        first = _next_attempt(snapshot, name, free) if free else None
        refused |= {key: _another_first(limit) for node, limit in rows if node is not first for key in node.pods}
    if not refused:
        return solution
    kept = tuple(node for node in solution.new_nodes if refused.keys().isdisjoint(node.pods))
    order = tuple(key for key in solution.order if key not in refused)
    unplaced = {**solution.unplaced, **refused}
    return replace(solution, new_nodes=kept, unplaced=unplaced, order=order, bound=None)


def _next_attempt(snapshot: Snapshot, pool_name: str, nodes: Sequence[NewNode]) -> NewNode:
    """The new node of a NodePool that is least like its latest nodes, which have not come up: what keeps these down may
    be a matter of a zone, an architecture or a type. Of equal ones it is another one after each failure. One for
    virtual pods alone comes after all others."""
    if len(nodes) == 1:
        return nodes[0]
    failed = latest_failures(snapshot, pool_name)
    latest = failed[-1].claim if failed else ""

    def likeness(node: NewNode) -> tuple[bool, int, int, bytes]:
        marks = {pod_mark(uid_of(snapshot, key)) for key in node.pods}
        alike = sum(_may_be_like(node, one.where) for one in failed)
        again = sum(not marks.isdisjoint(one.pods) for one in failed)
        mark = hashlib.sha256(f"{latest} {node.pods[0] if node.pods else ''}".encode()).digest()
        return snapshot.pods.by_key.keys().isdisjoint(node.pods), alike, again, mark

    return min(nodes, key=likeness)


def _may_be_like(node: NewNode, where: Mapping[str, str]) -> bool:
    """Whether a new node may come up where another one was."""
    type_ = where.get(labels.INSTANCE_TYPE)
    if type_ is not None and type_ not in node.instance_types:
        return False
    rows = ((key, where[key]) for key in (labels.ZONE, labels.ARCH) if key in where)
    return all(node.requirements.allowed(key).has(value) for key, value in rows)


def _another_first(limit: Limit) -> PodRefusal:
    if limit.joins_fail:
        text = f"the latest nodes of NodePool {limit.pool} have not joined: it makes one, and then waits"
        return PodRefusal(NOT_REGISTERED, text)
    if not limit.alike:
        text = f"a node of NodePool {limit.pool} is not initialized in time: it makes one at a time until one is"
    elif limit.left:
        text = f"such a node of NodePool {limit.pool} is not initialized in time: it makes one more, and then waits"
    else:
        text = f"such nodes of NodePool {limit.pool} are not initialized in time: it makes no further one before one is"
    return PodRefusal(NOT_INITIALIZED, text)
