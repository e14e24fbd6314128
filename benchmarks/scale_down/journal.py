"""What happens in a cluster, second by second: its nodes and claims are looked at, its pods' changes read from the
API server's audit log, which costs the cluster less than another watch and forgets nothing between two looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.usage import usage
from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.model.kubernetes.objects import Node
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

LOOK_SECONDS: Final = 1.0
CREATED, DELETED, BOUND, EVICTED = "created", "deleted", "bound", "evicted"
_CHANGES: Final = {
    ("create", ""): CREATED,
    ("delete", ""): DELETED,
    ("create", "binding"): BOUND,
    ("create", "eviction"): EVICTED,
}


# --- what was asked of the API server -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a pod (in seconds since the epoch); one that was only just created may have no name."""

    at: float
    what: str
    name: str


class _About(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Status(msgspec.Struct, frozen=True):
    code: int = 0


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    verb: str
    stage_timestamp: datetime
    object_ref: _About = _About()
    response_status: _Status = _Status()


class AuditLog:
    """An audit log (`audit.k8s.io/v1`, one event a line) that grows while it is read."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def news(self) -> list[Change]:
        """What happened to pods since the last time. Raises RuntimeError when the API server has begun a new file."""
        if self._path.stat().st_size < self._offset:
            raise RuntimeError(f"{self._path} is not the file any more that it was")
        with self._path.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return list(_changes(whole))


def _changes(text: bytes) -> Iterator[Change]:
    for raw in text.splitlines():
        if b'"resource":"pods"' not in raw:
            continue
        line = msgspec.json.decode(raw, type=_Line)
        what = _CHANGES.get((line.verb, line.object_ref.subresource))
        if what and line.object_ref.resource == "pods" and line.response_status.code < 300:
            yield Change(line.stage_timestamp.timestamp(), what, line.object_ref.name)


# --- moments ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Moment:
    """How it stands at a look: `seconds` after the beginning. `cost` is of the nodes, in millionths of a dollar per
    hour; `launched` and `evicted` count claims and pods since the beginning, `moved` the pods created since then."""

    seconds: float
    nodes: int
    claims: int
    cost: int
    launched: int
    evicted: int
    moved: int
    cpu_seconds: float
    peak_bytes: int


class Journal:
    """Follows a cluster until it rests. `pid` is of the controller that looks after it, `cost` of its nodes."""

    def __init__(
        self, kube: KubeClient, log: AuditLog, pid: Callable[[], int], cost: Callable[[list[Node]], int]
    ) -> None:
        self._kube, self._log, self._pid, self._cost = kube, log, pid, cost

    def nodes(self) -> list[Node]:
        """Those of a NodePool."""
        return [one for one in self._kube.list(kinds.NODE).items if labels.NODEPOOL in one.metadata.labels]

    def until_quiet(
        self, quiet_seconds: float, most_seconds: float, *, begin: Callable[[], object] = lambda: None
    ) -> list[Moment]:
        """A moment for each look at which something had changed since `begin` was called, the first as it is. Ends
        when nothing has changed for so long, or when that does not come."""
        self._log.news()
        ever, evicted, moved = self._claims(), set[str](), 0
        cpu = usage(self._pid()).cpu_seconds
        began = changed = time.time()
        begin()
        before: tuple[frozenset[str], frozenset[str]] | None = None
        was, found = len(ever), list[Moment]()
        while time.time() - changed < quiet_seconds and time.time() - began < most_seconds:
            nodes, claims, news = self.nodes(), self._claims(), self._log.news()
            now = frozenset(node.metadata.uid for node in nodes), claims
            evicted |= {change.name for change in news if change.what == EVICTED}
            moved += sum(change.what == CREATED for change in news)
            ever |= claims
            if now != before or news:
                changed, before = time.time(), now
                used = usage(self._pid())
                spent, peak = used.cpu_seconds - cpu, sum(used.peak_bytes.values())
                told = len(nodes), len(claims), self._cost(nodes), len(ever) - was, len(evicted), moved
                found.append(Moment(changed - began, *told, spent, peak))
            time.sleep(LOOK_SECONDS)
        return found

    def _claims(self) -> frozenset[str]:
        found: list[NodeClaim] = list(self._kube.list(kinds.NODE_CLAIM).items)
        return frozenset(one.metadata.uid for one in found)
