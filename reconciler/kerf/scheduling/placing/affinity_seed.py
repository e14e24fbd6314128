"""Where the first pod of a kind is placed that others must be near (affinity): where there is room for those who
follow.

Affinity is founded once. Who comes first settles the host or the zone, and a place that is just large enough for him
may leave the others without any. So of the places that he could have, those are left in which most of them will find
room; when a new node would have room for more of them, none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kerf.pods.topology_constraints import AFFINITY, TopologyGroup
from kerf.scheduling.nodes.existing import ExistingNode
from kerf.scheduling.offerings.instance_types import Bools, Ints
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.placing.domains import Opening
from kerf.scheduling.topology.admits import founded
from kerf_api import labels

#: Shares are rounded up by so much, so that a half and a half are one.
_ROUNDING = 1e-9


class AffinitySeed:
    """The classes that have affinity to a group, as long as no pod of that group is placed."""

    def __init__(self, classes: Iterable[PodClass], needs: Mapping[int, Ints], opening: Opening) -> None:
        self._needs, self._opening = needs, opening
        self._of: dict[TopologyGroup, list[PodClass]] = {}
        for cls in classes:
            for constraint in cls.relaxations[-1].constraints:
                if constraint.group.kind == AFFINITY and constraint.group.anywhere() == 0:
                    self._of.setdefault(constraint.group, []).append(cls)

    def leave(self, cls: PodClass, number: int, good: Bools, targets: Sequence[ExistingNode], free: Ints) -> Bools:
        """Of the `good` places for a pod of the class those that suit its followers best; none if a new node does."""
        for group in cls.counted:
            if group in self._of and group.anywhere() == 0 and good.any():
                here = self._on_host if group.key == labels.HOSTNAME else self._in_domain
                good = here(cls, number, good, targets, free, group)
        return good

    def _on_host(
        self, cls: PodClass, number: int, good: Bools, targets: Sequence[ExistingNode], free: Ints, group: TopologyGroup
    ) -> Bools:
        followers = self._of[group]
        whole = sum((self._needs[f.number] * len(f.members) for f in followers), np.zeros_like(free[0]))
        if cls not in followers:
            whole = whole + self._needs[cls.number]
        pods = sum(len(f.members) for f in followers)
        held = _held(free, whole, pods)
        new = 0
        for route in self._opening.open_routes(cls, number, self._needs[cls.number]):
            new = max(new, int(_held(route.template.shape(route.served).room, whole, pods).max(initial=0)))
        return _most(good, held, new)

    def _in_domain(
        self, cls: PodClass, number: int, good: Bools, targets: Sequence[ExistingNode], free: Ints, group: TopologyGroup
    ) -> Bools:
        """New nodes have room for any number, where there can be one."""
        held: dict[str, int] = {}
        for follower in self._of[group]:
            need, last = self._needs[follower.number], len(follower.relaxations) - 1
            new = {dict(route.pins).get(group.key) for route in self._opening.open_routes(follower, last, need)}
            room: dict[str, int] = {}
            for place in np.flatnonzero((free >= need).all(axis=1)).tolist():
                domains = targets[place].domains(group.key)
                if len(domains) == 1 and domains[0] is not None:
                    each = int((free[place][need > 0] // need[need > 0]).min(initial=len(follower.members)))
                    room[domains[0]] = room.get(domains[0], 0) + each
            for domain in {*room, *(d for d in new if d is not None)}:
                most = len(follower.members) if domain in new else room[domain]
                held[domain] = held.get(domain, 0) + min(most, len(follower.members))
        routes = self._opening.open_routes(cls, number, self._needs[cls.number])
        own = {dict(route.pins).get(group.key) for route in routes}
        there = [targets[place].domains(group.key) for place in range(len(targets))]
        here = np.array([held.get(d[0] or "", 0) if len(d) == 1 else 0 for d in there], dtype=np.int64)
        return _most(good, here, max((held.get(domain, 0) for domain in own if domain is not None), default=0))


class Company:
    """The classes in a queue that others must be near."""

    def __init__(self, queue: Sequence[PodClass]) -> None:
        near = {group for cls in queue for group in cls.relaxations[-1].near}
        self._last = {
            (group, cls.sample.spec.priority): turn
            for turn, cls in enumerate(queue if near else ())
            for group in near.intersection(cls.counted)
        }

    def comes_later(self, cls: PodClass, turn: int) -> bool:
        """Whether pods that a class must be near, of which some have places, are of its priority and come after it.

        Their places on nodes that are there may have room for the class, so no node is made for it before.
        """
        others = cls.relaxations[-1].others
        if not others:
            return False
        last, priority = self._last, cls.sample.spec.priority
        return any(last.get((constraint.group, priority), turn) > turn and founded(constraint) for constraint in others)


def _held(rooms: Ints, whole: Ints, pods: int) -> Ints:
    """About how many of so many pods, that need this much together, each room holds."""
    wanted = np.flatnonzero(whole)
    shares = (rooms[:, wanted] / whole[wanted]).min(axis=1, initial=1.0)
    return np.asarray((shares.clip(0, 1) * pods + _ROUNDING).astype(np.int64))


def _most(good: Bools, held: Ints, new: int) -> Bools:
    """The good places that hold most; none when a new node holds more."""
    most = int(held[good].max())
    return good & (held == most) if most >= new else np.zeros_like(good)
