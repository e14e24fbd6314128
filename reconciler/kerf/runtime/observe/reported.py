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
_SELECTOR: Final = quote("type=Warning")
_PAGE: Final = 500
#: So many pages are read at most: events are many where a cluster is in trouble.
_MOST_PAGES: Final = 20
#: Texts by which the API server and AWS refuse for want of a permission.
_REFUSED: Final = (" is forbidden: ", "UnauthorizedOperation", "AccessDenied", "not authorized")


class Requests(Protocol):
    """Of the Kubernetes client what reading events needs."""

    def request(self, method: str, path: str) -> Any: ...


def read(kube: Requests, now: datetime) -> dict[str, Failure]:
    """Return the failures by `failures.key`; `times` is 0, for events do not count attempts. Raises PortError."""
    found: dict[str, Failure] = {}
    for one in _failures(_events(kube)):
        if now - one.latest <= REPEATED_WITHIN:
            key = failures.key(one.verb, one.object)
            other = found.get(key, one)
            newest = max(one, other, key=lambda each: each.latest)
            since = min(one.since, other.since)
            found[key] = Failure(one.verb, one.object, newest.outcome, newest.error, since, newest.latest, 0)
    return found


def _events(kube: Requests) -> Iterator[Any]:
    token = ""
    for _ in range(_MOST_PAGES):
        path = f"/api/v1/events?fieldSelector={_SELECTOR}&limit={_PAGE}"
        page = kube.request("GET", path + (f"&continue={quote(token)}" if token else ""))
        if not isinstance(page, dict):
            raise PortError("GET /api/v1/events: the answer is no list")
        yield from page.get("items") or ()
        token = page.get("metadata", {}).get("continue", "")
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
