"""The CreateFleet call of NodeClaims, and which of them share one: those for which it would ask EC2 for the same.

A plan makes a NodeClaim for each node, each with the requests of its own pods. Where the same instance types hold them
all, at the same prices, one call launches them: EC2 limits the rate of calls, not of instances.

A call goes to one subnet of each zone, and a quota may refuse all of it. So where a zone has several subnets, and while
a quota of vCPUs is known to be used up, only equal NodeClaims share a call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.ec2 import quotas
from kerf.ec2.launch import fleet
from kerf.ec2.launch.fleet import FleetProblem, LaunchFacts
from kerf.ec2.nodeclass import nodeclass
from kerf.lifecycle.nodeclaim import outcomes, unmarked
from kerf.lifecycle.nodeclaim.subnet_room import SubnetRoom
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.instance_type import Catalogue
from kerf.model.replicas import coming
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim

#: NodeClaims of one call. The request, which names them, is written to each of them.
LARGEST_GROUP: Final = 100
#: So long after its creation a NodeClaim waits at most for others that are still being created: for equal ones, which
#: its call certainly serves, and for similar ones, which it may. The API server rounds the creation down to a second.
_FOR_EQUAL, _FOR_SIMILAR = timedelta(seconds=5), timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Group:
    """NodeClaims of one call, which waits `until` then for more of them; None when there are no more to come."""

    members: tuple[NodeClaim, ...]
    attempt: int
    until: datetime | None


def shared(view: View, claims: Iterable[NodeClaim], subnets: SubnetRoom) -> Iterator[Group]:
    """The NodeClaims by the call that is to launch them."""
    similar: dict[tuple[int, Hashable], dict[Hashable, list[NodeClaim]]] = {}
    for claim in claims:
        key = _attempt(view, claim), fleet.similar_launch(claim)
        similar.setdefault(key, {}).setdefault(fleet.equal_launch(claim), []).append(claim)
    expected = frozenset(wait for claim in coming(view.snapshot) for wait in _waits(claim)) if similar else frozenset()
    for (attempt, _), equal in similar.items():
        for members in _alike(view, list(equal.values()), subnets):
            for start in range(0, len(members), LARGEST_GROUP):
                group = tuple(members[start : start + LARGEST_GROUP])
                yield Group(group, attempt, _until(group, expected))


def _attempt(view: View, claim: NodeClaim) -> int:
    failure = view.snapshot.launch_failures.get(view.group_of(claim))
    return outcomes.attempt(failure) if failure is not None else unmarked.attempt(view, claim)


def _alike(view: View, classes: Sequence[list[NodeClaim]], subnets: SubnetRoom) -> list[list[NodeClaim]]:
    """Classes of equal NodeClaims, joined where EC2 is asked for the same."""
    if len(classes) == 1 or not _sharing(view, classes[0][0]):
        return [*classes]
    joined: dict[Hashable, list[NodeClaim]] = {}
    for number, members in enumerate(classes):
        joined.setdefault(_asked(view, members, subnets) or number, []).extend(members)
    return list(joined.values())


def _sharing(view: View, claim: NodeClaim) -> bool:
    node_class: EC2NodeClass | None = view.class_of(claim)
    zones = [subnet.zone for subnet in node_class.status.subnets] if node_class is not None else []
    errors = (error for failure in view.snapshot.launch_failures.values() for error in failure.errors)
    return len(zones) == len(set(zones)) and not any(map(quotas.of_vcpus, errors))


def _asked(view: View, members: Sequence[NodeClaim], subnets: SubnetRoom) -> Hashable:
    """What EC2 is asked for by one of these; None when that is not known, or when not all can have it."""
    try:
        request = planned(view, members, 0, subnets, view.types_of(members[0]))
    except Exception:  # the call itself, which comes next, reports it for these NodeClaims alone
        return None
    if not isinstance(request, FleetRequest) or request.capacity_type == labels.RESERVED:  # a reservation may be small
        return None
    return fleet.asked_of_ec2(request)


def _waits(claim: NodeClaim) -> tuple[Hashable, Hashable]:
    return fleet.equal_launch(claim), fleet.similar_launch(claim)


def _until(group: Sequence[NodeClaim], expected: frozenset[Hashable]) -> datetime | None:
    """Until when the call waits; the oldest decides, so that a creation that hangs delays no other NodeClaim."""
    if len(group) >= LARGEST_GROUP:
        return None
    oldest = min((at for one in group if (at := one.metadata.creation_timestamp) is not None), default=None)
    if oldest is None:
        return None
    if any(fleet.equal_launch(claim) in expected for claim in group):
        return oldest + _FOR_EQUAL
    return oldest + _FOR_SIMILAR if fleet.similar_launch(group[0]) in expected else None


def planned(
    view: View, members: Sequence[NodeClaim], attempt: int, subnets: SubnetRoom, types: Catalogue
) -> FleetRequest | FleetProblem | None:
    """The call for NodeClaims that share one, of some of these types, or why there is none now; None while too little
    is known of the cluster."""
    snapshot, first = view.snapshot, members[0]
    listed: EC2NodeClass | None = view.class_of(first)
    node_class = nodeclass.as_resolved(listed, snapshot.class_facts.get(listed.name)) if listed is not None else None
    if snapshot.cluster is None or node_class is None:
        return None
    facts = LaunchFacts(
        node_class=node_class,
        catalogue=types,
        cluster=snapshot.cluster,
        settings=snapshot.settings,
        out_of_stock=snapshot.out_of_stock,
        now=snapshot.now,
        full_subnets=snapshot.full_subnets(node_class.name),
        placement_group=snapshot.placement_group(node_class.name),
        free_addresses=subnets.of(node_class.name),
    )
    return fleet.plan(members, facts, attempt=attempt)
