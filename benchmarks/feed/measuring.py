"""The main run: start, settle, a time of steady churn, then two bursts of pods without a place. Figures as rows."""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.feed import promptness
from benchmarks.feed.processes import Controller, Server
from benchmarks.feed.store import Write
from benchmarks.scrape import SERIES
from benchmarks.table import Row, milliseconds, quantile
from benchmarks.usage import Usage, proportional_bytes
from kerf.telemetry.turns import Turn

#: Seconds between the first tick and the measured period: first writes and the first proposal come and go.
SETTLE_SECONDS: Final = 30.0
#: As Prometheus scrapes.
SCRAPE_SECONDS: Final = 30.0
BURST_PODS, BURST_SECONDS = 200, 15.0
#: Requests of a pod that fits into what a node of the feed has left, and of one that does not.
FITS_CPU_MILLIS, NEEDS_A_NODE_CPU_MILLIS = 100, 1500
#: What 99 ticks of 100 may take, and all processes of the controller together may ever have resident.
TICK_SECONDS, MEMORY_BYTES = 0.05, 3 * 2**29


@dataclass(frozen=True, slots=True)
class Load:
    """What the feed plays."""

    nodes: int = 5000
    pods: int = 100_000
    pod_events: float = 100.0
    node_events: float = 20.0
    seconds: float = 60.0
    #: How long nothing happens before the memory at rest is read; 0 leaves that out.
    rest: float = SETTLE_SECONDS
    #: Whether nothing but that is measured.
    rest_only: bool = False


def run(load: Load, folder: Path) -> list[Row]:
    """The whole benchmark."""
    say(f"making {load.nodes} nodes and {load.pods} pods …")
    with Server(load.nodes, load.pods) as server, Controller(server, folder) as controller:
        rows = _described(server, load)
        say("starting the controller …")
        rows += _first_sync(controller, server)
        rows += _at_rest(controller, load.rest) if load.rest else []
        if load.rest_only:
            return rows
        say(f"{load.seconds:.0f} s of {load.pod_events:.0f} pod and {load.node_events:.0f} node events a second …")
        rows += _steady(controller, server, load)
        say(f"{promptness.PROBES} launches and drains meanwhile …")
        rows += promptness.run(controller, server, rates(load))
        for what, cpu in (("fit on nodes", FITS_CPU_MILLIS), ("need new nodes", NEEDS_A_NODE_CPU_MILLIS)):
            say(f"{BURST_PODS} pods that {what} …")
            rows += _burst(controller, server, what, cpu)
        return rows + memory("peak memory, bursts included", controller.usage())


def _at_rest(controller: Controller, seconds: float) -> list[Row]:
    """The memory of all processes, and the CPU of the last third of a while in which nothing happens."""
    time.sleep(seconds * 2 / 3)
    before = controller.usage().cpu_seconds
    time.sleep(seconds / 3)
    used = (controller.usage().cpu_seconds - before) / (seconds / 3)
    return [
        Row(f"memory after {seconds:.0f} s at rest, all processes (PSS)", _mib(proportional_bytes(controller.pid))),
        Row("CPU at rest", f"{used:.1%} of a core"),
    ]


def _mib(size: float) -> str:
    return f"{size / 2**20:.0f} MiB"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _described(server: Server, load: Load) -> list[Row]:
    sizes, counts = server.told["bytes"], server.told["objects"]
    each = ", ".join(
        f"{sizes[k] / max(counts[k], 1) / 1000:.1f} kB a {k.lower()}" for k in ("Pod", "Node", "NodeClaim")
    )
    return [Row(f"{counts['Node']} nodes, {counts['Pod']} pods; JSON", each)]


# --- start ------------------------------------------------------------------------------------------------------------
def _first_sync(controller: Controller, server: Server) -> list[Row]:
    controller.wait(lambda: controller.ready, "everything listed", 300)
    controller.wait(lambda: any(turn.deciding_seconds for turn in controller.turns()), "a first decision")
    first = next(turn for turn in controller.turns() if turn.deciding_seconds)
    usage = controller.usage()
    return [
        Row("first sync: start of the process to end of the first tick", f"{first.ended - controller.started:.1f} s"),
        Row("  first tick (takes in the lists, decides)", milliseconds(first.seconds)),
        Row("  CPU until then", f"{usage.cpu_seconds:.1f} s"),
        Row("  peak memory until then", _gib(usage.peak_bytes["controller"])),
    ]


# --- steady churn -----------------------------------------------------------------------------------------------------
def _steady(controller: Controller, server: Server, load: Load) -> list[Row]:
    written, before, began = len(server.writes()), controller.usage(), time.time()
    asked = server.ask("state")
    server.ask("churn", seconds=load.seconds, **rates(load))
    scrapes = _scraped(controller, began + load.seconds)
    ended, after = time.time(), controller.usage()
    turns, state = controller.turns(began), server.ask("state")
    again = Counter(state["requests"]) - Counter(asked["requests"])
    lists = [f"{count} of {what[5:]}" for what, count in again.items() if what.startswith("LIST")]
    turns = [turn for turn in turns if turn.ended <= ended]
    pods, nodes = (state[name] - asked[name] for name in ("pods_changed", "nodes_changed"))
    spent = (after.cpu_seconds - before.cpu_seconds) / (ended - began)
    rows = [Row("events a second, as sent", f"{pods / (ended - began):.0f} pods, {nodes / (ended - began):.0f} nodes")]
    rows += ticks(turns, ended - began)
    rows += _delay_rows(turns, server.ask("emitted"), began, ended)
    rows += [
        Row("CPU, worker included", f"{spent:.2f} s a second"),
        Row("pages of lists read again", ", ".join(lists) or "none", "none"),
        Row("reading /metrics", ", ".join(f"{took:.2f} s" for took, _ in scrapes) or "-"),
        Row("  series", str(max((count for _, count in scrapes), default="-")), f"≤ {SERIES}", _few(scrapes)),
        *memory("peak memory until now", after),
        *_write_rows(server.writes(written), ended - began),
    ]
    return rows


