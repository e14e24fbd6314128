"""From a claim to its instance: NodeClaims are grouped, the call is written to each, made, and its instances dealt.

The group is the call's client token and a tag of its instances, and stands on the claims before the call is made. So a
crash anywhere leads to the same call again, or to instances that are recognised by their tag; never to a second launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from kerf.ec2.launch import fleet
from kerf.lifecycle.nodeclaim import calls, outcomes, unmarked
from kerf.lifecycle.nodeclaim.assignment import assign, pairs
from kerf.lifecycle.nodeclaim.liveness import give_up
from kerf.lifecycle.nodeclaim.ownership import foreign
from kerf.lifecycle.nodeclaim.pool_limits import PoolLimits, Used
from kerf.lifecycle.nodeclaim.progress import begin, finish
from kerf.lifecycle.nodeclaim.subnet_room import SubnetRoom
from kerf.lifecycle.view import View
from kerf.model import failures
from kerf.model.annotations import read, text_of
from kerf.model.aws.cloud import SHOWN_AFTER, FleetRequest, Instance
from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.boundaries import broken, guarded
from kerf.model.claims import check
from kerf.model.failures import NO_CAPACITY
from kerf.model.plan import NOTHING, Event, LaunchInstances, PatchObject, Plan, Reason, Refusal, Source, joined
from kerf.model.snapshot import LaunchFailure
from kerf.model.writes import act, changed, deletion, warning, with_annotations, with_metadata
from kerf_api import labels
from kerf_api.v1.conditions import FALSE, READY, TRUE, UNKNOWN, get
from kerf_api.v1.nodeclaim import NodeClaim

_LOOK_AGAIN = timedelta(seconds=10)
BEYOND_LIMITS: Final = "LimitsExceeded"
_TOO_LITTLE: Final = "the cluster's endpoint, or AWS's answer for the node class as it is now, is not known yet"


@dataclass(frozen=True, slots=True)
class Room:
    """The addresses and limits that are left for the next call of one look."""

    subnets: SubnetRoom
    limits: PoolLimits


def launch(view: View, claims: Iterable[NodeClaim], used: Callable[[], Used]) -> Iterator[Plan]:
    """Every unlaunched claim's next step, and the calls whose claims are all prepared.

    `used`: what counts against the limits of NodePools.
    """
    waiting = [c for c in claims if not c.metadata.deleting and not c.is_true("Launched")]
    if not waiting:
        return
    dealt = pairs(view, waiting)
    ready: list[NodeClaim] = []
    for claim in waiting:
        try:
            plan = _settled(view, claim, dealt.get(claim.name))
        except Exception as error:
            plan = Plan(refusals=(Refusal(f"nodeclaim/{claim.name}", broken(error)),))
        if plan is not None:
            yield plan
        else:
            ready.append(claim)
    yield from _calls(view, ready, used)


# --- a claim by itself ------------------------------------------------------------------------------------------
def _settled(view: View, claim: NodeClaim, instance: Instance | None) -> Plan | None:
    """What to do with a claim that needs no call, or must not be part of one now; None when it is ready for one."""
    if claim.metadata.unreadable:  # how far it is may be what cannot be read; it is refused among the claims
        return NOTHING
    start = begin(view, claim)
    end = give_up(start)
    if end.actions or end.refusals:
        return end
    try:
        check(claim)
    except ValueError as error:
        return _wait(view, claim, "LaunchFailed", str(error))
    if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:
        finalizers = (*claim.metadata.finalizers, labels.TERMINATION_FINALIZER)
        return act(*changed(claim, with_metadata(claim, finalizers=finalizers), "UpdateClaim", _reason(claim)))
    if instance is not None:
        return _types_gate(view, claim) or joined((finish(assign(start, instance), claim), end))
    if (doubt := unmarked.step(view, claim)) is not None:
        return _wait(view, claim, doubt.code, doubt.text) if isinstance(doubt, Reason) else doubt
    if claim.assigned_instance:
        return joined((end, foreign(view, claim)))  # chosen, and gone since: its time runs out
    return _class_gate(view, claim) or _failed(view, claim)


def _reason(claim: NodeClaim) -> Reason:
    return Reason("Launch", f"node claim {claim.name}")


def _types_gate(view: View, claim: NodeClaim) -> Plan | None:
    """None when it is known what the instance's type is like: a claim labelled without it would be drifted
    permanently."""
    node_class = view.class_of(claim)
    if node_class is None or node_class.metadata.deleting or node_class.name in view.snapshot.catalogues:
        return None
    return _wait(view, claim, "InstanceTypesUnknown", f"the types of EC2NodeClass {node_class.name} are not known yet")


def _class_gate(view: View, claim: NodeClaim) -> Plan | None:
    """None when the node class may be launched from, at its present generation."""
    node_class = view.class_of(claim)
    if node_class is None or node_class.metadata.deleting:
        words = f"EC2NodeClass {claim.spec.node_class_ref.name} does not exist or is being deleted"
        return _no_capacity(claim, words)
    if node_class.metadata.unreadable:
        return _wait(view, claim, "NodeClassUnreadable", f"EC2NodeClass {node_class.name} cannot be read")
    ready = get(node_class.status.conditions, READY)
    current = ready is not None and ready.observed_generation == node_class.metadata.generation
    if ready is not None and current and ready.status == FALSE:
        return _not_ready(claim, ready.message or ready.reason)
    if ready is None or not current or ready.status != TRUE:
        return _wait(view, claim, "NodeClassReadinessUnknown", f"EC2NodeClass {node_class.name}: readiness is unknown")
    return None


def _failed(view: View, claim: NodeClaim) -> Plan | None:
    """What the failure of the claim's call asks for; None when there is none, or it may take part in another call."""
    failure = _failure(view, claim)
    if failure is None:
        return None
    reason, message = outcomes.condition(failure)
    if outcomes.out_of_capacity(failure):
        return _no_capacity(claim, message)
    early = view.snapshot.now < outcomes.renew_at(failure, claim.metadata.creation_timestamp)
    doubtful = outcomes.mismatched(failure) and not view.listed_after(failure.at + SHOWN_AFTER)
    return _wait(view, claim, reason, message) if early or doubtful else None


