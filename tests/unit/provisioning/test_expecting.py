"""When a pod is expected on a node no more, and how many nodes a NodePool makes while one is late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model.plan import CreateNodeClaim, Nomination, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.expecting import over
from kerf.provisioning.provision import provision
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import claim, ready

MINUTE = timedelta(minutes=1)
BATCH = Batch(w.NOW - timedelta(seconds=2), w.NOW - timedelta(seconds=2))
WEB = w.pod("web", "1500m")


def expected(minutes: float, *, ended: bool = False, target: str = "n1") -> Nomination:
    return Nomination(WEB.metadata.uid, target, w.NOW + MINUTE, w.NOW - minutes * MINUTE, ended)


def world(promise: Nomination, *, initialized: float = 30, pod_event: float | None = None, pods: Any = (WEB,)) -> Any:
    own = claim("n1", minutes=initialized)
    if pod_event is not None:
        status = msgspec.structs.replace(own.status, last_pod_event_time=w.NOW - pod_event * MINUTE)
        own = msgspec.structs.replace(own, status=status)
    return w.world(w.pool(), own, ready("n1"), *pods, batch=BATCH, nominations=(promise,))


@pytest.mark.parametrize(
    ("promise", "facts", "ends"),
    [
        (expected(5), {}, True),
        (expected(4), {}, False),
        (expected(5), {"initialized": 4}, False),
        (expected(5), {"pod_event": 4}, False),
        (expected(5), {"pods": ()}, False),
        (expected(5, target="gone"), {}, False),
        (expected(1, ended=True), {}, True),
        (expected(1, ended=True), {"pod_event": 0.5}, False),
    ],
)
def test_an_expectation_ends_when_nothing_changes(promise: Nomination, facts: dict[str, Any], ends: bool) -> None:
    assert bool(over(world(promise, **facts))) == ends


def test_one_other_node_is_tried_and_the_node_is_free() -> None:
    plan = provision(world(expected(5)))
    (made,) = created(plan)
    assert [(n.target, n.over) for n in plan.nominations] == [(made.claim.name, False), ("n1", True)]
    assert [event.reason for event in plan.events if event.type == "Warning"] == ["NotBound"]


def test_it_stays_ended_and_is_reported_once() -> None:
    plan = provision(world(expected(1, ended=True)))
    assert [n.over for n in plan.nominations] == [False, True]
    assert [event.reason for event in plan.events if event.type == "Warning"] == []
    (kept,) = provision(world(expected(4))).nominations
    assert (kept.since, kept.over) == (w.NOW - 4 * MINUTE, False)


def created(plan: Plan) -> list[CreateNodeClaim]:
    return [action for action in plan.actions if isinstance(action, CreateNodeClaim)]


@pytest.mark.parametrize(
    ("others", "nodes", "code"),
    [
        ([], 1, "NodesNotInitialized"),
        ([("n2", 1, False)], 0, "NoNodePool"),
        ([("n2", 1, True)], 3, ""),
        ([("n2", 30, True)], 1, "NodesNotInitialized"),
    ],
)
def test_a_node_that_is_late_holds_no_pods_and_its_pool_makes_one_more(
    others: list[tuple[str, float, bool]], nodes: int, code: str
) -> None:
    full = [claim(name, minutes=minutes, initialized=done) for name, minutes, done in others]
    late = claim("n1", minutes=15, initialized=False)
    objects = [late, ready("n1"), *full, *(ready(one.name, cpu="1") for one in full)]
    pods = w.replicas(3, "web", "3")
    plan = provision(w.world(w.pool(), *objects, *pods, batch=BATCH))
    assert len(created(plan)) == nodes
    codes = {refusal.reason.code for refusal in plan.refusals if refusal.subject.startswith("pod/")}
    assert codes == ({code} if code else set())


def test_before_that_its_pods_go_there() -> None:
    late = claim("n1", minutes=9, initialized=False)
    plan = provision(w.world(w.pool(), late, ready("n1"), WEB, batch=BATCH))
    assert not created(plan)
    assert [n.target for n in plan.nominations] == ["n1"]
