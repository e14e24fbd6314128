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
        ([("n2", 1, False)], 0, "NodesNotInitialized"),
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


def drifted(made: NodeClaim, ago: float) -> NodeClaim:
    """Since so many minutes."""
    since = w.NOW - ago * MINUTE
    row = Condition(type="Drifted", status="True", reason="SecurityGroupDrift", last_transition_time=since)
    return replace(made, status=replace(made.status, conditions=(*made.status.conditions, row)))


def made_beside(*claims: NodeClaim, latest: tuple[Registration, ...] = (), hashed: str = "old") -> int:
    """How many nodes are made for three pods that need one each and have no place on those of the NodeClaims."""
    notes = {labels.NODEPOOL_HASH: hashed, labels.NODEPOOL_HASH_VERSION: "v3"}
    notes |= {labels.REGISTRATIONS: text_of(latest)} if latest else {}
    pool = replace(w.pool(), metadata=replace(w.pool().metadata, annotations=notes))
    nodes = [ready(one.name, cpu="1") for one in claims if one.is_true("Registered")]
    return len(created(provision(w.world(pool, *claims, *nodes, *w.replicas(3, "web", "3"), batch=BATCH))))


def stuck(name: str, minutes: float) -> NodeClaim:
    """Made and registered so many minutes ago, and not initialized."""
    notes = {labels.NODEPOOL_HASH: "old", labels.NODEPOOL_HASH_VERSION: "v3"}
    found = claim(name, minutes=minutes, initialized=False, annotations=notes)
    return replace(found, metadata=replace(found.metadata, creation_timestamp=w.NOW - minutes * MINUTE))


def test_late_nodes_from_before_an_edit_hold_up_no_others() -> None:
    """What they lack may be in the NodePool as it is now."""
    late = stuck("n1", 40), stuck("n2", 25)
    assert [made_beside(*late, hashed=hashed) for hashed in ("old", "new")] == [0, 3]


def test_after_late_nodes_have_drifted_one_node_tries_what_is_selected_now() -> None:
    late = [drifted(one, 5) for one in (stuck("n1", 40), stuck("n2", 25))]
    working = drifted(claim("n0", minutes=300), 60)
    for beside in ([], [working], [drifted(stuck("n3", 90), 89)]):
        assert made_beside(*late, *beside) == 1
        assert made_beside(*late, *beside, stuck("n4", 3)) == 0
    assert made_beside(*late, claim("n4", minutes=3)) == 3


def test_drift_that_a_node_has_had_before_it_was_late_ends_no_hold() -> None:
    """A controller that alters instances would have NodePools make machines without end."""
    assert made_beside(*(drifted(stuck(f"n{n}", 12), 12) for n in range(3))) == 1
    assert made_beside(*(drifted(stuck(f"n{n}", 40), 40) for n in range(3)), drifted(stuck("n3", 25), 25)) == 0


def test_where_each_node_is_altered_after_a_while_attempts_become_rare() -> None:
    made = [0, 0, 0]
    for now in range(10, 24 * 60, 5):
        ages = [now - at for at in made]
        claims = [stuck(f"n{n}", age) for n, age in enumerate(ages)]
        late = [drifted(one, age - 20) if age >= 20 else one for one, age in zip(claims, ages, strict=True)]
        made += [now] * made_beside(*late)
    assert made == [0, 0, 0, 10, 20, 40, 80, 160, 320, 640, 1280]


def test_a_late_node_is_answered_by_a_newer_one_and_says_nothing_of_later_ones() -> None:
    """One node that stays as it is would else switch the limit off for good."""
    answered = stuck("n1", 6000), claim("n2", minutes=5900)
    assert made_beside(*answered) == 3
    assert made_beside(*answered, *(stuck(name, 12) for name in ("n3", "n4", "n5"))) == 1
    assert made_beside(*answered, stuck("n3", 30), stuck("n4", 15)) == 0
    assert made_beside(*answered, stuck("n3", 30), claim("n4", minutes=15)) == 3


def test_a_late_node_counts_for_a_day() -> None:
    """What has kept it, a broken mirror for example, may have been repaired since."""
    minutes = 24 * 60 + 10
    assert made_beside(stuck("n1", minutes - 1), stuck("n2", minutes - 20)) == 0
    assert made_beside(stuck("n1", minutes), stuck("n2", minutes - 20)) == 1
    assert made_beside(stuck("n1", minutes), stuck("n2", minutes - 20), stuck("n3", 5)) == 0
    assert made_beside(stuck("n1", minutes + 20), stuck("n2", minutes)) == 3


def test_a_newer_node_is_initialized_whether_it_has_drifted_or_not() -> None:
    assert made_beside(stuck("n1", 60), drifted(claim("n2", minutes=20), 19)) == 3


def test_a_node_that_has_drifted_is_on_its_way_like_others() -> None:
    coming = unregistered("n2")
    for one in (coming, drifted(coming, 1)):
        assert made_beside(one, latest=given_up(5, 5)) == 0
        assert made_beside(stuck("n1", 15), one) == 0


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
