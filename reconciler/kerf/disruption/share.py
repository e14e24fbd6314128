"""The work budget of simulations: each method of disruption has a share of a pass, counted in the scheduler's steps.

Who may create pods decides how much work a simulation is. A method begins no candidate once its share is used; the
candidates that are left over come first in the next pass. One candidate may take more than a share where many pods take
part, for each of them may differ from the others. A candidate that needs still more work stays, with the reason
WorkBudget.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import Final, TypeVar

from kerf.disruption.asking import NO_POOLS, Manner, Question, Scheduler, Solve
from kerf.disruption.candidates.candidates import Blocker
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.solution import NewNode, Solution
from kerf.scheduling.work import WORK_BUDGET, Work

T = TypeVar("T")

#: About a quarter of a second; and where very many pods take part, some time for each.
_STEPS: Final = 50_000
_STEPS_A_POD: Final = 30
#: One candidate may take another share for so many pods that take part; further pods than the most add nothing.
_PODS_A_SHARE: Final = 160
_MOST_PODS: Final = 240
#: Of a candidate that is left over.
NEXT_TIME: Final = Blocker(
    WORK_BUDGET, "the work of this pass is used up; the next pass begins with this node", quiet=True
)


class Share:
    """A scheduler for the simulations of one method in one pass; also of one question, which is a single turn."""

    def __init__(self, ask: Solve, waiting: Set[str] = frozenset()) -> None:
        """`waiting` are the keys of the candidates that the latest pass left over."""
        self._ask, self._waiting = ask, waiting
        self._left: int | None = None
        self._tried, self._refused, self._late = set[str](), set[str](), False
        #: Steps so far.
        self.used = 0

    @property
    def used_up(self) -> bool:
        """Whether no work is left for another turn."""
        return self.used >= _STEPS

    def first(self, order: Sequence[T], keys: Sequence[Set[str]]) -> Sequence[T]:
        """Those that the latest pass left over; all when there are none. `keys` are those of each."""
        late = [one for one, own in zip(order, keys, strict=True) if not self._waiting.isdisjoint(own)]
        self._late = bool(late)
        return late or order

    def begins(self, keys: Iterable[str] = (), others: Iterable[str] = ()) -> bool:
        """Begin a turn of candidates; False when no work is left for it.

        Then these and the `others`, which want a turn too, are left over.
        """
        if self.used_up:
            self.leave((*keys, *others))
            return False
        self._tried |= {*keys}
        self._left = None
        return True

    def leave(self, keys: Iterable[str]) -> None:
        """Those of them that have no turn in this pass are left over."""
        self._refused |= {*keys}

    @property
    def scheduler(self) -> Scheduler | None:
        """The real scheduler; None when it is another one."""
        return self._ask if isinstance(self._ask, Scheduler) else None

    def __call__(
        self,
        pods: Sequence[Pod],
        exclude: frozenset[str],
        manner: Manner,
        beside: Sequence[NewNode] = (),
        shut: frozenset[str] = NO_POOLS,
        /,
    ) -> Solution:
        return self.by(self._ask, Question(pods, exclude, manner, beside, shut))

    def by(self, ask: Solve, asked: Question) -> Solution:
        """The answer of another scheduler, for the work of this share."""
        left = self._left if self._left is not None else longest_turn(len(asked.pods))

        def took(steps: int) -> None:
            self._left = left - steps
            self.used += steps

        return within_steps(ask, left, took, asked)

    def left_over(self, there: Container[str]) -> frozenset[str]:
        """The keys of the candidates that come first in the next pass, of the nodes that are `there`.

        While some are left that waited before, no others join them: so each has its turn.
        """
        wanted = self._waiting if self._late else self._waiting | self._refused
        return frozenset(key for key in wanted if key not in self._tried and key in there)


def within_steps(ask: Solve, most: int, took: Callable[[int], None], asked: Question) -> Solution:
    """The scheduler's answer within so many steps; `took` gets those that it needed, also when it fails.

    A scheduler that is not the real one takes no steps.
    """
    if not isinstance(ask, Scheduler):
        return ask(*asked)
    work = Work(most // 2, most=most)
    try:
        return ask.within(work, asked)
    finally:
        took(work.whole)


def longest_turn(pods: int) -> int:
    """The steps that one candidate may take in a method when so many pods take part."""
    return turn_of(pods) + _STEPS * min(pods, _MOST_PODS) // _PODS_A_SHARE


def turn_of(pods: int) -> int:
    """The steps of one share when so many pods take part."""
    return max(_STEPS, _STEPS_A_POD * pods)
