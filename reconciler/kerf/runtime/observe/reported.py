"""Failing actions and refused launches as the events in the API server report them: for a command that does not run in
the leader.

An event does not count attempts, and repeats only every ten minutes (`FailedEvictPod` and the like).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from urllib.parse import quote

from kerf.ec2.errors import said
from kerf.ec2.refused_launches import following
from kerf.model import failures
from kerf.model.aws.cloud import FleetError
from kerf.model.failures import Failure
from kerf.model.instants import of_api
from kerf.model.kinds import Ref
from kerf.model.snapshot import LaunchFailure
from kerf.ports import PortError

#: An action that still fails has an event younger than this.
REPEATED_WITHIN: Final = timedelta(minutes=11)
_FAILED: Final = "Failed"
_WARNINGS: Final = "type=Warning"
PAGE: Final = 500
#: The API server keeps events for an hour by default: older ones may be gone.
KEPT_FOR: Final = timedelta(minutes=55)
#: So many pages of warnings are read at most: events are many where a cluster is in trouble.
_MOST_PAGES: Final = 20
#: Texts by which the API server and AWS refuse for want of a permission.
_REFUSED: Final = (" is forbidden: ", "UnauthorizedOperation", "AccessDenied", "not authorized")


class Requests(Protocol):
    """Of the Kubernetes client what reading events needs."""

    def request(self, method: str, path: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class OfEvents:
    """Attributes:
    failures: the actions that fail, by `failures.key`; `times` is 0, for events do not count attempts.
    launches: the launches that EC2 has refused, by `nodeclaim/name`.
    """

    failures: Mapping[str, Failure] = field(default_factory=dict)
    launches: Mapping[str, LaunchFailure] = field(default_factory=dict)


def read(kube: Requests, now: datetime) -> OfEvents:
    """Return what events report. Raises PortError."""
    events = list(pages(kube, _WARNINGS, most=_MOST_PAGES))
    known_since = now - KEPT_FOR
    return OfEvents(_failing(events, known_since, now), _refused(events, known_since))


def _failing(events: Iterable[Any], known_since: datetime, now: datetime) -> dict[str, Failure]:
    """Each failure since the first of the events that follow each other closely, whichever process wrote them."""
    rows: dict[str, list[Failure]] = {}
    for one in _failures(events):
        rows.setdefault(failures.key(one.verb, one.object), []).append(one)
    found: dict[str, Failure] = {}
    for key, reports in rows.items():
        reports.sort(key=lambda one: (one.latest, one.since), reverse=True)
        newest, since = reports[0], reports[0].since
        for one in reports if now - newest.latest <= REPEATED_WITHIN else ():
            if since - one.latest > REPEATED_WITHIN:
                break
            since = min(since, one.since)
            found[key] = replace(newest, since=since, at_least=since <= known_since)
    return found


def _refused(events: Iterable[Any], known_since: datetime) -> dict[str, LaunchFailure]:
    """The launches by NodeClaim, which Kerf has deleted; its name begins with that of the NodePool."""
    rows = [(at, name, errors) for event in events for at, name, errors in _refusal(event)]
    found: dict[str, LaunchFailure] = {}
    for at, name, errors in sorted(rows, key=lambda row: row[:2]):
        since, at_least = following(found.values(), errors, at, at - known_since)
        pool = name.rpartition("-")[0]
        found[f"nodeclaim/{name}"] = LaunchFailure(errors, at, pool=pool, since=since, at_least=at_least)
    return found


def _refusal(event: Any) -> Iterator[tuple[datetime, str, tuple[FleetError, ...]]]:
    at, about = _latest(event), event.get("involvedObject", {})
    if event.get("reason") == failures.NO_CAPACITY and at is not None:
        errors = tuple(said(str(event.get("message", ""))))
        if errors:
            yield at, str(about.get("name", "")), errors


def pages(kube: Requests, selector: str, namespace: str = "", *, most: int) -> Iterator[Any]:
    """Yield the events that a field selector selects, of one namespace or of all, from the first `most` pages of 500.

    Raises PortError.
    """
    token, where = "", f"/api/v1/namespaces/{namespace}/events" if namespace else "/api/v1/events"
    for _ in range(most):
        path = f"{where}?fieldSelector={quote(selector)}&limit={PAGE}"
        page = kube.request("GET", path + (f"&continue={quote(token)}" if token else ""))
        if not isinstance(page, dict):
            raise PortError(f"GET {where}: the answer is no list")
        yield from page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return


def _failures(events: Iterable[Any]) -> Iterator[Failure]:
    for event in events:
        reason, message = str(event.get("reason", "")), str(event.get("message", ""))
        verb = reason.removeprefix(_FAILED)
        if not reason.startswith(_FAILED) or not message.startswith(f"{verb} failed: "):
            continue
        about, at = event.get("involvedObject", {}), _latest(event)
        if at is None:
            continue
        name = str(Ref(str(about.get("kind", "")), str(about.get("namespace", "")), str(about.get("name", ""))))
        error = message.removeprefix(f"{verb} failed: ")
        outcome = "forbidden" if any(text in error for text in _REFUSED) else "failed"
        yield Failure(verb, name, outcome, error, of_api(event.get("firstTimestamp")) or at, at, 0)


def _latest(event: Any) -> datetime | None:
    return of_api(event.get("lastTimestamp") or event.get("eventTime"))
