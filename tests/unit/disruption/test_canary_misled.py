"""Canaries that something misleads: failures that are not new, lost notes, clocks, owners that tenants invent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from kerf.disruption.candidates import canary as rules
from kerf.disruption.candidates.approval import Seen, parts_of
from kerf.disruption.candidates.canary import Canary, trial_of
from kerf.disruption.command import Command
from kerf.disruption.drift import canaries
from kerf.disruption.view import view
from kerf.model.annotations import read, text_of
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Source
from kerf_api import labels
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.test_canary import (
    CLASS,
    DIGEST,
    HASHED,
    SOAK,
    SOAKED,
    START,
    WELL,
    annotated,
    judged,
    next_state,
    noted,
    pod,
    state,
)
from tests.unit.disruption.worlds import (
    HOUR,
    MINUTE,
    NOW,
    World,
    claim,
    elsewhere,
    node,
    pairs,
    pool,
    snapshot,
    started,
)

LONG_AGO = NOW - 9 * HOUR
#: The annotations in which Kerf keeps a change and its canary.
NOTES = (labels.SEEN_PLAN, labels.CANARY)


def of_release(one: Pod, revision: str) -> Pod:
    own = {**one.metadata.labels, "controller-revision-hash": revision}
    return replace(one, metadata=replace(one.metadata, labels=own))


def passes(*found: Pod, canary: Canary = SOAKED) -> bool:
    after, _ = judged(*found, canary=canary)
    return after is not None and after.passed


def protected(name: str, on: str) -> Pod:
    one = pod(name, on)
    return replace(one, metadata=replace(one.metadata, annotations={labels.DO_NOT_DISRUPT: "true"}))


def drifted(*names: str, **more: Any) -> list[Any]:
    """Claims of the version before, with their nodes."""
    old = [claim(name, drifted=START, consolidatable=False, annotations=HASHED, **more) for name in names]
    return [*old, *map(node, old)]


# --- failures that are not of the new nodes ---------------------------------------------------------------------
def test_a_failing_release_of_a_stateful_set_stops_no_change() -> None:
    new = of_release(pod("a", "new", ready=False, kind="StatefulSet"), "two")
    old = [pod(f"w{n}", "other", kind="StatefulSet", created=START - HOUR) for n in range(2)]
    assert passes(new, *(of_release(one, "one") for one in old))


def test_restarts_are_a_failure_only_where_others_do_not_restart() -> None:
    others = [pod(f"w{n}", "other", restarts=50, created=START - HOUR) for n in range(4)]
    assert passes(pod("a", "new", restarts=3), *others)


def test_a_pod_that_failed_on_the_canary_before_its_replacement_is_not_counted() -> None:
    before = pod("db-0", "old", ready=False, since=LONG_AGO, created=LONG_AGO, kind="StatefulSet")
    well = [pod(f"db-{n}", "new", created=LONG_AGO, kind="StatefulSet") for n in (1, 2)]
    others = [*pairs("new", consolidatable=False), before, *well]
    world = World.of(annotated(), CLASS, *drifted("old", "rest"), *others, ask=elsewhere("new"))
    assert started(world.plan()) == ["old"]
    world.tick()
    world.tick()
    known = read(world.objects["nodepool/default"].metadata.annotations, labels.CANARY, Canary)
    assert known is not None
    later = replace(known, since=NOW - SOAK, started=START + MINUTE, replacements=("new",))
    again = pod("db-0", "new", ready=False, since=NOW - 5 * MINUTE, kind="StatefulSet")
    after, _ = next_state(noted(later), *pairs("new"), again, *well)
    assert after is not None
    assert after.passed


def test_a_daemon_set_that_failed_on_the_canary_before_is_not_counted() -> None:
    was = pod("was", "old", ready=False, since=LONG_AGO, created=LONG_AGO, kind="DaemonSet")
    old = claim("old")
    seen = view(snapshot([noted(SOAKED), CLASS, old, node(old), was]))
    command = Command(id="c", reason="Drifted", started=START + MINUTE, replacements=("new",))
    begun = canaries._begun(seen, trial_of(seen, noted(SOAKED)), old, command)
    theirs = [pod(f"t{n}", "other", kind="DaemonSet", created=LONG_AGO) for n in range(5)]
    fails = pod("a", "new", ready=False, kind="DaemonSet")
    after, _ = next_state(noted(replace(begun, since=NOW - SOAK)), *pairs("new", "other"), *theirs, fails)
    assert after is not None
    assert after.passed


def test_pods_that_fail_everywhere_stop_nothing_without_a_successor() -> None:
    many = [pod(f"n{k}", "other", ready=False) for k in range(9)]
    assert passes(*many, *WELL[:1], canary=replace(SOAKED, replacements=()))


def test_an_owner_that_creates_no_pods_counts_as_none() -> None:
    """Whoever may create pods may name a ConfigMap of their own as the controller."""
    others = [pod(f"w{n}", "other", kind="ConfigMap", owner="cm", namespace="tenant") for n in range(2)]
    fails = pod("p", "new", ready=False, kind="ConfigMap", owner="cm", namespace="tenant")
    assert passes(fails, *others)


# --- a verdict comes ----------------------------------------------------------------------------------------------
def test_pods_that_become_unready_after_the_soak_time_delay_no_verdict() -> None:
    made = noted(replace(SOAKED, since=NOW - HOUR - SOAK, started=START))
    young = pod("a", "new", ready=False, since=NOW - MINUTE)
    after, _ = next_state(made, *pairs("new", "other"), young, *WELL)
    assert after is not None


def test_a_clock_of_a_node_that_is_ahead_delays_no_verdict() -> None:
    made = noted(replace(SOAKED, since=NOW - HOUR, started=START))
    ahead = pod("a", "new", ready=False, since=NOW + 100 * HOUR)
    after, _ = next_state(made, *pairs("new", "other"), ahead, *WELL)
    assert after is not None


def test_the_soak_time_begins_although_the_drain_does_not_end() -> None:
    one = claim("old", drifted=START, consolidatable=False)
    one = replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW - 24 * HOUR))
    after, _ = next_state(noted(state(started=START, replacements=("new",))), one, *pairs("new"))
    assert after is not None
    assert after.since is not None


# --- one node first -----------------------------------------------------------------------------------------------
def test_a_clock_that_is_set_back_begins_no_second_canary() -> None:
    parts = parts_of(annotated(), CLASS)
    assert parts is not None
    seen = Seen(parts=parts, since=NOW + 4 * MINUTE)
    names = [f"old{k}" for k in range(4)]
    made = annotated(**{labels.SEEN_PLAN: text_of(seen)})
    others = [*pairs("new", consolidatable=False), *(pod(f"p{name}", name) for name in names)]
    world = World.of(made, CLASS, *drifted(*names), *others, ask=elsewhere("new"))
    begun = [name for _ in range(12) for name in started(world.tick())]
    assert len(begun) <= 1


def test_no_canary_is_deleted_before_it_is_noted() -> None:
    """Writes of NodePools fail, those of NodeClaims do not."""
    names = [f"old{k}" for k in range(4)]
    others = [*pairs("new", consolidatable=False), *(pod(f"p{name}", name) for name in names)]
    world = World.of(annotated(), CLASS, *drifted(*names), *others, ask=elsewhere("new"))
    for _ in range(60):
        world.perform([action for action in world.plan().actions if not action.lane.startswith("nodepool/")])
        world.now += timedelta(seconds=5)
        world.facts["fresh_at"] = dict.fromkeys(Source, world.now)
    assert not any(world.objects[f"nodeclaim/{name}"].metadata.deleting for name in names)


def test_a_node_whose_pods_hold_its_drain_is_not_the_canary_beside_a_free_one() -> None:
    old = drifted("a", "b", terminationGracePeriod="24h")
    others = [*pairs("new", consolidatable=False), protected("p", "a"), pod("q", "b")]
    assert started(World.of(annotated(), CLASS, *old, *others, ask=elsewhere("new")).plan()) == ["b"]


def test_an_empty_node_is_no_canary_while_others_are_blocked() -> None:
    others = [*pairs("new", consolidatable=False), protected("p", "a")]
    assert started(World.of(annotated(), CLASS, *drifted("a", "b"), *others, ask=elsewhere("new")).plan()) == []


# --- notes --------------------------------------------------------------------------------------------------------
def test_a_failure_whose_note_is_lost_is_read_from_the_condition() -> None:
    made = annotated()
    digest = trial_of(view(snapshot([made, CLASS])), made).digest
    message = f"plan {digest}: after NodeClaim old was replaced, pod x fails"
    told = Condition(type="CanaryPassed", status="False", reason="CanaryFailed", message=message)
    made = replace(made, status=replace(made.status, conditions=(*made.status.conditions, told)))
    assert trial_of(view(snapshot([made, CLASS])), made).phase == rules.FAILED


def reported(reason: str, words: str) -> NodePool:
    """A NodePool whose note of the canary is lost, with the condition of this phase."""
    made = annotated()
    digest = trial_of(view(snapshot([made, CLASS])), made).digest
    told = Condition(type="CanaryPassed", status="False", reason=reason, message=f"plan {digest}: {words}")
    return replace(made, status=replace(made.status, conditions=(*made.status.conditions, told)))


def successor(name: str, of: str) -> list[Any]:
    one = claim(name, consolidatable=False, annotations={labels.REPLACES: of})
    return [one, node(one)]


def test_a_lost_note_of_a_soak_time_starts_it_over_and_keeps_the_successors() -> None:
    made = reported("Soaking", "NodeClaim old was replaced; its pods are observed until 2026-03-04T12:10:00Z")
    assert trial_of(view(snapshot([made, CLASS])), made).phase == rules.SOAKING
    after, _ = next_state(made, *successor("new", "old"), *pairs("other"))
    assert after is not None
    assert (after.node, after.replacements, after.since, after.passed) == ("old", ("new",), NOW, False)


def test_a_successor_in_another_nodepool_is_found_again() -> None:
    lost = reported("Soaking", "NodeClaim old was replaced; its pods are observed until 2026-03-04T12:30:00Z")
    one = claim("new", pool_name="heavier", consolidatable=False, annotations={labels.REPLACES: "old"})
    restored, _ = next_state(lost, pool("heavier"), one, node(one), *pairs("other"))
    assert restored is not None
    assert restored.replacements == ("new",)


def test_pods_from_before_the_loss_of_the_note_are_judged() -> None:
    made = noted(replace(SOAKED, started=NOW - SOAK, since=NOW - SOAK))
    early = pod("a", "new", ready=False, created=NOW - 30 * MINUTE)
    old = [claim("new"), *pairs("other")]
    after, _ = next_state(made, *old, node(old[0]), early, *WELL)
    assert after is not None
    assert "default/a" in after.failed


def test_a_lost_note_of_a_replacement_is_restored_while_the_node_leaves() -> None:
    made = reported("Replacing", "NodeClaim old is replaced first")
    one = claim("old", drifted=START, consolidatable=False)
    going = replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW - MINUTE))
    after, _ = next_state(made, going, *successor("new", "old"))
    assert after is not None
    assert (after.node, after.replacements, after.since) == ("old", ("new",), None)
    gone, _ = next_state(made, *successor("new", "old"))
    assert gone is not None
    assert gone.since == NOW
    assert trial_of(view(snapshot([made, CLASS, one, node(one)])), made).phase == rules.PENDING


def test_notes_that_are_removed_again_and_again_let_no_second_node_go() -> None:
    names = [f"old{k}" for k in range(4)]
    others = [*pairs("new", consolidatable=False), *(pod(f"p{name}", name) for name in names)]
    world = World.of(annotated(), CLASS, *drifted(*names), *others, ask=elsewhere("new"))
    begun = []
    for minute in range(60):
        world.now = NOW + minute * MINUTE
        world.facts["fresh_at"] = dict.fromkeys(Source, world.now)
        for _ in range(4):
            begun += started(world.tick())
        for name in [one for one in begun if f"nodeclaim/{one}" in world.objects]:
            del world.objects[f"nodeclaim/{name}"], world.objects[f"node/node-{name}"]
        if minute % 9 == 8:
            one = world.objects["nodepool/default"]
            kept = {key: text for key, text in one.metadata.annotations.items() if key not in NOTES}
            world.objects["nodepool/default"] = replace(one, metadata=replace(one.metadata, annotations=kept))
    assert len(begun) == 1


def test_budgets_are_not_the_reason_while_the_canary_is_not_known() -> None:
    parts = parts_of(annotated(), CLASS)
    assert parts is not None
    made = annotated(**{labels.SEEN_PLAN: text_of(Seen(parts=parts, since=NOW + 4 * MINUTE))})
    world = World.of(made, CLASS, *drifted("old"), ask=elsewhere("new"))
    world.tick()
    rows = world.objects["nodepool/default"].status.conditions
    assert [(row.status, row.reason) for row in rows if row.type == "UpToDate"] == [("False", "AwaitingCanary")]


def test_a_failure_is_over_when_no_node_has_drifted() -> None:
    failed = noted(replace(SOAKED, failed="pod default/a fails"))
    there = view(snapshot([failed, CLASS]))
    (row,) = canaries.with_condition(there, failed, (), 0)
    assert (row.status, row.reason) == ("True", "NothingToReplace")
    (row,) = canaries.with_condition(there, failed, (), 1)
    assert (row.status, row.reason) == ("False", "CanaryFailed")


def test_a_clock_that_is_set_back_while_pods_are_observed_begins_no_second_canary() -> None:
    ahead = noted(state(started=NOW + 10 * MINUTE, since=NOW + 20 * MINUTE, replacements=("new",)))
    told = reported("Soaking", "NodeClaim old was replaced; its pods are observed until 2026-03-04T12:30:00Z")
    made = replace(ahead, status=told.status)
    names = [f"old{number}" for number in range(3)]
    others = [*pairs("new", consolidatable=False), *(pod(f"p{name}", name) for name in names)]
    world = World.of(made, CLASS, *drifted(*names), *others, ask=elsewhere("new"))
    assert [name for _ in range(6) for name in started(world.tick())] == []


def test_a_digest_in_the_name_of_a_pod_is_no_failure_of_that_change() -> None:
    words = f"after NodeClaim x was replaced, pod t/{DIGEST}-a fails while most other pods of its controller are ready"
    made = reported("CanaryFailed", words)
    (told,) = [one for one in made.status.conditions if one.type == "CanaryPassed"]
    of_another = replace(told, message=told.message.replace(f"plan {DIGEST}:", "plan 0123456789abcdef0123:"))
    made = replace(made, status=replace(made.status, conditions=(of_another,)))
    assert trial_of(view(snapshot([made, CLASS])), made).phase == rules.PENDING


def test_a_failure_keeps_the_names_of_its_pods_without_its_note() -> None:
    words = "after NodeClaim old was replaced, pod default/a fails while most other pods of its controller are ready"
    made = reported("CanaryFailed", words)
    rows = canaries.with_condition(view(snapshot([made, CLASS])), made, made.status.conditions, 2)
    (told,) = [one for one in rows if one.type == "CanaryPassed"]
    assert words in told.message


def test_a_forged_failure_makes_no_condition_that_the_api_server_refuses() -> None:
    made = noted(replace(SOAKED, failed="x" * 100_000))
    rows = canaries.with_condition(view(snapshot([made, CLASS])), made, (), 1)
    assert all(len(row.message) <= 32768 for row in rows)


def test_failures_from_before_the_canary_stay_known_without_the_note() -> None:
    """The controller of a pod that fails elsewhere since long ago; one that fails only since then is no such one."""
    made = reported("Soaking", "NodeClaim old was replaced; its pods are observed until 2026-03-04T12:10:00Z")
    heirs = [replace(one, metadata=replace(one.metadata, creation_timestamp=START)) for one in successor("new", "old")]
    ill = pod("ill", "other", ready=False, since=LONG_AGO, created=LONG_AGO, owner="uid-ill")
    late = pod("late", "other", ready=False, since=NOW - 5 * MINUTE, created=LONG_AGO, owner="uid-late")
    fails = pod("fails", "new", ready=False, since=NOW - 5 * MINUTE, owner="uid-new")
    after, _ = next_state(made, *heirs, *pairs("other"), ill, late, fails, *WELL)
    assert after is not None
    assert after.unwell == ("uid-ill",)
