"""When a pod is expected on a node no more, and how many nodes a NodePool makes while one is late."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.annotations import text_of
from kerf.model.backoff import Registration
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim, Nomination, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.expecting import over
from kerf.provisioning.provision import provision
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels
from kerf_api.v1.meta import Condition
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


def test_late_nodes_from_before_an_edit_hold_up_no_others() -> None:
    """Two are late; what they lack may be in the NodePool as it is now."""
    notes = {labels.NODEPOOL_HASH: "old", labels.NODEPOOL_HASH_VERSION: "v3"}
    late = [claim("n1", minutes=30, initialized=False), claim("n2", minutes=15, initialized=False)]
    stuck = [replace(one, metadata=replace(one.metadata, annotations=notes)) for one in late]
    pods = w.replicas(3, "web", "3")
    drift = Condition(type="Drifted", status="True", reason="RequirementsDrifted")
    drifted = [replace(one, status=replace(one.status, conditions=(*one.status.conditions, drift))) for one in stuck]
    for hashed, claims, nodes in (("old", stuck, 0), ("new", stuck, 3), ("old", drifted, 3)):
        own = {**notes, labels.NODEPOOL_HASH: hashed}
        pool = replace(w.pool(), metadata=replace(w.pool().metadata, annotations=own))
        plan = provision(w.world(pool, *claims, *(ready(one.name) for one in late), *pods, batch=BATCH))
        assert len(created(plan)) == nodes


def chosen(latest: Sequence[Registration], *pods: Pod) -> set[str]:
    """The pods for which the one node is made."""
    notes = {labels.REGISTRATIONS: text_of(latest)}
    pool = replace(w.pool(), metadata=replace(w.pool().metadata, annotations=notes))
    plan = provision(w.world(pool, *pods, batch=BATCH))
    assert len(created(plan)) == 1
    uids = {nomination.pod_uid for nomination in plan.nominations}
    return {pod.metadata.name for pod in pods if pod.metadata.uid in uids}


PLACES = {"z1": {labels.ZONE: "z1"}, "arm64": {labels.ARCH: "arm64"}}


@pytest.mark.parametrize(("key", "broken", "well"), [(labels.ZONE, "z1", "z2"), (labels.ARCH, "arm64", "amd64")])
def test_the_next_node_is_where_none_has_failed(key: str, broken: str, well: str) -> None:
    """Where only one zone or architecture is broken, a node of another one shows that nodes can join."""
    failed = [replace(one, where=PLACES[broken]) for one in given_up(30, 15)]
    database = w.pod("db", "3", nodeSelector={key: broken}, priority=1000)
    assert chosen(failed, database, w.pod("web", "2", nodeSelector={key: well})) == {"web"}


def test_the_next_node_is_for_pods_whose_nodes_have_not_failed() -> None:
    database, web = w.pod("db", "3"), w.pod("web", "3")
    for first, second in ((database, web), (web, database)):
        failed = [replace(one, pods=(pod_mark(first.metadata.uid),)) for one in given_up(30, 15)]
        assert chosen(failed, database, web) == {second.metadata.name}


def test_of_nodes_that_are_alike_it_is_another_one_after_each_failure() -> None:
    pods = w.replicas(4, "web", "3")
    names = {name for n in range(20) for name in chosen([replace(o, claim=f"c{n}") for o in given_up(30, 15)], *pods)}
    assert names == {pod.metadata.name for pod in pods}
