"""The work of a pass, in steps: the same input takes the same number on any machine.

Who may create pods decides what there is to work out. So a solve counts what it does, and classes for which no steps
are left wait for the next pass; what only makes an answer cheaper, or has more details of a refusal, ends sooner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kerf.model.kubernetes.objects import Pod

T = TypeVar("T")

#: The code of the refusal.
WORK_BUDGET: Final = "WorkBudget"
#: A solve without a bound: of a person's question, or of a process of its own.
_NO_END: Final = 1 << 62


@dataclass(slots=True)
class Work:
    """`limit` is how many steps one round may take, `luxury` how many more may go into a cheaper answer, `most` is the
    limit of all rounds together.

    `total` are the steps so far, `end` is the total up to which the round may take on classes. A step is about 5 µs on
    a machine of 2024. `earlier` are the steps before the latest `restart`. `ahead` are the steps to pack the classes
    that the round has taken on, as far as they are known in advance.
    """

    limit: int = _NO_END
    luxury: int = 0
    most: int = _NO_END
    total: int = 0
    earlier: int = 0
    ahead: int = 0
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = min(self.limit, self.most)

    def charge(self, steps: int) -> None:
        """So many steps are done, or are about to be."""
        self.total += steps

    def begin(self) -> None:
        """A round begins."""
        self.end, self.ahead = min(self.total + self.limit, self.most), 0

    def foresee(self, steps: int) -> None:
        """Packing takes so many further steps; when these are too many, the round takes on no further class.

        Packing may take twice as many as classes, for most of its work depends on how many classes there are together.
        """
        self.ahead += steps
        if self.ahead > 2 * self.limit or self.total + self.ahead > self.most:
            self.end = min(self.end, self.total - 1)

    def restart(self) -> None:
        """Begin again from 0, with the steps that are left of `most`."""
        self.earlier, self.most, self.total = self.earlier + self.total, self.most - self.total, 0

    @property
    def whole(self) -> int:
        """All steps so far."""
        return self.earlier + self.total

    @property
    def spent(self) -> bool:
        """Whether the round may take on no further class."""
        return self.total > self.end

    @property
    def worn(self) -> bool:
        """Whether nothing should be done any more that can be left out."""
        return self.total > min(self.limit + self.luxury, self.most)

    @property
    def over(self) -> bool:
        """Whether no further round may begin, and packing leaves out whatever takes long."""
        return self.total > min(self.limit + max(self.limit, self.luxury), self.most)


@dataclass(frozen=True, slots=True)
class Turns:
    """The order of pods where not all can have a place: UIDs of those that the latest pass has `left_over`, whether
    a pod has a place already (`settled`), and UIDs of those that were refused while others waited (`had_turn`)."""

    left_over: Set[str] = frozenset()
    settled: Callable[[Pod], bool] = lambda pod: False
    had_turn: Set[str] = frozenset()

    def fairly(self, entries: Sequence[T], members: Callable[[T], Sequence[Pod]]) -> list[T]:
        """By priority; of one priority the namespaces in turn; of a namespace, and of a turn, those that were left over
        first, those that have a place after others, and those that had their turn last.

        Pods of several namespaces have the turn of the namespace with the fewest entries.

        Args:
            members: the pods of an entry, which are of one priority.
        """
        places = [{pod.metadata.namespace for pod in members(entry)} for entry in entries]
        counts = Counter(namespace for own in places for namespace in own)
        namespaces = [min(own, key=lambda namespace: (counts[namespace], namespace)) for own in places]
        ranked = sorted((self._rank(members(entry), namespaces[i]), i) for i, entry in enumerate(entries))
        taken, turns = Counter[tuple[int, str]](), list[tuple[int, int, int, int]]()
        for (priority, namespace, place), i in ranked:
            turns.append((priority, taken[priority, namespace], place, i))
            taken[priority, namespace] += 1
        return [entries[i] for *_, i in sorted(turns)]

    def _rank(self, pods: Sequence[Pod], namespace: str) -> tuple[int, str, int]:
        if any(pod.metadata.uid in self.left_over for pod in pods):
            place = -1
        elif all(pod.metadata.uid in self.had_turn for pod in pods):
            place = 2
        else:
            place = int(all(map(self.settled, pods)))
        return -pods[0].spec.priority, namespace, place


#: Pods were never left over, and have no place.
NO_TURNS: Final = Turns()
