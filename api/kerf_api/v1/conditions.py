"""How status conditions change: pure functions from a tuple of conditions to the next one.

Each kind has dependents and a root `Ready` that follows from them. A transition time moves only when the status does.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kerf_api.v1.meta import Condition, encode

READY = "Ready"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

NODEPOOL_DEPENDENTS = ("ValidationSucceeded", "NodeClassReady")
#: How far the nodes of a NodePool are behind it; no other condition follows from these.
NODEPOOL_PROGRESS = ("UpToDate", "Reconciling")
NODECLAIM_DEPENDENTS = ("Launched", "Registered", "Initialized")
NODEOVERLAY_DEPENDENTS = ("ValidationSucceeded",)
NODECLASS_DEPENDENTS = (
    "AMIsReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "PlacementGroupReady",
)
#: The order in which Karpenter sets the dependents of one object in a reconcile.
_SET_ORDER = (
    "AMIsReady",
    "CapacityReservationsReady",
    "PlacementGroupReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "NodeClassReady",
    "Launched",
    "Registered",
    "Initialized",
)
#: The reason of a condition that is not known yet.
AWAITING = "AwaitingReconciliation"
#: The reason of a NodePool's condition NodeClassReady while the Ready of its class is Unknown.
READINESS_UNKNOWN = "NodeClassReadinessUnknown"
#: One more dependent of an EC2NodeClass, with the gate ReservedCapacity.
RESERVATIONS_READY = "CapacityReservationsReady"


def initial(
    conditions: tuple[Condition, ...], dependents: Iterable[str], created: datetime | None
) -> tuple[Condition, ...]:
    """With every missing dependent and the root added as Unknown since the object's creation."""
    known = {c.type for c in conditions}
    missing = [type_ for type_ in (*dependents, READY) if type_ not in known]
    return conditions + tuple(
        Condition(type=t, status=UNKNOWN, reason=AWAITING, last_transition_time=created) for t in missing
    )


def put(
    conditions: tuple[Condition, ...],
    type_: str,
    status: str,
    reason: str,
    *,
    generation: int,
    now: datetime,
    message: str = "",
) -> tuple[Condition, ...]:
    """With one condition set; its transition time is kept while the status stays the same."""
    old = get(conditions, type_)
    wanted = (status, reason, message, generation)
    if old is not None and (old.status, old.reason, old.message, old.observed_generation) == wanted:
        return conditions
    since = old.last_transition_time if old is not None and old.status == status else now
    new = Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )
    if old is None:
        return (*conditions, new)
    return tuple(new if c.type == type_ else c for c in conditions)


def drop(conditions: tuple[Condition, ...], type_: str) -> tuple[Condition, ...]:
    """Without one (independent) condition."""
    return tuple(c for c in conditions if c.type != type_)


def get(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def first_broken(conditions: tuple[Condition, ...], dependents: Iterable[str]) -> Condition | None:
    """Return the first of the dependents that is False, else the first that is Unknown; None when all are True or
    missing."""
    known = [c for type_ in dependents if (c := get(conditions, type_)) is not None and c.status != TRUE]
    return next((c for c in known if c.status == FALSE), known[0] if known else None)


def words(condition: Condition) -> str:
    """Return a condition in words: type, status, reason, and the message where there is one."""
    return f"{condition.type} is {condition.status}" + (f": {condition.text}" if condition.text else "")


def with_root(
    conditions: tuple[Condition, ...], dependents: Iterable[str], *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """With `Ready` computed from the dependents, and put last; the others by transition time.

    Its message lists the dependents that are not True for this generation, the newest transition first.
    """
    states = [c for type_ in dependents if (c := get(conditions, type_)) is not None]
    unhealthy = [c for c in states if c.status != TRUE or c.observed_generation != generation]
    broken = any(c.status == FALSE and c.observed_generation == generation for c in unhealthy)
    status, reason = (
        (FALSE, "UnhealthyDependents") if broken else (UNKNOWN, "ReconcilingDependents") if unhealthy else (TRUE, READY)
    )
    message = ", ".join(f"{c.type}={c.status}" for c in _newest_first(unhealthy, now))
    done = put(conditions, READY, status, reason, generation=generation, now=now, message=message)
    return tuple(sorted(done, key=lambda c: (c.type == READY, c.last_transition_time or now)))


def _newest_first(unhealthy: Iterable[Condition], now: datetime) -> list[Condition]:
    """In Karpenter's order. Stored times have whole seconds, in which several conditions change.

    Karpenter stamps each condition as it is set, so the one that it sets last is the newest. Conditions that are
    Unknown since the creation of the object have one time; those that were never set come first there.
    """
    places = {type_: place for place, type_ in enumerate(_SET_ORDER)}

    def key(condition: Condition) -> tuple[int, bool, bool, int]:
        since, place = condition.last_transition_time or now, places.get(condition.type, len(places))
        unknown = condition.status == UNKNOWN
        return -int(since.timestamp()), unknown, condition.reason != AWAITING, place if unknown else -place

    return sorted(unhealthy, key=key)


def bump(conditions: tuple[Condition, ...], generation: int) -> tuple[Condition, ...]:
    """With every condition observed at a generation (an object that is being deleted changes no more)."""
    return tuple(replace(c, observed_generation=generation) for c in conditions)


def in_full(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """As plain data; the API wants even those of their fields that have their default."""
    return [_in_full(condition) for condition in conditions]


def _in_full(condition: Condition) -> dict[str, Any]:
    full = {"status": condition.status, "reason": condition.reason, "message": condition.message}
    return {**full, "observedGeneration": condition.observed_generation, **encode(condition)}
