"""Where pods may end up when the kube-scheduler alone places them: it plans nothing ahead.

It knows no node that has not joined. It takes pods of higher priority first, the others as they come, and sends each to
the emptiest node that suits it (`LeastAllocated`, its default score), also where another pod will
miss that room. The order in which pods come is unknown: small ones before large ones, or the other way round, or as a
drain evicts them, by name. Those with volumes come last, for a volume has to be let go first. What has a place in all
of these orders has one in most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.offerings.instance_types import Bools, Ints
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.classes import PodClass
from kerf_api.requirements import EMPTY

_SCORED: Final = ("cpu", "memory")
_WHOLE: Final = 1_000_000


class Line:
    """Places, the emptiest first (ties: the lower number), while they fill."""

    def __init__(self, places: Sequence[int], freedoms: Sequence[int]) -> None:
        self._freedoms = dict(zip(places, freedoms, strict=True))
        #: An entry that does not say what is known of its place is outdated.
        self._heap = [(-freedom, place) for place, freedom in self._freedoms.items()]
        heapify(self._heap)

    def change(self, place: int, freedom: int | None) -> None:
        """So much is free there now; None: it takes no more. Nothing happens when it is not in the line."""
        if place not in self._freedoms or self._freedoms[place] == freedom:
            return
        if freedom is None:
            del self._freedoms[place]
        else:
            self._freedoms[place] = freedom
            heappush(self._heap, (-freedom, place))

    def first(self, good: Callable[[int], bool]) -> int | None:
        """The first place that is good; it stays in the line."""
        passed, found = list[tuple[int, int]](), None
        while self._heap and found is None:
            negative, place = self._heap[0]
            if self._freedoms.get(place) != -negative:
                heappop(self._heap)
            elif good(place):
                found = place
            else:
                passed.append(heappop(self._heap))
        for entry in passed:
            heappush(self._heap, entry)
        return found


class KubeSchedulerOrder(Assignment):
    """See the module; small pods come first. What has no place on a node that is there is given a new one, as ever."""

    #: By relaxation, the places for pods of the class that is being placed.
    _lines: dict[int, Line]

    def run(self, classes: Sequence[PodClass], promises: Mapping[str, str]) -> None:
        """Ties keep their order."""
        super().run(sorted(classes, key=lambda cls: (_urgency(cls), self._turn(cls))), promises)

    def _turn(self, cls: PodClass) -> tuple[Any, ...]:
        """What comes first among the equally urgent."""
        return cls.requests["cpu"], cls.requests["memory"]

    def _place_all(self, cls: PodClass, pods: Sequence[Pod], need: Ints) -> int:
        """One after the other: each goes where it is emptiest then."""
        self._lines = {}
        return next((done for done, pod in enumerate(pods) if not self._place(cls, pod, need)), len(pods))

    def _place(self, cls: PodClass, pod: Pod, need: Ints) -> bool:
        """What a pod merely prefers is no reason to wait for a new node."""
        for number, relaxation in enumerate(cls.relaxations):
            place = self._existing(cls, number, need) if relaxation.demand.possible else None
            if place is not None:
                self._put(cls, relaxation, pod, need, place)
                self._reline(cls, need, place)
                return True
        return super()._place(cls, pod, need)

    def _existing(self, cls: PodClass, number: int, need: Ints) -> int | None:
        """While pods of one class are placed, room is only taken: a line of places is made once and kept up."""
        if number not in self._lines:
            roomy = np.flatnonzero(self.roomy(cls, number, need) & self._attaches(cls) & self._joined)
            self._lines[number] = Line(roomy.tolist(), self._freedom(roomy, need).tolist())
        return self._lines[number].first(lambda place: self._allowed(cls, cls.relaxations[number], place))

    def _reline(self, cls: PodClass, need: Ints, place: int) -> None:
        """A pod of the class has gone there."""
        roomy = (self.free[place] >= need).all() and self._attaches(cls)[place]
        freedom = int(self._freedom(np.array([place]), need)[0]) if roomy else None
        for line in self._lines.values():
            line.change(place, freedom)

    @cached_property
    def _joined(self) -> Bools:
        return np.array([target.state.initialized for target in self.targets], dtype=np.bool_)

    @cached_property
    def _scored(self) -> NDArray[np.intp]:
        return np.array([self.columns.names.index(name) for name in _SCORED], dtype=np.intp)

    @cached_property
    def _full(self) -> Ints:
        """What each target has of the resources that count."""
        rows = [self.columns.vector(target.state.allocatable)[self._scored] for target in self.targets]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._scored))

    def _freedom(self, places: NDArray[np.intp], need: Ints) -> Ints:
        """The shares of these places that would stay free, added up, in millionths."""
        left = (self.free[places[:, np.newaxis], self._scored] - need[self._scored]).clip(min=0)
        shares: Ints = (left * _WHOLE // self._full[places].clip(min=1)).sum(axis=1)
        return shares


class KubeSchedulerOrderLargeFirst(KubeSchedulerOrder):
    """Large pods come before small ones."""

    def _turn(self, cls: PodClass) -> tuple[Any, ...]:
        return -cls.requests["cpu"], -cls.requests["memory"]


class KubeSchedulerOrderByName(KubeSchedulerOrder):
    """Pods come in the order in which a node's are evicted."""

    def _turn(self, cls: PodClass) -> tuple[Any, ...]:
        return (min(pod.key for pod in cls.members),)


def _urgency(cls: PodClass) -> tuple[int, bool]:
    return -cls.sample.spec.priority, any(volume != EMPTY for volume in cls.volumes)
