"""The scheduler as disruption asks it: where pods would be placed if some nodes were removed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Turn
from kerf.model.snapshot import Snapshot
from kerf.pods.requirements import own_problem
from kerf.scheduling.answers.solution import NewNode, PodRefusal, Solution
from kerf.scheduling.nodes.supposed import standing
from kerf.scheduling.placing.as_kube_scheduler import (
    KubeSchedulerOrder,
    KubeSchedulerOrderByName,
    KubeSchedulerOrderLargeFirst,
)
from kerf.scheduling.solve import SolveContext, SolveOptions, context_of, solve
from kerf.scheduling.work import Work
from kerf_api.v1.nodepool import NodePool

#: Answers about more pods than this are not kept: they are large, and seldom asked for again.
_FEW: Final = 500


class Manner(Enum):
    """How pods are to be placed: `SPARING` nodes that are inside their `consolidateAfter`, or `SCATTERED`, as the
    kube-scheduler does by itself, which may come to large pods first, or to all by their names."""

    FREELY = "freely"
    SPARING = "sparing"
    SCATTERED = "scattered"
    SCATTERED_LARGE_FIRST = "scattered, large ones first"
    SCATTERED_BY_NAME = "scattered, by name"


#: All the ways in which the kube-scheduler may place them.
SCATTERED = {
    Manner.SCATTERED: KubeSchedulerOrder,
    Manner.SCATTERED_LARGE_FIRST: KubeSchedulerOrderLargeFirst,
    Manner.SCATTERED_BY_NAME: KubeSchedulerOrderByName,
}


#: NodePools, by name.
NO_POOLS: Final = frozenset[str]()


class Question(NamedTuple):
    """Where these pods would be placed if the nodes of these keys were not there, the `beside` ones were, and the
    NodePools in `shut` made no nodes."""

    pods: Sequence[Pod]
    exclude: frozenset[str]
    manner: Manner
    beside: Sequence[NewNode] = ()
    shut: frozenset[str] = NO_POOLS


class Solve(Protocol):
    """Answers a question, whose parts are its arguments."""

    def __call__(
        self,
        pods: Sequence[Pod],
        exclude: frozenset[str],
        manner: Manner,
        beside: Sequence[NewNode] = (),
        shut: frozenset[str] = NO_POOLS,
        /,
    ) -> Solution: ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """A solution, with the steps that it took; and the question, by the identity of whose pods and planned nodes it is
    found."""

    solution: Solution
    steps: int
    asked: Question


class Scheduler:
    """The real scheduler of one snapshot; what all its answers share is read once, when the first is asked for.

    A question about few pods that is asked again has the same answer, and takes the same steps.
    """

    def __init__(self, snapshot: Snapshot, turn: Turn | None = None, context: SolveContext | None = None) -> None:
        self._snapshot, self._turn, self._known = snapshot, turn, context
        self._answers: dict[Hashable, _Answer] = {}

    @cached_property
    def _context(self) -> SolveContext:
        return self._known if self._known is not None else context_of(self._snapshot, self._turn)

    def with_pool(self, pool: NodePool) -> Scheduler:
        """The scheduler after an edit of one of the usable NodePools."""
        return Scheduler(self._snapshot, self._turn, self._context.with_pool(pool))

    def filled(self, new: Sequence[NewNode], first: int, arriving: Mapping[str, Iterable[Pod]]) -> Scheduler:
        """The scheduler with these planned nodes more, numbered from the `first` on, and pods on the places of keys."""
        context = self._context.beside(dict(standing(self._snapshot, new, first)))
        return Scheduler(self._snapshot, self._turn, context.filled(arriving))

    @cached_property
    def _hopeless(self) -> frozenset[str]:
        """Pending pods for which no node would ever be made."""
        return frozenset(key for key, pod in self._snapshot.pods.pending.items() if own_problem(pod) is not None)

    def __call__(
        self,
        wanted: Sequence[Pod],
        exclude: frozenset[str],
        manner: Manner,
        beside: Sequence[NewNode] = (),
        shut: frozenset[str] = NO_POOLS,
        /,
    ) -> Solution:
        return self.within(Work(), Question(wanted, exclude, manner, beside, shut))

    def within(self, work: Work, asked: Question) -> Solution:
        """The same with so much work; pods that run already come first in their namespaces."""
        if len(asked.pods) > _FEW:
            return self._solved(work, asked)
        ids = *map(id, asked.pods), None, *map(id, asked.beside)
        key = (work.limit, work.most, asked.exclude, asked.manner, asked.shut, *ids)
        known = self._answers.get(key)
        if known is None:
            before, solution = work.whole, self._solved(work, asked)
            known = self._answers[key] = _Answer(solution, work.whole - before, asked)
        else:
            work.charge(known.steps)
        return known.solution

    def _solved(self, work: Work, asked: Question) -> Solution:
        context = self._context.without_pools(asked.shut) if asked.shut else self._context
        if asked.beside:
            context = context.beside(dict(standing(self._snapshot, asked.beside)))
        return solve(
            self._snapshot,
            [pod for pod in asked.pods if pod.key not in self._hopeless],
            SolveOptions(
                exclude=asked.exclude,
                respect_consolidate_after=asked.manner is Manner.SPARING,
                scattered=SCATTERED.get(asked.manner),
                reasons=False,
                first=frozenset(pod.metadata.uid for pod in asked.pods if pod.spec.node_name),
            ),
            context=context,
            work=work,
        )

    def refusals(
        self, wanted: Sequence[Pod], exclude: frozenset[str], *, open_new: bool, sparing: bool
    ) -> Mapping[str, PodRefusal]:
        """Those of the pods that have no place, with the account of why; without `open_new` on the nodes there are.
        `sparing` nodes that are inside their `consolidateAfter`."""
        solution = solve(
            self._snapshot,
            [pod for pod in wanted if pod.key not in self._hopeless],
            SolveOptions(exclude=exclude, respect_consolidate_after=sparing, open_new=open_new, accounts=len(wanted)),
            context=self._context,
        )
        return solution.unplaced