def _failure(view: View, claim: NodeClaim) -> LaunchFailure | None:
    return view.snapshot.launch_failures.get(view.group_of(claim))


def _no_capacity(claim: NodeClaim, message: str) -> Plan:
    """Given up at once: its pods are pending again, and what is out of stock is known by now."""
    return _ended(claim, Reason("InsufficientCapacity", message), warning(claim, NO_CAPACITY, message))


def _not_ready(claim: NodeClaim, message: str) -> Plan:
    return _ended(claim, Reason("NodeClassNotReady", message))


def _ended(claim: NodeClaim, reason: Reason, *events: Event) -> Plan:
    return Plan(actions=(deletion(claim, reason, Source.NODE_CLAIMS),), events=events)


def _wait(view: View, claim: NodeClaim, reason: str, message: str) -> Plan:
    """Launched stays Unknown and says why; its five minutes run."""
    failure, start = _failure(view, claim), begin(view, claim)
    due = view.snapshot.now + _LOOK_AGAIN
    if failure is not None:
        due = min(due, outcomes.renew_at(failure, claim.metadata.creation_timestamp))
    due = max(due, view.snapshot.now + timedelta(seconds=1))
    refusal = Refusal(f"nodeclaim/{claim.name}", Reason(reason, message))
    told = finish(start.condition("Launched", UNKNOWN, reason, message), claim)
    return joined((told, give_up(start), Plan(refusals=(refusal,), next_due=due)))


# --- calls ------------------------------------------------------------------------------------------------------
def _calls(view: View, ready: Sequence[NodeClaim], used: Callable[[], Used]) -> Iterator[Plan]:
    """Groups that are on their way, then new ones for the claims that are in none."""
    by_name = {claim.name: claim for claim in ready}
    own = {claim.name: view.group_of(claim) for claim in ready}
    requests, taken = _whole(view, _requests(view, ready), own), dict[str, str]()
    for group, request in sorted(requests.items()):
        for name in request.members:
            if name in by_name and (own[name] == group or own[name] not in requests):
                taken.setdefault(name, group)
        members = [by_name[name] for name in request.members if taken.get(name) == group]
        yield guarded(f"fleet/{group}", partial(_call, view, request, members))
    room = Room(SubnetRoom(view, requests.values()), PoolLimits(view, requests.values(), used))
    yield from _new_groups(view, [claim for claim in ready if claim.name not in taken], room)


def _requests(view: View, ready: Iterable[NodeClaim]) -> dict[str, FleetRequest]:
    """By group, the requests that stand on claims and have not failed. One that cannot be read counts as none."""
    found: dict[str, FleetRequest] = {}
    for claim in ready:
        group = view.group_of(claim)
        if not group or group in found or _failure(view, claim) is not None:
            continue
        request = request_of(view, claim)
        if request is not None and request.group == group and claim.name in request.members:
            found[group] = request
    return found


def _whole(view: View, requests: Mapping[str, FleetRequest], own: Mapping[str, str]) -> dict[str, FleetRequest]:
    """Those without a member that another call has got: that one's write was under way when the group was made.

    Such a call has not been made, since not all of its claims carried it, and would launch for the lost member too.
    """
    return {
        group: request
        for group, request in requests.items()
        if not any(_lost(view, name, group, requests, own) for name in request.members)
    }


def _lost(view: View, name: str, group: str, requests: Mapping[str, FleetRequest], own: Mapping[str, str]) -> bool:
    """Whether another call has got the claim: one to be made, or (it is not ready any more) one that was."""
    claim = view.snapshot.node_claims.get(name)
    other = view.group_of(claim) if claim is not None else ""
    return other not in ("", group) and (other in requests or name not in own)


