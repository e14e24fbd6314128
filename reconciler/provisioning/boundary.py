"""A solve that fails must not stop all pods: who is to blame is found by trying, and only they are left out.

NodePools with which no solve succeeds are left out, first those that fail even without a pod; then pods are halved
until those are found with which none succeeds. That costs time only when something is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from api.v1.nodepool import NodePool
from reconciler.model.boundaries import broken
from reconciler.model.objects import Pod
from reconciler.model.plan import Reason
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.solve import PodRefusal, Solution, solve

#: Solves that may be spent on finding pods; those that are still in question then wait with the guilty.
_MOST_TRIALS = 64


def solve_apart(snapshot: Snapshot, pods: Sequence[Pod]) -> Solution:
    """A solution for all pods and pools but those with which there is none; these are refused, with the error."""
    try:
        return solve(snapshot, pods)
    except Exception as error:
        first = broken(error)
    pools = _guilty(snapshot, ())
    snapshot = _without(snapshot, pools)
    if _trial(snapshot, pods) is not None:
        alone = _guilty(snapshot, pods)
        if len(alone) < len(snapshot.node_pools):
            pools |= alone
            snapshot = _without(snapshot, alone)
    good, bad = _halved(snapshot, pods, first)
    return _refusing(solve(snapshot, good), pools, bad)


def _guilty(snapshot: Snapshot, pods: Sequence[Pod]) -> dict[str, Reason]:
    """The pools with which, each by itself, solving for these pods fails."""
    found = {name: _trial(_only(snapshot, name), pods) for name in sorted(snapshot.node_pools)}
    return {name: reason for name, reason in found.items() if reason is not None}


def _trial(snapshot: Snapshot, pods: Sequence[Pod]) -> Reason | None:
    """What a solve fails with; None when it succeeds."""
    try:
        solve(snapshot, pods)
    except Exception as error:
        return broken(error)
    return None


def _only(snapshot: Snapshot, name: str) -> Snapshot:
    return _with(snapshot, {name: snapshot.node_pools[name]})


def _without(snapshot: Snapshot, names: Mapping[str, object]) -> Snapshot:
    return _with(snapshot, {n: p for n, p in sorted(snapshot.node_pools.items()) if n not in names})


def _with(snapshot: Snapshot, pools: Mapping[str, NodePool]) -> Snapshot:
    """With these pools alone, and what their classes can launch."""
    used = {pool.class_name for pool in pools.values()}
    catalogues = {name: types for name, types in sorted(snapshot.catalogues.items()) if name in used}
    return replace(snapshot, node_pools=pools, catalogues=catalogues)


def _halved(snapshot: Snapshot, pods: Sequence[Pod], error: Reason) -> tuple[list[Pod], dict[str, Reason]]:
    """The pods that can be solved together, and the others with the error of each."""
    good: list[Pod] = []
    bad: dict[str, Reason] = {}
    open_, trials = [list(pods)], 0
    while open_:
        some = open_.pop()
        reason = error if trials >= _MOST_TRIALS else _trial(snapshot, [*good, *some])
        trials += 1
        if reason is None:
            good += some
        elif len(some) > 1 and trials < _MOST_TRIALS:
            middle = len(some) // 2
            open_ += [some[middle:], some[:middle]]
        else:
            bad |= {pod.key: reason for pod in some}
    return good, bad


def _refusing(solution: Solution, pools: Mapping[str, Reason], pods: Mapping[str, Reason]) -> Solution:
    unplaced = {key: PodRefusal(reason.code, f"placing it failed: {reason.text}") for key, reason in pods.items()}
    problems = {name: PodRefusal(reason.code, reason.text) for name, reason in pools.items()}
    return replace(
        solution,
        unplaced={**solution.unplaced, **unplaced},
        pool_problems={**solution.pool_problems, **problems},
    )
