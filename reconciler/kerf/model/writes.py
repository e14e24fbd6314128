"""How a decision about an object becomes a write: the difference between the object as it is and as it should be.

A step changes a frozen value; here the change becomes one guarded merge patch, or nothing at all when
nothing differs. Metadata and spec come before status: the status says that something is done, so a crash between the
two leaves work to do again, never work that is believed done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.plan import Action, DeleteObject, Event, PatchObject, Plan, Reason, Refusal, Source
from kerf.model.snapshot import Snapshot
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import in_full
from kerf_api.v1.meta import Condition, Value, encode

T = TypeVar("T", bound=Value)


def changed(before: Any, after: Any, verb: str, reason: Reason, *sources: Source) -> tuple[PatchObject, ...]:
    """The one write that brings an object from `before` towards `after`; empty when they are equal.

    What changes in metadata or spec is written first; a change of status follows once that shows. `sources` are what
    a change that destroys (a finalizer that goes) rests on.
    """
    main = {
        part: merge
        for part in ("metadata", "spec")
        if getattr(before, part, None) != getattr(after, part, None)
        and (merge := _merge(encode(getattr(before, part)), encode(getattr(after, part))))
    }
    if main:
        return (patch(before, main, verb, reason, sources),)
    if getattr(before, "status", None) == getattr(after, "status", None):
        return ()
    merge = _merge(_status(before.status), _status(after.status))
    return (patch(before, {"status": merge}, f"{verb}Status", reason, sources, "status"),) if merge else ()


def annotate(value: Any, verb: str, annotations: Mapping[str, str | None], reason: Reason) -> PatchObject:
    """Set (or with None remove) annotations of this version of the object."""
    return patch(value, {"metadata": {"annotations": dict(sorted(annotations.items()))}}, verb, reason)


def set_conditions(value: Any, rows: Iterable[Condition], reason: Reason) -> PatchObject:
    """Replace the object's conditions; each is written in full, as the API wants it."""
    return patch(value, {"status": {"conditions": in_full(rows)}}, "SetConditions", reason, subresource="status")


def patch(
    before: Any,
    merge: Mapping[str, Any],
    verb: str,
    reason: Reason,
    sources: Iterable[Source] = (),
    subresource: str = "",
) -> PatchObject:
    """A merge patch of this version of the object."""
    return PatchObject(
        reason=reason,
        sources=frozenset(sources),
        verb=verb,
        ref=kinds.ref(before),
        patch=merge,
        subresource=subresource,
        resource_version=before.metadata.resource_version,
    )


def _merge(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7386): maps key by key, lists as a whole, None for what goes."""
    merge: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if value == old:
            continue
        merge[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return dict(sorted(merge.items()))


def _status(status: Value) -> dict[str, Any]:
    """A status as data; conditions in full, for the API wants even those of their fields that have their default."""
    data = encode(status)
    rows: tuple[Condition, ...] = getattr(status, "conditions", ())
    if rows:
        data["conditions"] = in_full(rows)
    return data


def with_metadata(value: T, **fields: Any) -> T:
    """The object with some fields of its metadata replaced."""
    return replace(value, metadata=replace(value.metadata, **fields))  # type: ignore[attr-defined]


def with_condition(value: T, type_: str, status: str, reason: str, message: str = "", *, now: datetime) -> T:
    """The object with a new value of one of its conditions, about its present generation."""
    generation, known = value.metadata.generation, value.status.conditions  # type: ignore[attr-defined]
    told = conditions.put(known, type_, status, reason, generation=generation, now=now, message=message)
    return replace(value, status=replace(value.status, conditions=told))  # type: ignore[attr-defined]


def with_annotations(value: T, annotations: Mapping[str, str]) -> T:
    """The object with annotations added or replaced."""
    return with_metadata(value, annotations={**value.metadata.annotations, **annotations})  # type: ignore[attr-defined]


def without_finalizer(value: T, finalizer: str) -> T:
    kept = tuple(f for f in value.metadata.finalizers if f != finalizer)  # type: ignore[attr-defined]
    return with_metadata(value, finalizers=kept)


def deletion(value: Any, reason: Reason, *sources: Source, grace_seconds: int | None = None) -> DeleteObject:
    """Deletion of this very object (its UID is a precondition)."""
    return DeleteObject(
        reason=reason,
        sources=frozenset(sources),
        ref=kinds.ref(value),
        uid=value.metadata.uid,
        grace_seconds=grace_seconds,
    )


def warning(value: Any, reason: str, message: str) -> Event:
    return Event(kinds.ref(value), value.metadata.uid, "Warning", reason, message)


def normal(value: Any, reason: str, message: str) -> Event:
    return Event(kinds.ref(value), value.metadata.uid, "Normal", reason, message)


def act(*actions: Action, due: datetime | None = None) -> Plan:
    return Plan(actions=actions, next_due=due)


def unreadable(value: Any) -> Plan:
    """A refusal about an object that could be read only in part: nothing is written to it."""
    return Plan(refusals=(Refusal(str(kinds.ref(value)), Reason("Malformed", value.metadata.unreadable)),))


def stale(snapshot: Snapshot, subject: str, sources: Iterable[Source]) -> Plan | None:
    """A refusal when one of the sources of a destructive step is too old, or None when all are fresh."""
    old = sorted(str(source) for source in sources if not snapshot.fresh(source))
    if not old:
        return None
    reason = Reason("StaleSource", f"waiting for a complete list of {', '.join(old)}")
    return Plan(refusals=(Refusal(subject, reason),), next_due=snapshot.now + snapshot.settings.disruption_period)
