"""Events of Kerf and conditions of its objects as records, and the choice of those of one object. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kerf.model import kinds
from kerf.model.instants import of_api
from kerf.model.kinds import Ref
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim

EVENT, CONDITION = "event", "condition"
_NODE, _CLAIM, _POOL, _POD = kinds.NODE.name, kinds.NODE_CLAIM.name, kinds.NODE_POOL.name, kinds.POD.name
#: What stands before the objects that a nomination names (`docs/reference/events.md`, Nominated).
_NAMES_CLAIM, _NAMES_NODE = "nodeclaim/", ", node/"


@dataclass(frozen=True, slots=True)
class Record:
    """An event, or the present status of a condition.

    Attributes:
        source: `event` or `condition`.
        type: Normal or Warning; of a condition True, False or Unknown.
        reason: the reason of an event; of a condition its type and status.
        at: the latest time of an event; of a condition its last transition.
        since: the first time of an event.
        count: how often the event was written; 1 for a condition.
    """

    ref: Ref
    source: str
    type: str
    reason: str
    message: str
    at: datetime
    since: datetime
    count: int = 1


@dataclass(frozen=True, slots=True)
class Subject:
    """The object asked about. Without a name all objects of the kind, without a kind all objects."""

    kind: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return str(Ref(self.kind, self.namespace, self.name)) if self.name else self.kind and f"every {self.kind}"


def of_events(events: Iterable[Mapping[str, Any]]) -> list[Record]:
    """Return the records of core/v1 Events as JSON, equal ones as one. Events without a readable time are left out."""
    found: dict[tuple[Ref, str, str, str], Record] = {}
    for one in filter(None, map(_of_event, events)):
        key = (one.ref, one.type, one.reason, one.message)
        other = found.get(key)
        if other is not None:
            at, since = max(one.at, other.at), min(one.since, other.since)
            one = replace(one, at=at, since=since, count=one.count + other.count)
        found[key] = one
    return list(found.values())


def _of_event(event: Mapping[str, Any]) -> Record | None:
    about, series = event.get("involvedObject") or {}, event.get("series") or {}
    times = [series.get("lastObservedTime"), *(event.get(key) for key in ("lastTimestamp", "eventTime"))]
    at = next((time for text in times if (time := of_api(text)) is not None), None)
    if at is None:
        return None
    kind, namespace, name = (str(about.get(key) or "") for key in ("kind", "namespace", "name"))
    type_, reason, message = (str(event.get(key) or "") for key in ("type", "reason", "message"))
    since, count = of_api(event.get("firstTimestamp")) or at, series.get("count") or event.get("count")
    count = count if isinstance(count, int) else 1
    return Record(Ref(kind, namespace, name), EVENT, type_, reason, message, at, since, count)


def of_conditions(ref: Ref, conditions: Iterable[Condition]) -> Iterator[Record]:
    """The conditions that have the time of their last transition."""
    for one in conditions:
        if one.last_transition_time is not None:
            text = one.message if one.reason == one.type else one.text
            at = one.last_transition_time
            yield Record(ref, CONDITION, one.status, f"{one.type}={one.status}", text, at, at)


def chosen(records: Sequence[Record], subject: Subject, claims: Iterable[NodeClaim]) -> list[Record]:
    """Return the records of the subject, the newest first.

    A Node includes its NodeClaim, a NodeClaim its Node, both the pods whose events name them. A NodePool includes its
    NodeClaims and their Nodes.
    """
    wanted = _wanted(records, subject, list(claims))
    return sorted(filter(wanted, records), key=lambda one: (-one.at.timestamp(), str(one.ref), one.reason, one.message))


class _Of:
    """Whether a record is of one of the objects, or of a pod in whose message one of the names stands."""

    def __init__(self, objects: Iterable[tuple[str, str]], *, named: bool) -> None:
        self._objects = frozenset(objects)
        names = "|".join(re.escape(name) for name in sorted({name for _, name in self._objects}))
        self._named = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-]|\.\w)") if named and names else None

    def __call__(self, one: Record) -> bool:
        if (one.ref.kind, one.ref.name) in self._objects:
            return True
        return self._named is not None and one.ref.kind == _POD and self._named.search(one.message) is not None


def _wanted(records: Sequence[Record], subject: Subject, claims: Sequence[NodeClaim]) -> Callable[[Record], bool]:
    name = subject.name
    if not name:
        return lambda one: (
            subject.kind in ("", one.ref.kind) and (not subject.namespace or one.ref.namespace == subject.namespace)
        )
    if subject.kind in (_NODE, _CLAIM):
        return _Of(_pair(records, claims, name), named=True)
    if subject.kind == _POOL:
        return _Of(_of_pool(records, claims, name), named=False)
    return lambda one: one.ref == Ref(subject.kind, subject.namespace, name)


def _pair(records: Iterable[Record], claims: Iterable[NodeClaim], name: str) -> Iterator[tuple[str, str]]:
    """The Node and the NodeClaim of a name, or of the ID of an instance; also after their deletion."""
    yield _NODE, name
    yield _CLAIM, name
    for claim in claims:
        if name in (claim.name, claim.status.node_name, claim.status.provider_id.rpartition("/")[2]):
            yield _CLAIM, claim.name
            yield _NODE, claim.status.node_name
    for claim_name, node in _nominated(records):
        if name in (claim_name, node):
            yield _CLAIM, claim_name
            yield _NODE, node


def _of_pool(records: Sequence[Record], claims: Iterable[NodeClaim], pool: str) -> Iterator[tuple[str, str]]:
    """A NodePool, its NodeClaims and their Nodes. A deleted NodeClaim is known by its name: the pool and a hash."""
    yield _POOL, pool
    hashed = re.compile(rf"{re.escape(pool)}-[a-z0-9]{{5,10}}")
    own = {claim.name: claim.status.node_name for claim in claims if claim.pool_name == pool}
    others = {claim.name for claim in claims if claim.pool_name != pool}
    gone = {one.ref.name for one in records if one.ref.kind == _CLAIM and hashed.fullmatch(one.ref.name)} - others
    yield from ((_CLAIM, name) for name in (*own, *gone))
    yield from ((_NODE, node) for node in own.values())
    yield from ((_NODE, node) for claim, node in _nominated(records) if claim in gone or claim in own)


def _nominated(records: Iterable[Record]) -> Iterator[tuple[str, str]]:
    """The pairs of NodeClaim and Node in the nominations of pods."""
    for one in records:
        claim, _, node = one.message.partition(_NAMES_CLAIM)[2].partition(_NAMES_NODE)
        if one.ref.kind == _POD and claim and node and not claim.split()[1:]:
            yield claim, node.split()[0]
