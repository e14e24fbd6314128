"""The failures of actions as the events in the API server report them: for a command that does not run in the leader.

An event does not count attempts, and repeats only every ten minutes (`FailedEvictPod` and the like).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from urllib.parse import quote

from kerf.model import failures
from kerf.model.failures import Failure
from kerf.model.instants import of_api
from kerf.model.kinds import Ref
from kerf.ports import PortError

#: An action that still fails has an event younger than this.
REPEATED_WITHIN: Final = timedelta(minutes=11)
_FAILED: Final = "Failed"
_WARNINGS: Final = "type=Warning"
PAGE: Final = 500
#: So many pages of warnings are read at most: events are many where a cluster is in trouble.
_MOST_PAGES: Final = 20
#: Texts by which the API server and AWS refuse for want of a permission.
_REFUSED: Final = (" is forbidden: ", "UnauthorizedOperation", "AccessDenied", "not authorized")


class Requests(Protocol):
    """Of the Kubernetes client what reading events needs."""

    def request(self, method: str, path: str) -> Any: ...


def read(kube: Requests, now: datetime) -> dict[str, Failure]:
    """Return the failures by `failures.key`; `times` is 0, for events do not count attempts. Raises PortError."""
    found: dict[str, Failure] = {}
    for one in _failures(pages(kube, _WARNINGS, most=_MOST_PAGES)):
        if now - one.latest <= REPEATED_WITHIN:
            key = failures.key(one.verb, one.object)
            other = found.get(key, one)
            newest = max(one, other, key=lambda each: each.latest)
            since = min(one.since, other.since)
            found[key] = Failure(one.verb, one.object, newest.outcome, newest.error, since, newest.latest, 0)
    return found


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
        about, at = event.get("involvedObject", {}), of_api(event.get("lastTimestamp") or event.get("eventTime"))
        if at is None:
            continue
        name = str(Ref(str(about.get("kind", "")), str(about.get("namespace", "")), str(about.get("name", ""))))
        error = message.removeprefix(f"{verb} failed: ")
        outcome = "forbidden" if any(text in error for text in _REFUSED) else "failed"
        yield Failure(verb, name, outcome, error, of_api(event.get("firstTimestamp")) or at, at, 0)
