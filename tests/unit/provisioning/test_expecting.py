"""When a pod is expected on a node no more, and how many nodes a NodePool makes while one is late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.annotations import text_of
from kerf.model.backoff import Registration
from kerf.model.plan import CreateNodeClaim, Nomination, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.expecting import over
from kerf.provisioning.provision import provision
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
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
        status = replace(own.status, last_pod_event_time=w.NOW - pod_event * MINUTE)
        own = replace(own, status=status)
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


def given_up(*minutes: float, reason: str = "RegistrationFailed") -> tuple[Registration, ...]:
    """NodeClaims that were given up so many minutes ago."""
    rows = sorted(minutes, reverse=True)
    return tuple(
        Registration(claim=f"u{n}", at=w.NOW - ago * MINUTE, reason=reason, message="") for n, ago in enumerate(rows)
    )


def unregistered(name: str) -> NodeClaim:
    made = claim(name, minutes=1, initialized=False)
    conditions = tuple(one for one in made.status.conditions if one.type == "Launched")
    return replace(made, status=replace(made.status, conditions=conditions))


JOINED = Registration(claim="u9", at=w.NOW - MINUTE)


@pytest.mark.parametrize(
    ("latest", "others", "nodes"),
    [
        (given_up(5, 5), (), 1),
        (given_up(5, 5), (unregistered("n2"),), 0),
        (given_up(5, 5), (claim("n2", minutes=15, initialized=True),), 3),
        (given_up(5, 5), (claim("n2", minutes=30, initialized=True),), 1),
        (given_up(5), (), 3),
        (given_up(65, 61), (), 3),
        ((*given_up(9, 5), JOINED), (), 3),
        (given_up(5, 5, reason="LaunchFailed"), (), 3),
    ],
    ids=[
        "two",
        "coming",
        "joined meanwhile",
        "joined before",
        "one",
        "long ago",
        "a later one",
        "launches",
    ],
)
def test_after_nodes_that_did_not_join_a_pool_makes_one_at_a_time(
    latest: tuple[Registration, ...], others: tuple[NodeClaim, ...], nodes: int
) -> None:
    pool = replace(w.pool(), metadata=replace(w.pool().metadata, annotations={labels.REGISTRATIONS: text_of(latest)}))
    full = [ready(one.name, cpu="1") for one in others if one.is_true("Registered")]
    plan = provision(w.world(pool, *others, *full, *w.replicas(3, "web", "3"), batch=BATCH))
    assert len(created(plan)) == nodes
    codes = {refusal.reason.code for refusal in plan.refusals if refusal.subject.startswith("pod/")}
    assert codes == {1: {"NodesNotRegistered"}, 0: {"NoNodePool"}, 3: set()}[nodes]
