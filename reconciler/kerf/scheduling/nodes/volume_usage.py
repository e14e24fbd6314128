"""How many volumes nodes can still attach: each storage driver says of each node how many, in the node's CSINode.

A volume that several pods of a node share counts once there. What no driver attaches (NFS), and what a driver names no
number for, has no limit; nor has a node that is yet to come, for its drivers are unknown. As the kube-scheduler has
it, a node with too many volumes still takes who brings no further one. Source: scheduling reference §7.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.pods.volumes import Attachment, attachments
from kerf.scheduling.nodes.existing import ExistingNode
from kerf.scheduling.offerings.instance_types import MOST, Bools, Ints


@dataclass(frozen=True, slots=True)
class Attaching:
    """What each pod of a class brings of drivers that have limits.

    `own`: how many volumes, by driver, that no other pod uses; `shared`: those that others use too.
    """

    own: tuple[tuple[str, int], ...] = ()
    shared: tuple[Attachment, ...] = ()

    @property
    def drivers(self) -> tuple[str, ...]:
        return tuple(sorted({driver for driver, _ in (*self.own, *self.shared)}))


NOTHING = Attaching()


@dataclass(frozen=True, eq=False)
class Attached:
    """What places have attached and what they can: `limits` and `counts` are [places], by driver that has a limit.

    `vacated` are what some places have lost since `held` was read.
    """

    held: Sequence[frozenset[Attachment]]
    limits: Mapping[str, Ints]
    counts: Mapping[str, Ints]
    vacated: Mapping[int, frozenset[Attachment]] = field(default_factory=dict)
    #: The places of each volume, after the first request.
    _known: dict[Attachment, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, targets: Sequence[ExistingNode]) -> Attached:
        drivers = sorted({driver for target in targets for driver in target.attachable})
        held = [target.attached for target in targets]
        counted = [Counter(driver for driver, _ in volumes) for volumes in held] if drivers else []
        limits = {d: _column(min(max(t.attachable.get(d, MOST), 0), MOST) for t in targets) for d in drivers}
        return cls(held, limits, {d: _column(count[d] for count in counted) for d in drivers})

    def without(self, vacated: Mapping[int, frozenset[Attachment]]) -> Attached:
        """The same when some places no longer have these volumes."""
        lost = {place: volumes for place, volumes in vacated.items() if volumes}
        if not lost or not self.limits:
            return self
        counts = {driver: column.copy() for driver, column in self.counts.items()}
        for place, volumes in lost.items():
            for driver, _ in volumes:
                if driver in counts:
                    counts[driver][place] -= 1
        gone = {place: volumes | self.vacated.get(place, frozenset()) for place, volumes in lost.items()}
        return replace(self, counts=counts, vacated={**self.vacated, **gone})

    def places(self, volume: Attachment) -> list[int]:
        """Who has a volume attached."""
        return [place for place in self._holders.get(volume, ()) if volume not in self.vacated.get(place, ())]

    @property
    def _holders(self) -> Mapping[Attachment, list[int]]:
        if not self._known:
            for place, volumes in enumerate(self.held):
                for volume in volumes:
                    self._known.setdefault(volume, []).append(place)
        return self._known


def _column(amounts: Iterable[int]) -> Ints:
    return np.fromiter(amounts, dtype=np.int64)


def attaching(snapshot: Snapshot, pods: Sequence[Pod], attached: Attached) -> dict[str, Attaching]:
    """What each of these pods brings, by key; pods that bring nothing with a limit are left out."""
    if not attached.limits:
        return {}
    wanted = {
        pod.key: sorted(volume for volume in attachments(snapshot, pod) if volume[0] in attached.limits)
        for pod in pods
        if pod.spec.volumes
    }
    users = Counter(volume for volumes in wanted.values() for volume in volumes)
    shared = {volume for volume, number in users.items() if number > 1 or attached.places(volume)}
    return {key: _brings(volumes, shared) for key, volumes in wanted.items() if volumes}


def _brings(volumes: Sequence[Attachment], shared: set[Attachment]) -> Attaching:
    own = Counter(volume[0] for volume in volumes if volume not in shared)
    return Attaching(tuple(sorted(own.items())), tuple(volume for volume in volumes if volume in shared))


class VolumeSlots:
    """What places can still attach while pods are given places."""

    def __init__(self, attached: Attached, number: int) -> None:
        self._attached, self._number = attached, number
        self._unlimited = np.full(number, MOST, dtype=np.int64)
        self._has: dict[Attachment, Bools] = {}

    @cached_property
    def _free(self) -> dict[str, Ints]:
        return {driver: limit - self._attached.counts[driver] for driver, limit in self._attached.limits.items()}

    def most(self, wanted: Attaching) -> Ints:
        """How many more pods that bring this each place can take, as far as volumes go."""
        most, own = self._unlimited, dict(wanted.own)
        for driver in wanted.drivers:
            room, new = self._free[driver], np.zeros(self._number, dtype=np.int64)
            for volume in wanted.shared:
                if volume[0] == driver:
                    new += ~self._having(volume)
            left = room - new
            if driver in own:
                most = np.minimum(most, left.clip(min=0) // own[driver])
            else:
                most = np.where((new > 0) & (left < 0), 0, most)
        return most

    def add(self, wanted: Attaching, place: int) -> None:
        """One pod that brings this is there now."""
        for driver, number in wanted.own:
            self._free[driver][place] -= number
        for volume in wanted.shared:
            if not self._having(volume)[place]:
                self._having(volume)[place] = True
                self._free[volume[0]][place] -= 1

    def _having(self, volume: Attachment) -> Bools:
        """Which places have a volume."""
        if volume not in self._has:
            self._has[volume] = np.zeros(self._number, dtype=np.bool_)
            self._has[volume][self._attached.places(volume)] = True
        return self._has[volume]
