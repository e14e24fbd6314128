"""The limits of NodePools hold for every launch, whatever created the NodeClaims.

Within one look, each call that is planned leaves less to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from api import labels
from api.resources import Resources
from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle.node_pools import Part
from reconciler.lifecycle.view import View
from reconciler.model.cloud import FleetRequest
from reconciler.model.instance_type import InstanceType

#: What the nodes of each NodePool take (`node_pools.MEMBERS`).
Used = Mapping[Part, int]


class PoolLimits:
    """`used` is asked for when a NodePool with limits launches; `calls` are under way."""

    def __init__(self, view: View, calls: Iterable[FleetRequest], used: Callable[[], Used]) -> None:
        self._view, self._used, self._calls = view, used, tuple(calls)
        self._left: dict[str, Resources | None] = {}

    def left(self, pool_name: str) -> Resources | None:
        """What may still be launched from a NodePool; None without limits. Raises ValueError for malformed limits.

        Nodes with a command do not count, since their replacements come first; but all nodes together never take more
        than twice the limits.
        """
        if pool_name not in self._left:
            self._left[pool_name] = self._work_out(pool_name)
        return self._left[pool_name]

    def _work_out(self, pool_name: str) -> Resources | None:
        pool = self._view.snapshot.node_pools.get(pool_name)
        limits = pool.limits if pool is not None else None
        if limits is None:
            return None
        used: Used = self._used()
        rows = {}
        for name, limit in limits.items():
            staying, replaced = used.get((pool_name, name, False), 0), used.get((pool_name, name, True), 0)
            rows[name] = min(limit - staying, 2 * limit - staying - replaced)
        left = Resources(rows)
        for call in self._calls:
            claims = [self._view.snapshot.node_claims.get(name) for name in call.members]
            waiting = [c for c in claims if c is not None and c.pool_name == pool_name and not c.status.provider_id]
            left = _less(left, self._largest(pool_name, call, len(waiting))) if waiting else left
        return left

    def _largest(self, pool_name: str, call: FleetRequest, number: int) -> Resources:
        """The most that so many instances of a call take."""
        names, largest = {override.instance_type for override in call.overrides}, Resources()
        for kind in self._view.snapshot.types_for(pool_name, self._class_name(call)):
            if kind.name in names:
                largest = largest.maximum(_capacity(kind))
        return _times(largest, number)

    def _class_name(self, call: FleetRequest) -> str:
        claims = (self._view.snapshot.node_claims.get(name) for name in call.members)
        return next((claim.spec.node_class_ref.name for claim in claims if claim is not None), "")

    def planned(self, pool_name: str, call: FleetRequest) -> None:
        """Take what one more call may launch off what is left."""
        left = self.left(pool_name)
        if left is not None:
            self._left[pool_name] = _less(left, self._largest(pool_name, call, len(call.members)))

    def number(self, members: Sequence[NodeClaim], types: Iterable[InstanceType]) -> int:
        """How many of these equal NodeClaims may be launched."""
        first = members[0]
        if self.left(first.pool_name) is None:
            return len(members)
        allowed, requests = first.requirements().allowed(labels.INSTANCE_TYPE), first.requests()
        fitting = (t for t in types if allowed.has(t.name) and requests.fits(t.allocatable))
        return max((self._times_left(first.pool_name, kind, len(members)) for kind in fitting), default=len(members))

    def within(self, pool_name: str, types: Sequence[InstanceType], number: int) -> tuple[InstanceType, ...]:
        """The types of which so many instances may be launched."""
        return tuple(kind for kind in types if self._times_left(pool_name, kind, number) >= number)

    def _times_left(self, pool_name: str, kind: InstanceType, most: int) -> int:
        left, needed = self.left(pool_name), _capacity(kind)
        if left is None:
            return most
        taken = ((name, amount) for name, amount in left.items() if needed[name] > 0)
        return max(0, min((amount // needed[name] for name, amount in taken), default=most))


def _capacity(kind: InstanceType) -> Resources:
    return Resources({**kind.capacity, "nodes": 1})


def _less(left: Resources, taken: Mapping[str, int]) -> Resources:
    """Of the resources that have a limit, what is left afterwards."""
    return Resources({name: amount - taken.get(name, 0) for name, amount in left.items()})


def _times(amounts: Resources, number: int) -> Resources:
    return Resources({name: amount * number for name, amount in amounts.items()})
