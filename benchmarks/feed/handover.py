"""Lease hand-over on the whole feed: how soon the second replica acts when the first is killed, or asked to stop.

A replica acts when it writes anything but the lease; pods without a place see to it that there is something to write,
just before the leader goes (so that its launch is under way) and just after. What both did is then read from the feed's
write log and EC2's calls: nothing may have been done twice.
"""

from __future__ import annotations

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.feed.measuring import NEEDS_A_NODE_CPU_MILLIS, Load, say
from benchmarks.feed.processes import Controller, Server
from benchmarks.feed.store import Write
from benchmarks.table import Row

Json = dict[str, Any]
PODS: Final = 20
#: How long before its end the leader gets work: the batch has closed, its claims are being launched.
BEFORE_SECONDS: Final = 2.5
WARM_SECONDS: Final = 15.0
#: After a hand-over, until what it began has been launched.
AFTER_SECONDS: Final = 15.0
_LIMIT: Final = 120.0
#: From the leader's end, or from the SIGTERM, until another replica acts.
KILLED_SECONDS, STOPPED_SECONDS = 20.0, 3.0
_GROUP, _PODS = "kerf.sh/launch-group", "kerf.sh/planned-pods"


def run(load: Load, folder: Path) -> list[Row]:
    """Both hand-overs one after the other, while pods and nodes change."""
    say(f"making {load.nodes} nodes and {load.pods} pods …")
    with Server(load.nodes, load.pods) as server, Controller(server, folder, "first") as first:
        _ready(first)
        with Controller(server, folder, "second") as second:
            _ready(second)
            server.ask("churn", pod_events=load.pod_events, node_events=load.node_events, seconds=3600)
            time.sleep(WARM_SECONDS)
            killed = _handed_over(server, first, second, signal.SIGKILL)
            with Controller(server, folder, "third") as third:
                _ready(third)
                time.sleep(WARM_SECONDS)
                stopped = _handed_over(server, second, third, signal.SIGTERM)
        return [
            *taken("kill -9", killed, KILLED_SECONDS),
            *taken("SIGTERM", stopped, STOPPED_SECONDS),
            *twice(server.writes(), server.ask("state")["fleets"]),
        ]


@dataclass(frozen=True, slots=True)
class Handover:
    """Seconds from the leader's end until the other replica has the lease, and until it acts."""

    led: float
    acted: float


def taken(end: str, seen: Handover, limit: float) -> list[Row]:
    """How soon after the leader's end another replica acted. The feed and we read the same clock."""
    what = f"{end} of the leader until another replica acts"
    return [
        Row(what, f"{seen.acted:.1f} s", f"≤ {limit:.0f} s", 0 < seen.acted <= limit),
        Row("  until it has the lease", f"{seen.led:.1f} s"),
    ]


def _ready(controller: Controller) -> None:
    say(f"starting replica {controller.name} …")
    controller.wait(lambda: controller.ready, "everything listed", 600)


def _handed_over(server: Server, leader: Controller, other: Controller, how: signal.Signals) -> Handover:
    """End the leader while it works."""
    if _holder(server) != leader.name:
        raise RuntimeError(f"{leader.name} was to lead, and {_holder(server)} does")
    say(f"{how.name} to {leader.name} …")
    _work(server, f"before-{how.name.lower()}")
    time.sleep(BEFORE_SECONDS)
    known, ended = len(server.writes()), time.time()
    leader.signal(how)
    _work(server, f"after-{how.name.lower()}")

    def wrote(lease: bool) -> list[Write]:
        return [write for write in server.writes(known) if write.by == other.name and (write.kind == "Lease") == lease]

    other.wait(lambda: bool(wrote(lease=False)), "the other replica acts", _LIMIT)
    found = Handover(wrote(lease=True)[0].at - ended, wrote(lease=False)[0].at - ended)
    time.sleep(AFTER_SECONDS)
    return found


def _work(server: Server, name: str) -> None:
    server.ask("unschedulable", count=PODS, pool="general", cpu_millis=NEEDS_A_NODE_CPU_MILLIS, name=name)


def _holder(server: Server) -> str:
    """Who wrote the lease last."""
    return next((write.by for write in reversed(server.writes()) if write.kind == "Lease"), "")


# --- was anything done twice? -----------------------------------------------------------------------------------------
def twice(writes: Sequence[Write], fleets: Sequence[Json]) -> list[Row]:
    """What was done twice. Where nothing was done at all nothing was shown, and that is missed too."""
    claims = [write for write in writes if (write.verb, write.kind) == ("create", "NodeClaim")]
    pods = Counter(mark for write in claims for mark in _annotation(write, _PODS).split(",") if mark)
    again = sum(count > 1 for count in pods.values())
    groups: dict[str, set[str]] = defaultdict(set)
    for write in writes:
        if write.kind == "NodeClaim" and (group := _annotation(write, _GROUP)):
            groups[write.name].add(group)
    tokens: dict[str, set[str]] = defaultdict(set)
    for call in fleets:
        tokens[call["ClientToken"]].add(call["TargetCapacitySpecification.TotalTargetCapacity"])
    regrouped = sum(len(found) > 1 for found in groups.values())
    launched = sum(int(size) for sizes in tokens.values() for size in sizes)
    return [
        Row("NodeClaims created, by replica", _by_replica(claims)),
        Row("  pods that two of them were made for", f"{again} of {len(pods)}", "0", bool(pods) and not again),
        Row("  claims with two launch groups", f"{regrouped} of {len(groups)}", "0", bool(groups) and not regrouped),
        Row("CreateFleet calls / different tokens", f"{len(fleets)} / {len(tokens)}"),
        Row("  instances asked for", str(launched), f"≤ {len(claims)}, the claims", 0 < launched <= len(claims)),
    ]


def _by_replica(claims: Sequence[Write]) -> str:
    return ", ".join(f"{count} by {name}" for name, count in Counter(write.by for write in claims).items()) or "none"


def _annotation(write: Write, name: str) -> str:
    body: Json = msgspec.json.decode(write.body)
    return str((body.get("metadata", {}).get("annotations") or {}).get(name) or "")
