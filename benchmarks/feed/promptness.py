"""How soon a launch and a drain begin, while everything else goes on and the worker looks for savings.

In turn a pod comes for which there is no room, and somebody deletes a NodeClaim. The first is answered by a NodeClaim,
which its batch may hold up for as long as it waits for more pods; the second by the taint of the node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from benchmarks.feed.processes import Controller, Server
from benchmarks.feed.store import Write
from benchmarks.table import Row, milliseconds

PROBES: Final = 8
PAUSE_SECONDS: Final = 4.0
#: Requests of a pod for which a node has to be nearly empty.
NEEDS_A_NODE_CPU_MILLIS: Final = 7_000
#: `BATCH_IDLE_DURATION`, which pods wait by design; the first, which comes alone, waits less.
BATCH_SECONDS: Final = 1.0
LATEST_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 15.0


def run(controller: Controller, server: Server, rates: Mapping[str, float]) -> list[Row]:
    """Probe while there is churn at these rates. A probe that is never answered counts as long as it was waited for."""
    server.ask("churn", seconds=2 * PROBES * PAUSE_SECONDS, **rates)
    before, began = controller.usage().cpu_seconds, time.time()
    launches, drains = [], []
    for number in range(PROBES):
        launches.append(max(0.0, _launch(server, number) - BATCH_SECONDS))
        drains.append(_drain(server))
    spent = (controller.usage().cpu_seconds - before) / (time.time() - began)
    server.ask("remove_unschedulable")
    controller.wait(lambda: server.ask("state")["over"], "the churn to be over", 300)
    return [
        Row("meanwhile: from the close of a batch to its NodeClaim, worst", *_judged(launches)),
        Row("  from a NodeClaim's deletion to its node's taint, worst", *_judged(drains)),
        Row("  CPU, worker included", f"{spent:.2f} s a second"),
    ]


def _judged(seconds: list[float]) -> tuple[str, str, bool]:
    worst = max(seconds)
    text = f"{milliseconds(worst)} ({len(seconds)} times, {milliseconds(sorted(seconds)[len(seconds) // 2])} usually)"
    return text, f"≤ {LATEST_SECONDS:.0f} s", worst <= LATEST_SECONDS


def _launch(server: Server, number: int) -> float:
    """Seconds from a pod's coming to the creation of a NodeClaim."""
    written, name = len(server.writes()), f"probe-{number}"
    began = time.time()
    server.ask("unschedulable", count=1, pool="general", cpu_millis=NEEDS_A_NODE_CPU_MILLIS, name=name)
    return _answered(server, written, began, lambda write: (write.verb, write.kind) == ("create", "NodeClaim"))


def _drain(server: Server) -> float:
    """Seconds from a NodeClaim's deletion to the taint of its node."""
    written, began = len(server.writes()), time.time()
    node = server.ask("delete_claim")["node"]
    return _answered(server, written, began, lambda write: write.name == node and _taints(write))


def _taints(write: Write) -> bool:
    return write.kind == "Node" and "taints" in msgspec.json.decode(write.body).get("spec", {})


def _answered(server: Server, written: int, began: float, is_it: Callable[[Write], bool]) -> float:
    """When the controller's answer came, in seconds; then the rest of the pause is over, too."""
    took = _PATIENCE_SECONDS
    while time.time() < began + _PATIENCE_SECONDS:
        found = next((write for write in server.writes(written) if is_it(write)), None)
        if found is not None:
            took = found.at - began
            break
        time.sleep(0.1)
    time.sleep(max(0.0, began + PAUSE_SECONDS - time.time()))
    return took
