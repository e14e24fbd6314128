"""The reads of `kerf events`: events of Kerf's component, and the conditions of its objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from kerf.cli.events import records
from kerf.cli.events.records import Record, Subject
from kerf.cli.operating.asking import Asking
from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import AlreadyGone, Listing
from kerf.runtime.observe import reported
from kerf_api.v1.nodeclaim import NodeClaim

#: The component of Kerf's events: core/v1 selects by the source, or by the reporting component of newer events.
_SELECTOR: Final = "source=karpenter"
#: So many pages of 500 events are read at most.
_MOST_PAGES: Final = 100
_OWN: Final = (kinds.NODE_POOL, kinds.NODE_CLASS, kinds.NODE_CLAIM)
#: Events about objects without a namespace are in this one.
_OF_CLUSTER: Final = "default"


class Reads(Protocol):
    """The methods of the Kubernetes client that this module calls."""

    def request(self, method: str, path: str) -> Any: ...

    def list(self, kind: Kind, *, field_selector: str = "") -> Listing: ...


@dataclass(slots=True)
class Found(Asking):
    """The records of a subject, the newest first.

    Attributes:
        exists: whether the subject is in the API server; None when that cannot be read.
        known: names like that of the subject.
        answered: whether anything could be read.
    """

    rows: tuple[Record, ...] = ()
    exists: bool | None = True
    known: tuple[str, ...] = ()
    answered: bool = True


def look(kube: Reads, subject: Subject, since: datetime | None) -> Found:
    """Read everything about the subject that is not older than `since`. Raises PortError without an API server."""
    kube.request("GET", "/version")
    found = Found()
    reported_events = events(kube, found, subject)
    values = {kind: _objects(kube, found, kind) for kind in _OWN}
    claims: list[NodeClaim] = values[kinds.NODE_CLAIM] or []
    rows = records.of_events(reported_events or ())
    for kind, items in values.items():
        for one in items or ():
            rows += records.of_conditions(Ref.of(kind, one), one.status.conditions)
    found.answered = reported_events is not None or any(items is not None for items in values.values())
    mine = records.chosen(rows, subject, claims)
    found.rows = tuple(one for one in mine if since is None or one.at >= since)
    if not mine and subject.name:
        found.known = tuple(sorted(_names(subject, rows, claims)))
        found.exists = _exists(kube, found, subject)
    return found


def events(kube: Reads, found: Found, subject: Subject) -> list[Any] | None:
    """The events of Kerf, of all namespaces; without the permission, of the one namespace that has most of them."""
    fallback = subject.namespace or _OF_CLUSTER
    if subject.namespace:
        return found.read(
            "events", lambda: _listed(kube, found, fallback), f"list events in namespace {subject.namespace}"
        )
    everywhere = found.read("events", lambda: _listed(kube, found, ""), "list events in all namespaces")
    if everywhere is not None:
        return everywhere
    silent = Found()
    some = silent.read("events", lambda: _listed(kube, found, fallback), "")
    if some is not None:
        found.not_checked[-1] += f"; those of namespace {fallback} are listed"
    return some


def _listed(kube: Reads, found: Found, namespace: str) -> list[Any]:
    listed = list(reported.pages(kube, _SELECTOR, namespace, most=_MOST_PAGES))
    if len(listed) == _MOST_PAGES * reported.PAGE:
        found.not_checked.append(f"events: the API server may have more than the {len(listed)} that were read")
    return listed


def _objects(kube: Reads, found: Found, kind: Kind) -> list[Any] | None:
    listing = found.read(kind.names, lambda: kube.list(kind), f"list {kind.resource}")
    return None if listing is None else [one for one in listing.items if kinds.own(one) is not None]


def _names(subject: Subject, rows: list[Record], claims: list[NodeClaim]) -> Iterator[str]:
    """Names of objects of the subject's kind."""
    for one in rows:
        if one.ref.kind == subject.kind and one.ref.namespace == subject.namespace:
            yield one.ref.name
    if subject.kind == kinds.NODE.name:
        yield from (claim.status.node_name for claim in claims if claim.status.node_name)


def _exists(kube: Reads, found: Found, subject: Subject) -> bool | None:
    """Whether there is such an object of a kind that Kerf reads; None when that is not known."""
    kind = kinds.BY_NAME.get(subject.kind)
    if kind is None:
        return None

    def asked() -> bool:
        try:
            kube.request("GET", kind.path(subject.namespace, subject.name))
        except AlreadyGone:
            return False
        return True

    place = f" in namespace {subject.namespace}" if subject.namespace else ""
    return found.read(str(subject), asked, f"get {kind.resource}{place}")


def ago(now: datetime, span: timedelta | None) -> datetime | None:
    """The instant so long ago; None without a span."""
    return None if span is None else now - span
