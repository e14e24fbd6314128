"""Actions that fail: what is counted, since when, and when it is forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.model.aws.cloud import FleetRequest
from kerf.model.failures import PROPOSE, key, launch
from kerf.model.kinds import NODE_CLAIM, NODE_POOL, Ref
from kerf.model.plan import (
    CreateNodeClaim,
    EnsureInstanceProfile,
    EvictPod,
    LaunchInstances,
    Reason,
    TagInstance,
    TerminateInstance,
)
from kerf.ports import AlreadyGone, Conflict, EvictionBlocked, Forbidden, Invalid, NotLeading, Unavailable
from kerf.runtime.act.results import absorb, known_of
from kerf.runtime.inbox import ChoreFailed, ChoreRecovered, Done, Reported
from kerf.runtime.state.failures import FORGOTTEN_AFTER, Failures
from kerf_api import labels
from tests.unit.disruption.worlds import claim, pool
from tests.unit.runtime.test_own_writes import NOW, after, state

EVICT = EvictPod(ref=Ref("Pod", "d", "a"), uid="u", reason=Reason("Test"))
KEY = key("EvictPod", "pod/d/a")


def done(outcome: str, seconds: float = 0, error: Exception | None = None, action: Any = EVICT) -> Done:
    return Done(action, outcome, after(seconds), error=error)


def test_attempts_are_counted_since_the_first_one() -> None:
    known = state()
    absorb(done("ok", -121), known)
    for seconds in (0, 5, 9):
        absorb(done("forbidden", seconds, Forbidden(f"no, at {seconds}")), known)
    found = known.snapshot(after(10)).failures[KEY]
    assert (found.times, found.since, found.latest, found.error) == (3, NOW, after(9), "no, at 9")
    assert (
        found.standing(after(60))
        == "EvictPod is forbidden: no, at 9 (3 attempts, since 2026-01-01T00:00:00Z, 1m0s ago)"
    )


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        ("ok", None),
        ("gone", AlreadyGone("x")),
        ("blocked", EvictionBlocked("a budget")),
        ("conflict", Conflict("x")),
    ],
)
def test_an_answer_that_is_no_failure_ends_it(outcome: str, error: Exception | None) -> None:
    known = state()
    absorb(done("forbidden", error=Forbidden("no")), known)
    absorb(done(outcome, 1, error), known)
    assert not known.snapshot(after(2)).failures


@pytest.mark.parametrize(("seconds", "least"), [(120, True), (121, False)])
def test_a_failure_soon_after_the_first_action_may_be_older(seconds: float, least: bool) -> None:
    """Another leader may have met it, too: what fails is tried again within two minutes."""
    other = EvictPod(ref=Ref("Pod", "d", "b"), uid="u", reason=Reason("Test"))
    known = state()
    absorb(done("ok", action=other), known)
    for later in (0, 5):
        absorb(done("forbidden", seconds + later, Forbidden("no")), known)
    found = known.snapshot(after(seconds + 6)).failures[KEY]
    assert (found.at_least, found.since) == (least, after(seconds))
    assert ("since at least 2026" in found.standing(after(seconds + 6))) is least


def test_a_standby_reads_and_does_not_act_before_it_leads() -> None:
    known = state()
    known.take(ChoreRecovered("queue", NOW), NOW)
    absorb(done("forbidden", 3600, Forbidden("no")), known)
    known.take(ChoreFailed("queue", Unavailable("no"), after(3600)), after(3600))
    found = known.snapshot(after(3601)).failures
    assert {one.verb: one.at_least for one in found.values()} == {"EvictPod": True, "Read": False}


@pytest.mark.parametrize("outcome", ["not_leading", "stale_source"])
def test_an_action_that_was_not_tried_says_nothing(outcome: str) -> None:
    known = state()
    absorb(done(outcome, error=NotLeading("x")), known)
    assert not known.snapshot(NOW).failures
    absorb(done("forbidden", error=Forbidden("no")), known)
    absorb(done(outcome, 1, NotLeading("x")), known)
    assert KEY in known.snapshot(after(2)).failures


def test_it_is_forgotten_with_its_object_and_when_it_is_not_tried_any_more() -> None:
    known = state()
    absorb(done("forbidden", error=Forbidden("no")), known)
    assert KEY in known.snapshot(NOW + FORGOTTEN_AFTER).failures
    assert not known.snapshot(NOW + FORGOTTEN_AFTER + timedelta(seconds=1)).failures
    absorb(done("forbidden", error=Forbidden("no")), known)
    known.drop(EVICT.ref, NOW)
    assert not known.snapshot(NOW).failures


def test_it_is_about_the_object_of_the_action() -> None:
    ensure = EnsureInstanceProfile(class_name="c", profile="p", role="r", path="/", tags={}, reason=Reason("Test"))
    known = state()
    absorb(done("forbidden", error=Forbidden("no"), action=ensure), known)
    (found,) = known.snapshot(NOW).failures.values()
    assert (found.verb, found.object) == ("EnsureInstanceProfile", "ec2nodeclass/c")


def test_a_nodeclaim_that_cannot_be_created_is_a_matter_of_its_nodepool() -> None:
    known, own = state(), pool("p")
    known.put(NODE_POOL, own, NOW)
    create = CreateNodeClaim(claim=claim("a", pool_name="p"), reason=Reason("Test"))
    assert known_of(create, known) == own
    assert known_of(EVICT, known) is None


def test_launches_fail_by_nodepool_until_one_succeeds() -> None:
    """Each attempt is a fleet of its own: of one that is given up no success is ever heard."""
    known = state()
    for seconds, group, outcome in ((0, "a", "forbidden"), (9, "b", "forbidden"), (18, "c", "ok")):
        (pools,) = {one.object for one in known.snapshot(after(seconds)).failures.values()} or {""}
        assert pools == ("nodepool/p" if seconds else "")
        tags = {labels.TAG_NODEPOOL: "p"}
        call = FleetRequest(group=group, capacity_type="spot", members=("x",), templates=(), overrides=(), tags=tags)
        one = LaunchInstances(request=call, claims=("x",), reason=Reason("Test"))
        absorb(done(outcome, seconds, Forbidden("no") if outcome == "forbidden" else None, one), known)
        found = launch(known.snapshot(after(seconds)).failures, "p")
        assert (found.times if found else 0) == {0: 1, 9: 2, 18: 0}[seconds]


def test_what_fails_with_an_instance_is_reported_at_its_nodeclaim() -> None:
    known, own = state(), claim("a")
    known.put(NODE_CLAIM, own, NOW)
    for one in (
        TagInstance(instance_id=own.assigned_instance, tags={}, reason=Reason("Test")),
        TerminateInstance(instance_id=own.assigned_instance, reason=Reason("Test")),
    ):
        assert known_of(one, known) == own
    assert known_of(TerminateInstance(instance_id="i-other", reason=Reason("Test")), known) is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Forbidden("no"), "forbidden"), (Invalid("wrong"), "invalid"), (Unavailable("slow"), "unavailable")],
)
def test_a_read_of_aws_that_fails_is_known_until_it_succeeds(error: Exception, outcome: str) -> None:
    known = state()
    for seconds in (0, 5):
        known.take(ChoreFailed("spot prices", error, after(seconds)), after(seconds))
    (found,) = known.snapshot(after(6)).failures.values()
    assert (found.verb, found.object, found.outcome, found.times) == ("Read", "aws/spot-prices", outcome, 2)
    known.take(ChoreRecovered("spot prices", after(9)), after(9))
    assert not known.snapshot(after(9)).failures


# --- reports of parts ---------------------------------------------------------------------------------------------
def test_the_end_of_a_failure_that_was_not_read_yet_is_new() -> None:
    """Its success would be dropped, and the failure would count for five minutes."""
    known = Failures()
    failure, end = Reported.of(PROPOSE, Unavailable("x"), NOW), Reported.of(PROPOSE, None, after(1))
    assert [known.is_new(news) for news in (end, failure, end, end)] == [False, True, True, False]
    known.read(failure)
    assert known.is_new(end)
    known.read(end)
    assert known.at(after(2)) == {}
    assert not known.is_new(end)
