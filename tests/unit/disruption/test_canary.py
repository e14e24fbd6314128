"""Which pods stop a change after its canary, the steps of the canary over restarts, and forged annotations."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.cli.answering.pool_page import page
from kerf.disruption.candidates import canary as rules
from kerf.disruption.candidates.approval import Seen, parts_of
from kerf.disruption.candidates.canary import Canary, trial_of
from kerf.disruption.drift import canaries
from kerf.disruption.view import view
from kerf.judgement import troubles
from kerf.judgement.ends import ends_of
from kerf.judgement.pools import why
from kerf.model.annotations import read, text_of
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import PatchObject, Plan
from kerf_api import labels
from kerf_api.v1 import hashes
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import (
    HOUR,
    MINUTE,
    NOW,
    World,
    claim,
    elsewhere,
    never,
    node,
    pairs,
    pool,
    snapshot,
    stamp,
    started,
)

CLASS = decode(
    EC2NodeClass,
    {"metadata": {"name": "default", "uid": "class"}, "status": {"amis": [{"id": "ami-1", "requirements": []}]}},
)
START = NOW - HOUR
SOAK = timedelta(minutes=10)
#: The template of a NodeClaim that has drifted.
HASHED = {labels.NODEPOOL_HASH: "earlier", labels.NODEPOOL_HASH_VERSION: "v3"}


def annotated(**notes: str) -> NodePool:
    """A NodePool with a canary, whose change Kerf has noted."""
    bare = pool(consolidateAfter="Never")
    parts = parts_of(bare, CLASS)
    assert parts is not None
    own = {labels.NODEPOOL_HASH: hashes.nodepool_hash(bare), labels.NODEPOOL_HASH_VERSION: "v3"}
    own |= {labels.SEEN_PLAN: text_of(Seen(parts=parts, since=START)), labels.CANARY_SOAK: "10m", **notes}
    return replace(bare, metadata=replace(bare.metadata, annotations=own))


def digest() -> str:
    found = parts_of(annotated(), CLASS)
    assert found is not None
    return found.digest


DIGEST = digest()


def state(**more: Any) -> Canary:
    row = {"plan": DIGEST, "node": "old", "command": "c", "started": START + MINUTE, **more}
    return Canary(**row)


SOAKED = state(since=NOW - SOAK, replacements=("new",), owners=("uid-web",))


def noted(canary: Canary, **notes: str) -> NodePool:
    return annotated(**{labels.CANARY: text_of(canary), **notes})


def pod(
    name: str,
    on: str,
    *,
    ready: bool = True,
    since: datetime = NOW - 5 * MINUTE,
    created: datetime = START + 2 * MINUTE,
    restarts: int = 0,
    owner: str = "uid-web",
    kind: str = "ReplicaSet",
    namespace: str = "default",
) -> Pod:
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": owner, "controller": True}]
    meta = {"name": name, "namespace": namespace, "uid": name, "creationTimestamp": stamp(created)}
    told = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": stamp(since)}
    status = {"phase": "Running", "conditions": [told], "containerStatuses": [{"name": "m", "restartCount": restarts}]}
    return decode(
        Pod, {"metadata": {**meta, "ownerReferences": owners}, "spec": {"nodeName": f"node-{on}"}, "status": status}
    )


WELL = [pod(f"well-{number}", "other", created=START - HOUR) for number in range(2)]


def next_state(made: NodePool, *objects: Any) -> tuple[Canary | None, Plan]:
    """The annotation that Kerf writes next (None: it stays), and the whole plan."""
    plan = canaries.noted(view(snapshot([made, CLASS, *objects])), made)
    for action in plan.actions:
        if isinstance(action, PatchObject):
            return read(action.patch["metadata"]["annotations"], labels.CANARY, Canary), plan
    return None, plan


def judged(*pods: Pod, canary: Canary = SOAKED) -> tuple[Canary | None, Plan]:
    return next_state(noted(canary), *pairs("new"), *pairs("other"), *pods)


# --- the verdict --------------------------------------------------------------------------------------------------
def test_pods_that_are_ready_let_the_others_follow() -> None:
    after, plan = judged(pod("a", "new"), *WELL)
    assert after is not None
    assert after.passed
    assert [event.reason for event in plan.events] == ["CanaryPassed"]


@pytest.mark.parametrize(
    ("failing", "others"),
    [
        (pod("a", "new", ready=False), WELL),
        (pod("a", "new", restarts=3), WELL),
        (pod("a", "new", ready=False, kind="DaemonSet"), WELL),
        (pod("a", "new", ready=False), [*WELL, pod("b", "other", ready=False, created=START - HOUR)]),
    ],
)
def test_a_pod_that_fails_on_the_canary_alone_stops_the_change(failing: Pod, others: list[Pod]) -> None:
    after, plan = judged(failing, *others)
    assert after is not None
    assert (after.passed, "default/a" in after.failed) == (False, True)
    (event,) = plan.events
    assert (event.type, event.reason) == ("Warning", "CanaryFailed")
    assert f"to continue, set kerf.sh/continued-plan: {DIGEST} on it" in event.message


@pytest.mark.parametrize(
    ("suspect", "others"),
    [
        (pod("a", "new", ready=False), []),
        (pod("a", "new", ready=False), [pod("b", "other", ready=False, created=START - HOUR)]),
        (pod("a", "new", ready=False), [*WELL[:1], pod("b", "other", ready=False, created=START - HOUR)]),
        (pod("a", "new", ready=False, created=START - HOUR), WELL),
        (pod("a", "new", ready=False, kind="Job"), WELL),
        (pod("a", "new", ready=False, namespace="stranger"), WELL),
        (pod("a", "other", ready=False), WELL),
    ],
)
def test_other_failures_stop_no_change(suspect: Pod, others: list[Pod]) -> None:
    after, _ = judged(suspect, *others)
    assert after is not None
    assert after.passed


def test_a_pod_that_may_still_start_delays_the_verdict() -> None:
    after, plan = judged(pod("a", "new", ready=False, since=NOW - MINUTE), *WELL)
    assert (after, plan.actions, plan.next_due) == (None, (), NOW + MINUTE)


def test_without_a_successor_the_pods_that_moved_are_judged() -> None:
    alone = replace(SOAKED, replacements=())
    after, _ = judged(pod("a", "other", ready=False), *WELL, canary=alone)
    assert after is not None
    assert after.failed
    after, _ = judged(pod("a", "other", ready=False, owner="uid-stranger"), *WELL, canary=alone)
    assert after is not None
    assert after.passed


def test_the_soak_time_has_to_be_over() -> None:
    after, plan = judged(pod("a", "new"), *WELL, canary=replace(SOAKED, since=NOW - MINUTE))
    assert (after, plan.next_due) == (None, NOW - MINUTE + SOAK)


# --- steps --------------------------------------------------------------------------------------------------------
def test_one_node_begins_and_is_noted_with_the_controllers_of_its_pods() -> None:
    old = [claim(name, drifted=START, consolidatable=False, annotations=HASHED) for name in ("old", "rest")]
    things = (*old, *map(node, old), *pairs("new", consolidatable=False))
    world = World.of(annotated(), CLASS, *things, pod("a", "old"), pod("b", "rest"), ask=elsewhere("new"))
    begun = started(world.plan())
    assert len(begun) == 1
    world.tick()
    assert started(world.tick()) == []
    after = read(world.objects["nodepool/default"].metadata.annotations, labels.CANARY, Canary)
    assert after is not None
    assert (after.node, after.owners, after.since) == (begun[0], ("uid-web",), None)
    assert started(world.tick()) == []


def test_a_command_that_is_rolled_back_makes_room_for_another_canary() -> None:
    _, plan = next_state(noted(state()), *pairs("old"))
    assert [action.patch for action in plan.actions if isinstance(action, PatchObject)] == [
        {"metadata": {"annotations": {labels.CANARY: None}}}
    ]


def test_the_soak_time_begins_when_the_node_is_gone() -> None:
    after, _ = next_state(noted(state()))
    assert after is not None
    assert after.since == NOW


# --- annotations of strangers -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("notes", "phase"),
    [
        ({}, rules.PENDING),
        ({labels.CANARY: "{"}, rules.PENDING),
        ({labels.CANARY: "[" * 9999}, rules.PENDING),
        ({labels.CANARY: text_of(replace(SOAKED, passed=True, plan="0" * 20))}, rules.PENDING),
        ({labels.CANARY: text_of(replace(SOAKED, passed=True, started=START - HOUR))}, rules.PENDING),
        ({labels.CANARY: text_of(replace(SOAKED, since=NOW + HOUR))}, rules.PENDING),
        ({labels.CANARY: text_of(replace(SOAKED, started=NOW + HOUR))}, rules.PENDING),
        ({labels.CANARY: text_of(SOAKED)}, rules.SOAKING),
        ({labels.CANARY: text_of(replace(SOAKED, passed=True))}, rules.PASSED),
        ({labels.CANARY: text_of(replace(SOAKED, failed="x"))}, rules.FAILED),
        ({labels.CONTINUED_PLAN: DIGEST}, rules.CONTINUED),
        ({labels.CONTINUED_PLAN: DIGEST.upper()}, rules.PENDING),
        ({labels.CANARY_SOAK: "soon"}, rules.PENDING),
        ({labels.CANARY_SOAK: "0s"}, ""),
        ({labels.SEEN_PLAN: "{"}, rules.UNKNOWN),
    ],
)
def test_only_the_state_of_this_change_counts(notes: dict[str, str], phase: str) -> None:
    made = annotated(**notes)
    assert trial_of(view(snapshot([made, CLASS])), made).phase == phase


@pytest.mark.parametrize(
    ("canary", "code", "words"),
    [
        (state(), "AwaitingCanary", "NodeClaim old is replaced first"),
        (replace(SOAKED, since=NOW), "AwaitingCanary", "its pods are observed until 2026-03-04T12:10:00Z"),
        (replace(SOAKED, failed="pod default/a fails"), "CanaryFailed", "pod default/a fails; to continue, set"),
    ],
)
def test_why_names_the_canary(canary: Canary, code: str, words: str) -> None:
    one = claim("a", drifted=START, consolidatable=False)
    found = view(snapshot([noted(canary), CLASS, one, node(one)]))
    drifted = next(end for end in ends_of(found, "a", never) if end.code == "Drifted")
    assert [hold.code for hold in drifted.holds] == [code]
    assert words in drifted.holds[0].text


def test_status_and_why_report_a_failed_canary_with_the_digest() -> None:
    failed = replace(SOAKED, failed="pod default/a fails")
    one = claim("a", drifted=START, consolidatable=False, annotations=HASHED)
    world = World.of(noted(failed), CLASS, one, node(one), ask=never)
    world.settle()
    now = world.snapshot()
    (trouble,) = troubles.unapproved(now.node_pools.values())
    step = f"to continue, set kerf.sh/continued-plan: {DIGEST} on it"
    assert (trouble.object, trouble.code) == ("nodepool/default", "CanaryFailed")
    assert step in trouble.text
    assert step in page(why(now, "default"), NOW)