def request_of(view: View, claim: NodeClaim) -> FleetRequest | None:
    """The call that stands on a claim; None when none does, when no mark covers it, or when it cannot be read."""
    if not view.mark_of(claim).request:
        return None
    return read(claim.metadata.annotations, labels.LAUNCH_REQUEST, FleetRequest)


def _call(view: View, request: FleetRequest, members: Sequence[NodeClaim]) -> Plan:
    """The call, when all its claims carry it; else it is written to those that lack it (we stopped while writing)."""
    lacking = [claim for claim in members if view.group_of(claim) != request.group]
    if lacking:
        return _write(request, lacking)
    due = min((end.next_due for c in members if (end := give_up(begin(view, c))).next_due), default=None)
    wait = view.snapshot.not_before.get(f"launch/{request.group}")
    if wait is not None and wait > view.snapshot.now:
        failure = failures.launch(view.snapshot.failures, request.tags.get(labels.TAG_NODEPOOL, ""))
        waits = [_wait(view, claim, "LaunchFailed", failure.text) for claim in members] if failure is not None else []
        return joined((Plan(next_due=wait), *waits))
    names = tuple(claim.name for claim in members)
    reason = Reason("Launch", f"{len(names)} node claims, {request.capacity_type}")
    return act(LaunchInstances(reason=reason, request=request, claims=names), due=due)


def _write(request: FleetRequest, members: Iterable[NodeClaim]) -> Plan:
    text = text_of(request)
    notes = {labels.LAUNCH_GROUP: request.group, labels.LAUNCH_REQUEST: text}
    patches: list[PatchObject] = []
    for claim in members:
        marks = MarkedLaunch.of(claim, request.group, text)
        written = changed(claim, with_annotations(claim, notes), "PrepareLaunch", _reason(claim))
        patches += (replace(patch, marks=marks) for patch in written)
    return act(*patches)


def _new_groups(view: View, claims: Sequence[NodeClaim], room: Room) -> Iterator[Plan]:
    """One call for claims that share one, when all of these are there: those of one plan are created one by one."""
    for group in calls.shared(view, claims):
        if group.until is not None:
            yield Plan(next_due=group.until)
        else:
            name = group.members[0].name
            yield guarded(f"nodeclaim/{name}", partial(_new_group, view, group.members, group.attempt, room))


def _new_group(view: View, members: Sequence[NodeClaim], attempt: int, room: Room) -> Plan:
    pool_name, types = members[0].pool_name, view.types_of(members[0])
    number = room.limits.number(members, types)
    if number < len(members):
        rest, soon = members[number:], room.limits.number(members, types, now=False) - number
        beyond = joined((_when_gone(view, rest[:soon]), *(_beyond_limits(view, claim) for claim in rest[soon:])))
        return joined((_new_group(view, members[:number], attempt, room), beyond)) if number else beyond
    request = calls.planned(view, members, attempt, room.subnets, room.limits.within(pool_name, types, number))
    if request is None:
        return joined(_wait(view, claim, "LaunchFailed", _TOO_LITTLE) for claim in members)
    if isinstance(request, FleetRequest):
        room.subnets.planned(request)
        room.limits.planned(pool_name, request)
        return _write(request, members)
    if request.kind == fleet.CAPACITY and number > 1 and room.limits.left(pool_name) is not None:
        # The types of which so many are within the limits may be too few for minValues.
        halves = members[: number // 2], members[number // 2 :]
        return joined(_new_group(view, half, attempt, room) for half in halves)
    if request.kind == fleet.CAPACITY:
        return joined(_no_capacity(claim, request.message) for claim in members)
    if request.kind == fleet.NOT_READY:
        return joined(_not_ready(claim, request.message) for claim in members)
    return joined(_wait(view, claim, request.reason, request.message) for claim in members)


def _when_gone(view: View, claims: Iterable[NodeClaim]) -> Plan:
    """The wait of claims for which there is room as soon as nodes that are replaced, and lost instances, have ended."""
    text = "nodes that are being replaced, and instances that are none of its nodes, use the limits until terminated"
    return joined(_wait(view, claim, BEYOND_LIMITS, text) for claim in claims)


def _beyond_limits(view: View, claim: NodeClaim) -> Plan:
    """The end of a claim that the limits of its NodePool leave no room for."""
    pool = view.snapshot.node_pools[claim.pool_name]
    limits = ", ".join(f"{name}: {amount}" for name, amount in sorted((pool.spec.limits or {}).items()))
    text = f"an instance for it would exceed the limits of NodePool {pool.name} ({limits})"
    return _ended(claim, Reason(BEYOND_LIMITS, text), warning(claim, BEYOND_LIMITS, text))
