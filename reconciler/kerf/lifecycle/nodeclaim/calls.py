"""The CreateFleet call of NodeClaims, and which of them share one: those for which it would ask EC2 for the same.

A plan makes a NodeClaim for each node, each with the requests of its own pods. Where the same instance types hold them
all, one call launches them: EC2 limits the rate of calls, not of instances.

EC2 may refuse all of a call that wants more machines than a reservation, a placement group or a quota of vCPUs has room
for, and a call goes to one subnet of each zone. There only equal NodeClaims share a call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.ec2 import quotas
from kerf.ec2.launch import fleet
from kerf.ec2.launch.fleet import FleetProblem
from kerf.ec2.launch.holding import Holding
from kerf.ec2.nodeclass import nodeclass
from kerf.lifecycle.nodeclaim import outcomes, unmarked
from kerf.lifecycle.nodeclaim.subnet_room import SubnetRoom
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import FleetError, FleetRequest
from kerf.model.aws.instance_type import Catalogue
from kerf.model.replicas import coming
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim

#: NodeClaims of one call. The request, which names them, is written to each of them.
LARGEST_GROUP: Final = 100
#: So long after its creation a NodeClaim waits at most for others that are still being created: for equal ones, which
#: its call certainly serves, and for similar ones, which it may. The API server rounds the creation down to a second.
_FOR_EQUAL, _FOR_SIMILAR = timedelta(seconds=5), timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Group:
    """NodeClaims of one call, or those that wait `until` then for more to come; None when they do not."""

    members: tuple[NodeClaim, ...]
    attempt: int
    until: datetime | None = None


def shared(view: View, claims: Iterable[NodeClaim]) -> Iterator[Group]:
    """The NodeClaims by the call that is to launch them, or to wait for."""
    similar: dict[tuple[int, Hashable], list[NodeClaim]] = {}
    for claim in claims:
        similar.setdefault((_attempt(view, claim), fleet.similar_launch(claim)), []).append(claim)
    created = [*coming(view.snapshot)] if similar else []
    equal_ones, similar_ones = ({key(one) for one in created} for key in (fleet.equal_launch, fleet.similar_launch))
    refused = bool(similar) and any(map(quotas.of_vcpus, _errors(view)))
    for (attempt, kind), members in similar.items():
        ready: list[list[NodeClaim]] = []
        for same, own in _equal(members).items():
            whole = len(own) - len(own) % LARGEST_GROUP
            yield from (Group(part, attempt) for part in _parts(own[:whole]))
            rest = own[whole:]
            until = _until(view, rest, _FOR_EQUAL) if rest and same in equal_ones else None
            if until is not None:
                yield Group(tuple(rest), attempt, until)
            elif rest:
                ready.append(rest)
        sharing = bool(ready) and not refused and _sharing(view, members[0])
        others = [claim for own in ready for claim in own]
        until = _until(view, others, _FOR_SIMILAR) if sharing and kind in similar_ones else None
        if until is not None:
            yield Group(tuple(others), attempt, until)
            continue
        for group in _joined(view, ready) if sharing else ready:
            yield from (Group(part, attempt) for part in _parts(group))


def _parts(claims: Sequence[NodeClaim]) -> Iterator[tuple[NodeClaim, ...]]:
    return (tuple(claims[start : start + LARGEST_GROUP]) for start in range(0, len(claims), LARGEST_GROUP))


def _equal(claims: Iterable[NodeClaim]) -> Mapping[Hashable, list[NodeClaim]]:
    """The NodeClaims by classes of equal ones."""
    found: dict[Hashable, list[NodeClaim]] = {}
    for claim in claims:
        found.setdefault(fleet.equal_launch(claim), []).append(claim)
    return found


def _attempt(view: View, claim: NodeClaim) -> int:
    failure = view.snapshot.launch_failures.get(view.group_of(claim))
    return outcomes.attempt(failure) if failure is not None else unmarked.attempt(view, claim)


def _errors(view: View) -> Iterator[FleetError]:
    return (error for failure in view.snapshot.launch_failures.values() for error in failure.errors)


def _sharing(view: View, claim: NodeClaim) -> bool:
    node_class: EC2NodeClass | None = view.class_of(claim)
    if node_class is None or node_class.spec.placement_group_selector is not None:
        return False
    zones = [subnet.zone for subnet in node_class.status.subnets]
    return len(zones) == len(set(zones))


def _until(view: View, members: Sequence[NodeClaim], wait: timedelta) -> datetime | None:
    """Until when they wait; the oldest decides, so that a creation that hangs delays no other NodeClaim."""
    oldest = min((at for one in members if (at := one.metadata.creation_timestamp) is not None), default=None)
    if oldest is None or len(members) >= LARGEST_GROUP or oldest + wait <= view.snapshot.now:
        return None
    return oldest + wait


def _joined(view: View, classes: Sequence[list[NodeClaim]]) -> Iterable[list[NodeClaim]]:
    """Classes of equal NodeClaims, those that the same types hold together."""
    if len(classes) < 2:
        return classes
    try:
        return _held_alike(view, classes)
    except Exception:  # then each has a call of its own, which reports what is wrong
        return classes


def _held_alike(view: View, classes: Sequence[list[NodeClaim]]) -> Iterable[list[NodeClaim]]:
    first, snapshot = classes[0][0], view.snapshot
    holding = Holding(first, view.types_of(first), snapshot.out_of_stock, snapshot.now)
    if holding.reserved:
        return classes
    found: dict[Hashable, list[NodeClaim]] = {}
    for number, members in enumerate(classes):
        found.setdefault(holding.of(members[0]) or number, []).extend(members)
    return found.values()


def planned(
    view: View, members: Sequence[NodeClaim], attempt: int, subnets: SubnetRoom, types: Catalogue
) -> FleetRequest | FleetProblem | None:
    """The call for NodeClaims that share one, of some of these types, or why there is none now; None while too little
    is known of the cluster."""
    snapshot, first = view.snapshot, members[0]
    listed: EC2NodeClass | None = view.class_of(first)
    node_class = nodeclass.as_resolved(listed, snapshot.class_facts.get(listed.name)) if listed is not None else None
    if node_class is None:
        return None
    facts = fleet.facts_of(snapshot, node_class, types, subnets.of(node_class.name))
    return fleet.plan(members, facts, attempt=attempt) if facts is not None else None
