"""The search of consolidation on clusters that the real scheduler has filled: what it finds, with how much work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.clusters import Shape, Yard, half_empty
from benchmarks.consolidation import settle
from kerf.disruption.asking import NO_POOLS, Manner, Scheduler, Solve
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Candidate, candidate
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.consolidation.search import Bounded, deletable
from kerf.disruption.propose import propose
from kerf.disruption.view import View, view
from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory
from kerf.scheduling.answers.solution import NewNode, Solution
from kerf_api.v1.budgets import UNDERUTILIZED

#: About twenty nodes, and a few.
SHAPE, FEW = Shape(pods=600, deployments=8), Shape(pods=100, deployments=4, most_cpus=4)


@pytest.fixture(scope="module")
def yard() -> Yard:
    return half_empty(SHAPE)


def candidates(seen: View) -> list[Candidate]:
    found = [candidate(seen, key) for key in sorted(seen.snapshot.state_nodes)]
    return [one for one in found if isinstance(one, Candidate)]


class Counting:
    """The scheduler; `asked` says how many nodes were away each time."""

    def __init__(self, ask: Solve) -> None:
        self._ask, self.asked = ask, list[int]()

    def __call__(
        self,
        pods: Sequence[Pod],
        exclude: frozenset[str],
        manner: Manner,
        beside: Sequence[NewNode] = (),
        shut: frozenset[str] = NO_POOLS,
        /,
    ) -> Solution:
        self.asked.append(len(exclude))
        return self._ask(pods, exclude, manner, beside, shut)


def test_what_is_deleted_at_once_holds_together(yard: Yard) -> None:
    snapshot = yard.snapshot()
    seen = view(snapshot)
    gone = [p.candidates[0] for p in propose(snapshot) if not p.replacements]
    assert len(gone) >= len(yard.nodes) // 3
    move = judge(seen, [one for one in candidates(seen) if one.key in gone], Scheduler(snapshot, seen.turn))
    assert isinstance(move, Move)
    assert move.new == ()


def test_far_fewer_simulations_than_nodes_find_it(yard: Yard) -> None:
    seen = view(yard.snapshot())
    counting = Counting(Scheduler(seen.snapshot, seen.turn))
    found = deletable(seen, candidates(seen), Ledger(seen), Bounded(counting, len(yard.pods)))
    assert len(counting.asked) < len(found) + 12
    assert max(counting.asked) > len(found)


def test_a_search_ends_when_its_work_is_done(yard: Yard) -> None:
    seen = view(yard.snapshot())
    counting = Counting(Scheduler(seen.snapshot, seen.turn))
    bounded = Bounded(counting, 0)
    while not bounded.exhausted:
        bounded(list(yard.pods.values()), frozenset(), Manner.SCATTERED)
    before = len(counting.asked)
    assert deletable(seen, candidates(seen), Ledger(seen), bounded) == []
    assert len(counting.asked) == before


def test_a_budget_is_kept_by_what_goes_together(yard: Yard) -> None:
    seen = view(yard.snapshot())
    ledger = Ledger(seen)
    for number, one in enumerate(candidates(seen)):
        if ledger.remaining("default", UNDERUTILIZED) > 3:
            ledger.take("default", f"else-{number}-{one.key}")
    found = deletable(seen, candidates(seen), ledger, Bounded(Scheduler(seen.snapshot, seen.turn), len(yard.pods)))
    assert len(found) == 3


def test_passes_come_to_rest_cheaper_each_time() -> None:
    left = settle(half_empty(FEW))
    assert left.dearer == 0
    assert left.after < left.before / 2


def test_what_is_remembered_changes_no_answer() -> None:
    yard = half_empty(FEW)
    cluster, memory = Cluster(), Memory()
    for value in yard.objects():
        cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)
    pods = sorted(yard.pods.values(), key=lambda pod: pod.key)
    for round_ in range(3):
        for pod in pods[round_::9]:
            cluster.remove(kinds.POD, pod.metadata.namespace, pod.metadata.name)
        snapshot = cluster.snapshot(**yard.facts())
        assert propose(snapshot, memory=memory) == propose(snapshot)
