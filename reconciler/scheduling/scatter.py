"""Where pods may end up when nobody but the kube-scheduler places them: it plans nothing ahead.

It knows no node that has not joined. It takes pods of higher priority first, the others as they come, and sends each to
the emptiest node that suits it (`LeastAllocated`, what it scores by unless told otherwise), also where another pod will
miss that room. In which order pods come nobody knows: small ones before large ones, or the other way round, or as a
drain evicts them, by name. Those with volumes come last, for a volume has to be let go first. What has a place in all
of these orders has one in most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from api.requirements import EMPTY
from reconciler.model.objects import Pod
from reconciler.scheduling.assign import Assignment
from reconciler.scheduling.classes import PodClass
from reconciler.scheduling.types import Bools, Ints

_SCORED: Final = ("cpu", "memory")
_WHOLE: Final = 1_000_000


class Scattered(Assignment):
    """See the module; small pods come first. What has no place on a node that is there is given a new one, as ever."""

    def run(self, classes: Sequence[PodClass], promises: Mapping[str, str]) -> None:
        """Ties keep their order."""
        super().run(sorted(classes, key=lambda cls: (_urgency(cls), self._turn(cls))), promises)

    def _turn(self, cls: PodClass) -> tuple[Any, ...]:
        """What comes first among the equally urgent."""
        return cls.requests["cpu"], cls.requests["memory"]

    def _place_all(self, cls: PodClass, pods: Sequence[Pod], need: Ints) -> int:
        """One after the other: each goes where it is emptiest then."""
        return next((done for done, pod in enumerate(pods) if not self._place(cls, pod, need)), len(pods))

    def _place(self, cls: PodClass, pod: Pod, need: Ints) -> bool:
        """What a pod merely prefers is no reason to wait for a new node."""
        for number, rung in enumerate(cls.rungs):
            place = self._existing(cls, number, need) if rung.demand.possible else None
            if place is not None:
                self._put(cls, rung, pod, need, place)
                return True
        return super()._place(cls, pod, need)

    def _existing(self, cls: PodClass, number: int, need: Ints) -> int | None:
        roomy = np.flatnonzero(self.roomy(cls, number, need) & self._attaches(cls) & self._joined)
        emptiest = roomy[np.argsort(-self._freedom(roomy, need), kind="stable")]
        return next((int(p) for p in emptiest if self._allowed(cls, cls.rungs[number], int(p))), None)

    @cached_property
    def _joined(self) -> Bools:
        return np.array([target.state.initialized for target in self.targets], dtype=np.bool_)

    @cached_property
    def _scored(self) -> list[int]:
        return [self.columns.names.index(name) for name in _SCORED]

    @cached_property
    def _full(self) -> Ints:
        """What each target has of the resources that count."""
        rows = [self.columns.vector(target.state.allocatable)[self._scored] for target in self.targets]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._scored))

    def _freedom(self, places: np.typing.NDArray[np.intp], need: Ints) -> Ints:
        """The shares of these places that would stay free, added up, in millionths."""
        left = (self.free[places] - need)[:, self._scored].clip(min=0)
        shares: Ints = (left * _WHOLE // self._full[places].clip(min=1)).sum(axis=1)
        return shares


class ScatteredLargeFirst(Scattered):
    """Large pods come before small ones."""

    def _turn(self, cls: PodClass) -> tuple[Any, ...]:
        return -cls.requests["cpu"], -cls.requests["memory"]


class ScatteredByName(Scattered):
    """Pods come in the order in which a node's are evicted."""

    def _turn(self, cls: PodClass) -> tuple[Any, ...]:
        return (min(pod.key for pod in cls.members),)


def _urgency(cls: PodClass) -> tuple[int, bool]:
    return -cls.sample.spec.priority, any(volume != EMPTY for volume in cls.volumes)
