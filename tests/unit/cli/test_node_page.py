"""What `kerf why node` prints, word for word: a node that many things hold, one that goes, one that drains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.cli.answering.node_page import page
from kerf.disruption.command import Command, Failure
from kerf.judgement.judge import why
from kerf.model.annotations import text_of
from kerf_api import labels
from tests.unit.disruption.worlds import (
    HOUR,
    NOW,
    claim,
    node,
    on_new_nodes,
    pdb,
    pod,
    pool,
    snapshot,
    stamp,
)
from tests.unit.judgement.yards import LARGE, machine, on_demand, worker

CASES = Path(__file__).parent / "why_node"
NIGHT = {"nodes": "0", "schedule": "0 9 * * *", "duration": "8h", "reasons": ["Drifted"]}


def held() -> list[Any]:
    failed = {labels.COMMAND_FAILED: text_of(Failure(at=NOW, count=3))}
    old = claim("a", drifted=NOW - HOUR, annotations=failed, expireAfter="240h")
    protected = pod("report", "a", labels_={"app": "report"}, annotations={labels.DO_NOT_DISRUPT: "90m"})
    pods = [pod("db-0", "a", labels_={"app": "db"}), pod("db-1", "a", labels_={"app": "db"}), protected]
    return [pool(budgets=[{"nodes": "50%"}, NIGHT]), old, node(old), *pods, pdb("db", app="db")]


def going() -> list[Any]:
    command = Command(
        id="c0ffee0123", reason="Drifted", started=NOW - HOUR / 12, created=True, replacements=("b",), why="AMIDrift"
    )
    old = claim("a", drifted=NOW - HOUR, annotations={labels.COMMAND: text_of(command)})
    new = claim("b", since=NOW - HOUR / 20, annotations={labels.REPLACES: "a"})
    rows = [c for c in new.status.conditions if c.type == "Launched"]
    new = replace(new, status=replace(new.status, conditions=tuple(rows)))
    return [pool(), old, node(old, taints=[{"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]), new]


def draining() -> list[Any]:
    one = claim("a", annotations={labels.TERMINATION_TIMESTAMP: stamp(NOW + HOUR)}, terminationGracePeriod="1h")
    gone = {"deletion_timestamp": NOW - HOUR / 60, "finalizers": (labels.TERMINATION_FINALIZER,)}
    its = node(one)
    held = pod("db-0", "a", labels_={"app": "db"}, terminationGracePeriodSeconds=600)
    return [
        pool(),
        replace(one, metadata=replace(one.metadata, **gone)),
        replace(its, metadata=replace(its.metadata, **gone)),
        held,
        pod("web-0", "a", deletion=NOW + HOUR / 120),
        pdb("db", app="db"),
    ]


def busy() -> list[Any]:
    one = claim("a")
    return [pool(), one, node(one), pod("web-0", "a")]


@pytest.mark.parametrize("make", [held, going, draining, busy], ids=lambda make: make.__name__)
def test_it_reads_as_it_should(make: Any) -> None:
    seen = snapshot(make())
    assert (
        page(why(seen, "node-a", on_new_nodes("m5.large", price=96_000)), NOW)
        == (CASES / f"{make.__name__}.txt").read_text()
    )


def roomless() -> list[Any]:
    """Its pod has no room elsewhere, and its NodePool makes nothing that is smaller."""
    agent = worker("agent-a", "a", "100m", of="agent", kind="DaemonSet")
    others = [*machine("b"), worker("api-0", "b", "1", of="api"), *machine("c"), worker("api-1", "c", "900m", of="api")]
    return [on_demand(LARGE), *machine("a"), worker("web-0", "a", "1300m"), agent, *others]


def hemmed() -> list[Any]:
    """Behind its protection there is a budget of pods."""
    pods = [worker("web-0", "a", "500m", annotations={labels.DO_NOT_DISRUPT: "true"}), pdb("web", minAvailable=1)]
    return [on_demand(), *machine("a"), *machine("b"), worker("api-0", "b", "1", of="api"), *pods]


@pytest.mark.parametrize("make", [roomless, hemmed], ids=lambda make: make.__name__)
def test_what_would_let_a_node_go_reads_as_it_should(make: Any) -> None:
    """By the real scheduler."""
    assert page(why(snapshot(make()), "node-a"), NOW) == (CASES / f"{make.__name__}.txt").read_text()