def rates(load: Load) -> dict[str, float]:
    """The events of a load, as the feed's command takes them."""
    return {"pod_events": load.pod_events, "node_events": load.node_events}


def _few(scrapes: Sequence[tuple[float, int]]) -> bool:
    return all(count <= SERIES for _, count in scrapes)


def _scraped(controller: Controller, until: float) -> list[tuple[float, int]]:
    """Let time pass, reading the metrics as Prometheus would; how long each reading took, its series."""
    found = []
    while (left := until - time.time()) > 0:
        time.sleep(min(left, SCRAPE_SECONDS))
        if time.time() < until:
            found.append(controller.scrape())
    return found


def ticks(turns: Sequence[Turn], seconds: float) -> list[Row]:
    """What they took. That there were none is a miss."""
    target = f"≤ {TICK_SECONDS * 1000:.0f} ms"
    if not turns:
        return [Row("tick (take in news, decide, act), p99", "no tick", target, met=False)]
    took, cpu, deciding = ([getattr(t, n) for t in turns] for n in ("seconds", "cpu_seconds", "deciding_seconds"))
    slow = quantile(took, 0.99)
    return [
        Row("ticks a second", f"{len(turns) / seconds:.1f}"),
        Row("tick (take in news, decide, act), p50", milliseconds(quantile(took, 0.5))),
        Row("  tick, p99", milliseconds(slow), target, slow <= TICK_SECONDS),
        Row("  longest", milliseconds(max(took))),
        Row("  deciding only, p50 / p99", _pair(deciding)),
        Row("  CPU time of the tick's own thread, p50 / p99", _pair(cpu)),
    ]


def _delay_rows(turns: Sequence[Turn], emitted: Sequence[tuple[int, float]], began: float, ended: float) -> list[Row]:
    """From a pod's change in the API server to the end of the tick that took it in."""
    newest = [turn.newest_pod for turn in turns]
    delays = []
    for version, at in emitted:
        place = bisect_left(newest, version)
        if began <= at < ended and place < len(turns):
            delays.append(turns[place].ended - at)
    return [Row("pod event to end of its tick, p50 / p99", _pair(delays))] if delays else []


def _pair(values: Sequence[float]) -> str:
    return f"{milliseconds(quantile(values, 0.5))} / {milliseconds(quantile(values, 0.99))}"


def _write_rows(writes: Iterable[Write], seconds: float) -> list[Row]:
    """Changes that the controller made, by what they were; leases are not counted."""
    counts = Counter(_sort_of(write) for write in writes if write.kind != "Lease")
    rows = [Row("mutating requests (leases apart)", f"{counts.total()} in {seconds:.0f} s", "≈ 0")]
    return rows + [Row(f"  {what}", str(count)) for what, count in counts.most_common(12)]


def _sort_of(write: Write) -> str:
    """A write in a few words: verb, kind, and the fields that a patch sets."""
    if write.verb != "patch":
        return f"{write.verb} {write.kind}"
    body = msgspec.json.decode(write.body)
    names = sorted(f"{part}.{name}" for part, inner in body.items() for name in inner if name != "resourceVersion")
    return f"patch {write.kind}: {', '.join(names)}"


# --- bursts -----------------------------------------------------------------------------------------------------------
def _burst(controller: Controller, server: Server, what: str, cpu_millis: int) -> list[Row]:
    written, began = len(server.writes()), time.time()
    name = f"burst-{cpu_millis}"
    server.ask("unschedulable", count=BURST_PODS, pool="general", cpu_millis=cpu_millis, name=name)
    time.sleep(BURST_SECONDS)
    controller.wait(lambda: bool(controller.turns(began + BURST_SECONDS)), "the loop to come round", 300)
    turns, writes = controller.turns(began), server.writes(written)
    server.ask("remove_unschedulable")
    made = [write.at - began for write in writes if (write.verb, write.kind) == ("create", "NodeClaim")]
    slow = max(turn.seconds for turn in turns)
    told = f"{len(made)} claims, the last after {max(made):.1f} s" if made else "no claim"
    return [Row(f"{BURST_PODS} pods that {what}: longest tick", milliseconds(slow)), Row("  NodeClaims created", told)]


# --- memory -----------------------------------------------------------------------------------------------------------
def memory(what: str, usage: Usage) -> list[Row]:
    """All processes together, and each. None at all means that the controller has ended."""
    total = sum(usage.peak_bytes.values())
    rows = [Row(what, _gib(total), f"≤ {_gib(MEMORY_BYTES)}", 0 < total <= MEMORY_BYTES)]
    return rows + [Row(f"  {role}", _gib(size)) for role, size in usage.peak_bytes.items()]


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
