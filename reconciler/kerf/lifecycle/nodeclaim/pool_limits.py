"""The limits of NodePools hold for every launch, whatever created the NodeClaims.

Within one look, each call that is planned leaves less to the next. Instances count by the list of EC2 and by their tag
of the NodePool, for others may relabel, strip and delete NodeClaims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.ec2.launch import candidates, fleet
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import FleetRequest, Instance
from kerf.model.aws.instance_type import InstanceType
from kerf.model.memory import Step
from kerf.model.plan import LaunchInstances
from kerf_api import labels
from kerf_api.resources import Resources, total
from kerf_api.v1.nodeclaim import NodeClaim

#: NodePool, resource (or `nodes`), and whether it is of nodes with a command.
Part = tuple[str, str, bool]
#: NodePool, node class, instance type, zone and capacity type of an instance.
Size = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Used:
    """What the nodes of each NodePool take (`node_pools.MEMBERS`), and how many instances of each size are none of its
    nodes (`APART`)."""

    nodes: Mapping[Part, int]
    apart: Mapping[Size, int]


@dataclass(frozen=True, slots=True)
class Left:
    """What may be launched from a NodePool.

    Nodes with a command do not count, since their replacements come first; but `now` all nodes together take no more
    than twice the limits, and instances count that are none of its nodes. `later` these have ended.
    """

    now: Resources
    later: Resources

    def less(self, taken: Mapping[str, int]) -> Left:
        """What is left afterwards."""
        return Left(_less(self.now, taken), _less(self.later, taken))


class PoolLimits:
    """`used` is asked for once a NodePool with limits launches; `calls` are under way."""

    def __init__(self, view: View, calls: Iterable[FleetRequest], used: Callable[[], Used]) -> None:
        self._view, self._used = view, used
        sent = (action.request for action in view.snapshot.under_way if isinstance(action, LaunchInstances))
        self._calls = {call.group: call for call in (*sent, *calls)}
        self._left: dict[str, Left | None] = {}

    def left(self, pool_name: str) -> Left | None:
        """What may still be launched from a NodePool; None without limits. Raises ValueError for malformed limits."""
        if pool_name not in self._left:
            self._left[pool_name] = self._work_out(pool_name)
        return self._left[pool_name]

    def _work_out(self, pool_name: str) -> Left | None:
        pool = self._view.snapshot.node_pools.get(pool_name)
        limits = pool.limits if pool is not None else None
        if limits is None:
            return None
        used, now, later = self._used(), dict[str, int](), dict[str, int]()
        apart = self._taken_apart(pool_name, used.apart)
        for name, limit in limits.items():
            staying, replaced = (used.nodes.get((pool_name, name, going), 0) for going in (False, True))
            later[name] = limit - staying
            now[name] = min(later[name], 2 * limit - staying - replaced) - apart[name]
        left = Left(Resources(now), Resources(later))
        for call in self._calls.values():
            if call.tags.get(labels.TAG_NODEPOOL) == pool_name:
                there = self._view.snapshot.instances.by_group.get(call.group, ())
                left = left.less(self._largest(pool_name, call, max(0, len(call.members) - len(there))))
        return left

    def _largest(self, pool_name: str, call: FleetRequest, number: int) -> Resources:
        """The most that so many instances of a call take. Members count whose NodeClaims are gone: EC2 launches for
        them too."""
        names, largest = {override.instance_type for override in call.overrides}, Resources()
        for kind in self._view.snapshot.types_for(pool_name, call.tags.get(labels.TAG_NODECLASS, "")):
            if kind.name in names:
                largest = _most((largest, *map(_capacity, kind.groups())))
        return _times(largest, number)

    def _taken_apart(self, pool_name: str, apart: Mapping[Size, int]) -> Resources:
        """What instances of the NodePool take that are none of its nodes."""
        return total(_times(self._of_size(size), number) for size, number in apart.items() if size[0] == pool_name)

    def _of_size(self, size: Size) -> Resources:
        pool_name, class_name, type_name, zone, capacity_type = size
        types = self._view.snapshot.types_for(pool_name, class_name)
        kind = next((one for one in types if one.name == type_name), None)
        return _capacity(kind.launched(zone, capacity_type)) if kind is not None else Resources({"nodes": 1})

    # --- launches -------------------------------------------------------------------------------------------------
    def planned(self, pool_name: str, call: FleetRequest) -> None:
        """Take what one more call may launch off what is left."""
        left = self.left(pool_name)
        if left is not None:
            self._left[pool_name] = left.less(self._largest(pool_name, call, len(call.members)))

    def number(self, members: Sequence[NodeClaim], types: Iterable[InstanceType], *, now: bool = True) -> int:
        """How many of these NodeClaims of one call may be launched, now or later (`Left`)."""
        first, snapshot = members[0], self._view.snapshot
        left = self.left(first.pool_name)
        if left is None:
            return len(members)
        room = left.now if now else left.later
        rows, requests = fleet.wanted(first), first.requests()
        sold = candidates.available(tuple(types), rows, requests, snapshot.out_of_stock, snapshot.now)
        kinds = (replace(one.type, offerings=one.offerings) for one in sold)
        sizes = [_capacity(group) for kind in kinds for group in kind.groups()]
        return max((_fit(room, size, len(members)) for size in sizes), default=len(members))

    def within(self, pool_name: str, types: Sequence[InstanceType], number: int) -> tuple[InstanceType, ...]:
        """The types of which so many instances may be launched, with the offerings of which they may.

        All types when none that can be bought is among them: then nothing is launched, and stock is the reason.
        """
        left = self.left(pool_name)
        return tuple(types) if left is None else tuple(_within(left.now, types, number)) or tuple(types)


def _within(room: Resources, types: Iterable[InstanceType], number: int) -> Iterator[InstanceType]:
    for kind in types:
        groups = kind.groups()
        small = [group for group in groups if _fit(room, _capacity(group), number) >= number]
        if len(small) == len(groups):
            yield kind
        elif small:
            yield replace(kind, offerings=tuple(offering for group in small for offering in group.offerings))


def _fit(room: Resources, size: Resources, most: int) -> int:
    """How many of this size there is room for; `most` at most."""
    fitting = (amount // size[name] for name, amount in room.items() if size[name] > 0)
    return max(0, min((most, *fitting)))


def _capacity(kind: InstanceType) -> Resources:
    return Resources({**kind.capacity, "nodes": 1})


def _most(amounts: Iterable[Resources]) -> Resources:
    found = Resources()
    for one in amounts:
        found = found.maximum(one)
    return found


def _less(left: Resources, taken: Mapping[str, int]) -> Resources:
    """Of the resources that have a limit, what is left afterwards."""
    return Resources({name: amount - taken.get(name, 0) for name, amount in left.items()})


def _times(amounts: Resources, number: int) -> Resources:
    return Resources({name: amount * number for name, amount in amounts.items()})


# --- instances that are no node of their NodePool -------------------------------------------------------------------
def _apart(view: View, id_: str) -> tuple[Size | None, None]:
    """The size of a live instance that is no node of the NodePool that it was launched for (yet, or any more)."""
    instance = view.snapshot.instances[id_]
    tags, pool_name = instance.tags, instance.tags.get(labels.TAG_NODEPOOL, "")
    if not instance.live or not pool_name or _is_node(view, instance, pool_name):
        return None, None
    class_name = tags.get(labels.TAG_NODECLASS, "")
    return (pool_name, class_name, instance.instance_type, instance.zone, instance.capacity_type), None


def _is_node(view: View, instance: Instance, pool_name: str) -> bool:
    """Whether it counts as a node of the NodePool, or a NodeClaim that is being deleted ends it."""
    claims = view.snapshot.claims_by_instance.get(instance.id, ())
    if any(c.metadata.deleting and labels.TERMINATION_FINALIZER in c.metadata.finalizers for c in claims):
        return True
    own = [c for c in claims if c.status.provider_id and c.pool_name == pool_name and not c.metadata.deleting]
    if any(not claim.is_true("InstanceTerminating") for claim in own):
        return True
    nodes = () if claims else view.nodes.get(instance.provider_id, ())
    return any(n.metadata.labels.get(labels.NODEPOOL) == pool_name and not n.metadata.deleting for n in nodes)


APART: Step[View, Size | None] = Step(
    "instances apart",
    "instances",
    _apart,
    speaks=lambda _: False,
    counts=lambda size: () if size is None else ((size, 1),),
)
