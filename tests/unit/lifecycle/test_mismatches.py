"""How verdicts on nodes become records of their NodePool, and when these are cleared."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.lifecycle.nodeclaim import mismatches as stage
from kerf.lifecycle.view import View
from kerf.model import mismatches
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory
from kerf.model.mismatches import Mismatches, Record, Size, Trait
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import claim, ready

WEB = w.pod("web", "1500m")
HOUR = timedelta(hours=1)


def recorded(*objects: Any, pool: NodePool | None = None) -> tuple[Record, ...]:
    own = pool or w.pool()
    turn = Memory().turn(w.world(own, *objects))
    return stage.recorded(View(turn.snapshot), own, stage.find(turn)).records


def remembering(record: Record) -> NodePool:
    pool, text = w.pool(), mismatches.annotation(Mismatches(records=(record,)))
    return msgspec.structs.replace(
        pool, metadata=msgspec.structs.replace(pool.metadata, annotations={labels.MISMATCHES: text})
    )


def test_the_first_nodes_that_do_not_help_are_one_attempt() -> None:
    pods = w.replicas(2, "web", "1500m")
    (record,) = recorded(claim("n1", pods[0]), ready("n1"), claim("n2", pods[1]), ready("n2"), *pods)
    assert (record.nodes, record.claim, record.at, record.since) == (1, "uid-n1", w.NOW, w.NOW - timedelta(minutes=3))
    assert recorded(claim("n1", WEB, minutes=0.5), ready("n1"), WEB) == ()


def test_a_further_attempt_counts_once() -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1"), WEB)
    probe = claim("n2", WEB, annotations={labels.PROBES: record.shape})
    (second,) = recorded(probe, ready("n2"), WEB, pool=remembering(record))
    assert (second.nodes, second.claim, second.since) == (2, "uid-n2", record.since)
    assert recorded(probe, ready("n2"), WEB, pool=remembering(second)) == (second,)
    assert recorded(claim("n3", WEB), ready("n3"), WEB, pool=remembering(second)) == (second,)


def _rewritten(own: NodePool, *objects: Any, minutes: float = 0) -> Mismatches:
    """The content of the annotation after one more look at the same nodes, so many minutes later."""
    turn = Memory().turn(w.world(own, *objects, now=w.NOW + timedelta(minutes=minutes)))
    return stage.recorded(View(turn.snapshot), own, stage.find(turn))


def _noted(found: Mismatches) -> NodePool:
    pool = w.pool()
    meta = msgspec.structs.replace(pool.metadata, annotations={labels.MISMATCHES: mismatches.annotation(found)})
    return msgspec.structs.replace(pool, metadata=meta)


def test_the_same_nodes_change_nothing_when_they_are_looked_at_again() -> None:
    """Two further attempts at once, of one type with two amounts, and three nodes that lack a label."""
    (record,) = recorded(claim("n0", WEB), ready("n0"), WEB)
    probes = [claim(f"n{i}", WEB, annotations={labels.PROBES: record.shape}) for i in (1, 2, 3)]
    lacking = [
        msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, labels={"team": "a", **old}))
        for one in probes
        if (old := one.metadata.labels)
    ]
    nodes = [ready(f"n{i}", cpu=cpu) for i, cpu in ((1, "3"), (2, "2"), (3, "3"))]
    first = _rewritten(remembering(record), *lacking, *nodes, WEB)
    assert (first.records[0].nodes, len(first.traits), first.sizes[0].amounts["cpu"]) == (4, 1, 2000)
    assert _rewritten(_noted(first), *lacking, *nodes, WEB) == first
    assert _rewritten(_noted(first), *lacking, *nodes, WEB, minutes=1) == first


@pytest.mark.parametrize(("hours", "renewed"), [(5, False), (7, True)])
def test_a_fact_that_is_seen_again_is_renewed_now_and_then(hours: int, renewed: bool) -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1"), WEB)
    size = Size(instance_type="default", image="ami-1", hash="", amounts={"cpu": 3000}, at=w.NOW - hours * HOUR)
    known = _noted(Mismatches(records=(record,), sizes=(size,)))
    (found,) = _rewritten(known, claim("n1", WEB), ready("n1", cpu="3"), WEB).sizes
    assert (found.at == w.NOW) == renewed


def test_an_annotation_of_an_earlier_release_is_read() -> None:
    text = (
        '{"records":[{"shape":"s","since":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z","nodes":2,"claim":"u"}]}'
    )
    meta = msgspec.structs.replace(w.pool().metadata, annotations={labels.MISMATCHES: text})
    (record,) = mismatches.remembered(msgspec.structs.replace(w.pool(), metadata=meta)).records
    assert record.counts("u")
    assert record.after("v") == ("u",)


@pytest.mark.parametrize(("minutes", "left"), [(2, 0), (300, 1)])
def test_a_pod_of_the_shape_on_a_newer_node_clears_the_record(minutes: float, left: int) -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1"), WEB)
    record = msgspec.structs.replace(record, since=w.NOW - HOUR, at=w.NOW - HOUR / 2)
    running = w.pod("web-2", "1500m", node="n2")
    assert len(recorded(claim("n2", minutes=minutes), ready("n2"), running, pool=remembering(record))) == left


def test_unused_nodes_of_one_attempt_count_once_and_another_row_begins_after_three_hours() -> None:
    def after(record: Record | None, minutes: float) -> Record:
        own = remembering(record) if record is not None else w.pool()
        (found,) = recorded(claim("n2", WEB, minutes=minutes), ready("n2", unschedulable=True), WEB, pool=own)
        return found

    first = after(None, 1)
    assert (first.unused, first.nodes, first.differs, first.limits) == (True, 1, "it is cordoned", False)
    other = msgspec.structs.replace(first, claim="uid-n1", node="n1", nodes=9)
    assert after(other, 1) == other
    older = msgspec.structs.replace(other, at=w.NOW - HOUR)
    second = after(older, 1)
    assert (second.nodes, second.node, second.at, second.limits) == (10, "n2", w.NOW, True)
    assert after(second, 1) == second
    assert after(msgspec.structs.replace(other, at=w.NOW - 4 * HOUR), 1).nodes == 1


def test_evidence_ends_a_row_of_unused_nodes_and_these_are_nothing_beside_evidence() -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1"), WEB)
    unused = msgspec.structs.replace(record, unused=True, nodes=12, claim="u", at=w.NOW - HOUR)
    assert recorded(claim("n1", WEB), ready("n1"), WEB, pool=remembering(unused)) == (record,)
    cordoned = ready("n2", unschedulable=True)
    assert recorded(claim("n2", WEB), cordoned, WEB, pool=remembering(record)) == (record,)


def test_a_few_unused_nodes_are_not_reported() -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1", unschedulable=True), WEB)
    few, many = (Mismatches(records=(msgspec.structs.replace(record, nodes=n),)) for n in (9, 10))
    assert stage.with_condition(w.pool(), few, (), w.NOW) == ()
    found = [condition.message for condition in stage.with_condition(w.pool(), many, (), w.NOW)]
    assert found == ["nodes made for pods of 1 shape did not help, the latest n1: it is cordoned"]
    assert [len(stage.gauges(w.pool(), known)) for known in (few, many)] == [0, 1]


@pytest.mark.parametrize(
    ("pods", "learned"),
    [((), 1), ((WEB,), 0), ((w.pod("web", "1500m", node="n1"),), 0)],
    ids=["evicted", "waits", "runs"],
)
def test_a_taint_that_evicts_is_learned_though_no_pod_waits_for_the_node(pods: tuple[Pod, ...], learned: int) -> None:
    """While its pods wait they have not been there: such a taint may be one of the start of a node."""
    evicting = [{"key": "example.com/quarantine", "effect": "NoExecute"}]
    world = w.world(w.pool(), claim("n1", WEB, minutes=1), ready("n1", taints=evicting), *pods)
    turn = Memory().turn(world)
    found = stage.recorded(View(turn.snapshot), w.pool(), stage.find(turn))
    assert [(trait.text, trait.nodes) for trait in found.traits] == [
        ("example.com/quarantine:NoExecute", ("n1",))
    ] * learned


def test_unused_nodes_are_remembered_of_a_few_shapes() -> None:
    """In an outage of a zone those of all pods are unused."""
    pods = [w.pod(f"p{n}", f"{100 + n}m") for n in range(40)]
    nodes = [claim(f"n{n}", pod) for n, pod in enumerate(pods)]
    found = recorded(*pods, *nodes, *(ready(one.name, unschedulable=True) for one in nodes))
    assert len(found) == mismatches.MOST_UNUSED


def test_a_taint_that_a_well_node_does_not_have_is_no_fact_of_the_node_pool() -> None:
    hashed = {labels.NODEPOOL_HASH: "h"}
    trait = Trait(kind="taint", text="example.com/a:NoSchedule", hash="h", nodes=("n1",), at=w.NOW)
    meta = msgspec.structs.replace(
        w.pool().metadata, annotations={labels.MISMATCHES: mismatches.annotation(Mismatches(traits=(trait,)))}
    )
    pool = msgspec.structs.replace(w.pool(), metadata=meta)

    def left(*objects: Any) -> int:
        turn = Memory().turn(w.world(pool, *objects))
        return len(stage.recorded(View(turn.snapshot), pool, stage.find(turn)).traits)

    well = claim("n2", minutes=6, annotations=hashed)
    assert left() == 1
    assert left(well, ready("n2")) == 0
    assert left(well, ready("n2", ready="False")) == 1
    assert left(claim("n2", minutes=4, annotations=hashed), ready("n2")) == 1
    assert left(claim("n2", minutes=6), ready("n2")) == 1
    assert left(well, ready("n2", taints=[{"key": "example.com/a", "effect": "NoSchedule"}])) == 1


@pytest.mark.parametrize(("minutes", "learned"), [(6, 0), (4, 1)], ids=["well", "may come yet"])
def test_a_taint_that_another_node_does_not_have_is_not_learned_again_each_time(minutes: float, learned: int) -> None:
    """A taint that may come yet is no sign that it does not; what is written is not written again a second later."""
    hashed = {labels.NODEPOOL_HASH: "h"}
    tainted = ready("n1", taints=[{"key": "example.com/a", "effect": "NoSchedule"}])
    objects = (claim("n1", WEB, minutes=6, annotations=hashed), tainted, WEB)
    others = (claim("n2", minutes=minutes, annotations=hashed), ready("n2", cpu="1"))
    first = _rewritten(w.pool(), *objects, *others)
    assert len(first.traits) == learned
    assert _rewritten(_noted(first), *objects, *others, minutes=1 / 60) == first


@pytest.mark.parametrize(("kind", "seconds"), [("NoSchedule", 50), ("NoExecute", None)])
def test_a_trait_is_looked_at_again_when_the_next_node_would_show_it(kind: str, seconds: int | None) -> None:
    trait = Trait(kind="taint", text=f"example.com/a:{kind}", hash="h", nodes=("n1",), at=w.NOW)
    notes = {labels.MISMATCHES: mismatches.annotation(Mismatches(traits=(trait,)))}
    pool = msgspec.structs.replace(w.pool(), metadata=msgspec.structs.replace(w.pool().metadata, annotations=notes))
    joined = claim("n2", minutes=4, annotations={labels.NODEPOOL_HASH: "h"})
    earlier = claim("n3", minutes=6, annotations={labels.NODEPOOL_HASH: "h"})
    due = stage.find(Memory().turn(w.world(pool, joined, ready("n2"), earlier, ready("n3")))).due
    assert due == (w.NOW + timedelta(seconds=seconds) if seconds is not None else None)


def test_a_record_says_where_the_latest_node_was() -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1"), WEB)
    where = {labels.NODEPOOL: "default", labels.INSTANCE_TYPE: "default", labels.ZONE: "z1", labels.ARCH: "amd64"}
    assert record.where == where


def test_the_condition_and_the_event_report_it() -> None:
    (record,) = recorded(claim("n1", WEB), ready("n1"), WEB)
    (condition,) = stage.with_condition(w.pool(), Mismatches(records=(record,)), (), w.NOW)
    assert (condition.type, condition.status) == ("NodeMismatch", "True")
    assert condition.message == "nodes made for pods of 1 shape did not help, the latest n1"
    assert stage.with_condition(w.pool(), mismatches.EMPTY, (condition,), w.NOW) == ()
    odd = msgspec.structs.replace(w.pool().metadata, annotations={labels.MISMATCHES: "nonsense"})
    (event,) = stage.reported(msgspec.structs.replace(w.pool(), metadata=odd))
    assert event.reason == "MismatchesUnreadable"
