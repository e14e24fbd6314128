"""Expiration and interruption: what must go, without budgets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import disrupt
from kerf.disruption.forced.expiration import LEAD, end_of, expire
from kerf.disruption.forced.interruption import interrupt
from kerf.model import ends
from kerf.model.aws.cloud import Instance
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.ends import HELD
from kerf.model.memory import Memory, Turn
from kerf.model.plan import DeleteMessage, DeleteObject, PatchObject, Source
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus, ResolvedReservation
from kerf_api.v1.meta import Condition, ObjectMeta
from tests.unit.disruption.worlds import HOUR, NOW, claim, never, node, pod, pool, snapshot, torn

MINUTE = timedelta(minutes=1)
#: A cluster in which Kerf has always led.
KERF = snapshot([])


def looked(objects: Iterable[Any]) -> Turn:
    return Memory().turn(snapshot(objects))


# --- expiration -------------------------------------------------------------------------------------------------
def test_a_claim_goes_when_its_time_has_come_and_not_before() -> None:
    old, young = (claim(n, since=NOW - age, expireAfter="30m") for n, age in (("old", 30 * MINUTE), ("young", MINUTE)))
    plan = expire(looked([old, young]))
    assert [(a.ref.name, a.reason.code) for a in plan.actions if isinstance(a, DeleteObject)] == [("old", "Expired")]
    assert plan.next_due is not None
    assert young.metadata.creation_timestamp is not None
    assert young.metadata.creation_timestamp + 27 * MINUTE <= plan.next_due <= NOW + 29 * MINUTE


def test_never_and_deleting_and_foreign_claims_are_left_alone() -> None:
    kept = claim("kept", since=NOW - 9000 * HOUR, expireAfter="Never")
    going = claim("going", since=NOW - 9000 * HOUR)
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW))
    foreign = claim("x", since=NOW - 9000 * HOUR, nodeClassRef={"group": "other.io", "kind": "Thing", "name": "x"})
    plan = expire(looked([kept, going, foreign]))
    assert plan.actions == ()
    assert plan.next_due is None


def test_jitter_is_early_by_at_most_a_tenth_and_differs_between_claims() -> None:
    full = NOW + 720 * HOUR
    born = [claim(f"c{i}", since=NOW) for i in range(50)]
    ends = [end for end in (end_of(KERF, c, full) for c in born) if end is not None]
    assert all(full - 72 * HOUR <= end.prepared_from < end.at <= full for end in ends)
    assert {end.at - end.prepared_from for end in ends} == {LEAD}
    assert len(set(ends)) == len(ends) == 50
    assert ends == [end_of(KERF, c, full) for c in born]


def test_a_short_life_has_no_jitter_and_a_twentieth_of_it_to_make_a_successor_ready() -> None:
    end = end_of(KERF, claim("short", since=NOW, expireAfter="40m"), NOW + HOUR)
    assert end is not None
    assert (end.prepared_from, end.at) == (NOW + 38 * MINUTE, NOW + 40 * MINUTE)


def test_long_before_its_end_a_claim_is_looked_at_when_that_may_begin_at_the_earliest() -> None:
    born = claim("a", since=NOW)
    early, late = end_of(KERF, born, NOW), end_of(KERF, born, NOW + 700 * HOUR)
    assert early is not None
    assert late is not None
    assert early.prepared_from == NOW + 648 * HOUR <= late.prepared_from


# --- NodeClaims of another controller ---------------------------------------------------------------------------
def ends_of(name: str, age: timedelta, **facts: Any) -> tuple[timedelta, timedelta | None]:
    """How long from now until a NodeClaim that was taken over goes, and until no budget counts any more."""
    end = end_of(snapshot([], **facts), claim(name, since=NOW - age, expireAfter="480h", taken_over=True), NOW)
    assert end is not None
    return end.at - NOW, None if end.latest is None else end.latest - NOW


@pytest.mark.parametrize("hours", [1, 445, 472, 479])
def test_a_claim_that_was_taken_over_goes_when_its_life_is_over_and_not_before(hours: int) -> None:
    left = (480 - hours) * HOUR
    assert ends_of("a", hours * HOUR, leading_since=NOW - MINUTE) == (left, left)


@pytest.mark.parametrize(
    ("late", "since", "latest"),
    [
        (14 * HOUR, NOW - MINUTE, 24 * HOUR - MINUTE),
        (400 * HOUR, NOW - MINUTE, 24 * HOUR - MINUTE),
        (400 * HOUR, NOW - 23 * HOUR, HOUR),
        (400 * HOUR, NOW - 30 * HOUR, -6 * HOUR),
        (14 * HOUR, NOW - 23 * HOUR, -14 * HOUR),  # it expired while Kerf led
        (14 * HOUR, None, None),
    ],
)
def test_a_claim_that_had_expired_when_kerf_began_to_lead_waits_for_budgets_for_a_day(
    late: timedelta, since: datetime | None, latest: timedelta | None
) -> None:
    assert ends_of("a", 480 * HOUR + late, leading_since=since) == (-late, latest)


def test_such_a_claim_is_deleted_when_the_day_is_over_and_due_then() -> None:
    old = claim("old", since=NOW - 520 * HOUR, expireAfter="480h", taken_over=True)
    plan = expire(Memory().turn(snapshot([old], leading_since=NOW - 23 * HOUR)))
    assert (plan.actions, plan.next_due) == ((), NOW + HOUR)
    plan = expire(Memory().turn(snapshot([old], leading_since=NOW - 24 * HOUR)))
    assert [a.ref.name for a in plan.actions if isinstance(a, DeleteObject)] == ["old"]


def test_with_budgets_for_all_nothing_is_forced() -> None:
    settings = Settings("test", expire_within_budgets=True)
    assert ends_of("a", 600 * HOUR, leading_since=NOW - 90 * HOUR, settings=settings)[1] is None


def test_a_claim_that_kerf_launched_has_its_own_end_whoever_led_before() -> None:
    own = claim("own", since=NOW - 500 * HOUR, expireAfter="480h")
    end = end_of(snapshot([own], leading_since=NOW), own, NOW)
    assert end is not None
    assert not end.paced
    assert end.at < NOW - 20 * HOUR


def test_a_malformed_life_is_refused_and_others_go_on() -> None:
    plan = expire(looked([claim("bad", expireAfter="soon"), claim("old", expireAfter="1s")]))
    assert [r.subject for r in plan.refusals] == ["nodeclaim/bad"]
    assert len(plan.actions) == 1


def test_a_claim_that_was_read_only_in_part_does_not_expire() -> None:
    """Its `expireAfter` may be what could not be read, and was taken for the default."""
    old = torn(claim("old", since=NOW - 9000 * HOUR))
    assert expire(looked([old])).actions == ()


@pytest.mark.parametrize(("state", "ends"), [("active", []), ("expiring", ["held"])])
def test_what_is_in_a_capacity_block_goes_before_that_ends(state: str, ends: list[str]) -> None:
    """What is in another reservation, or in none, stays."""
    claims = [claim(name, since=NOW - HOUR, expireAfter="Never") for name in ("held", "other", "bought")]
    for place, id_ in ((0, "cr-1"), (1, "cr-2")):
        meta = claims[place].metadata
        claims[place] = replace(
            claims[place], metadata=replace(meta, labels={**meta.labels, labels.RESERVATION_ID: id_})
        )
    row = ResolvedReservation(
        availability_zone="z",
        id="cr-1",
        instance_match_criteria="targeted",
        instance_type="m5.large",
        owner_id="123456789012",
        reservation_type="capacity-block",
        state=state,
    )
    own = EC2NodeClass(metadata=ObjectMeta(name="default"), status=EC2NodeClassStatus(capacity_reservations=(row,)))
    plan = expire(looked([*claims, own]))
    assert [a.ref.name for a in plan.actions if isinstance(a, DeleteObject)] == ends
    assert all(a.reason.code == "CapacityBlockExpiring" for a in plan.actions)


# --- interruption -----------------------------------------------------------------------------------------------
def message(kind: InterruptionKind, *instances: str, id_: str = "m") -> Interruption:
    return Interruption(kind, instances, Message(id_, "receipt", "{}"))


def acts(found: Interruption, *objects: Any, **facts: Any) -> list[str]:
    return [a.key for a in interrupt(snapshot(objects, interruptions=(found,), **facts)).actions]


@pytest.mark.parametrize(
    ("kind", "event", "code"),
    [
        (InterruptionKind.SPOT_INTERRUPTED, "SpotInterrupted", "SpotInterrupted"),
        (
            InterruptionKind.CAPACITY_RESERVATION_INTERRUPTED,
            "CapacityReservationInstanceInterrupted",
            "CapacityReservationInterrupted",
        ),
        (InterruptionKind.SCHEDULED_CHANGE, "InstanceUnhealthy", "ScheduledChange"),
        (InterruptionKind.INSTANCE_STOPPED, "InstanceStopping", "InstanceStopped"),
        (InterruptionKind.INSTANCE_TERMINATED, "InstanceTerminating", "InstanceTerminated"),
    ],
)
def test_a_message_ends_the_claim_first_and_is_deleted_only_when_that_shows(
    kind: InterruptionKind, event: str, code: str
) -> None:
    a = claim("a")
    plan = interrupt(snapshot([a, node(a)], interruptions=(message(kind, "i-a"),)))
    assert [(a.key, a.reason.code) for a in plan.actions] == [("DeleteObject nodeclaim/a", code)]
    told = {(e.ref.kind, e.reason, e.type) for e in plan.events}
    both = ("Node", "NodeClaim")
    assert told == {(k, r, "Warning") for k in both for r in (event, "TerminatingOnInterruption")}
    gone = replace(a, metadata=replace(a.metadata, deletion_timestamp=NOW))
    assert acts(message(kind, "i-a"), gone) == ["DeleteMessage message/m"]


@pytest.mark.parametrize("ago", [timedelta(0), HOUR])
def test_a_claim_whose_end_is_held_up_is_noted_before_the_message_is_deleted(ago: timedelta) -> None:
    """EC2 waits for nobody: by the note the deletion guard lets it go, however long ago it was deleted."""
    waits = Condition(type=HELD, status="True", reason="TooMany")
    a = claim("a")
    gone = replace(a.metadata, deletion_timestamp=NOW - ago)
    held = replace(a, metadata=gone, status=replace(a.status, conditions=(*a.status.conditions, waits)))
    assert acts(message(InterruptionKind.SPOT_INTERRUPTED, "i-a"), held) == ["NoteEnd nodeclaim/a"]
    assert acts(message(InterruptionKind.REBALANCE_RECOMMENDATION, "i-a"), held) == ["DeleteMessage message/m"]
    (noting,) = interrupt(snapshot([held], interruptions=(message(InterruptionKind.SPOT_INTERRUPTED, "i-a"),))).actions
    assert isinstance(noting, PatchObject)
    noted = replace(held, metadata=replace(gone, **noting.patch["metadata"]))
    assert ends.by_us(noted)
    assert acts(message(InterruptionKind.SPOT_INTERRUPTED, "i-a"), noted) == ["DeleteMessage message/m"]


def test_a_recommendation_is_told_and_nothing_else() -> None:
    a = claim("a")
    plan = interrupt(snapshot([a], interruptions=(message(InterruptionKind.REBALANCE_RECOMMENDATION, "i-a"),)))
    assert [type(a) for a in plan.actions] == [DeleteMessage]
    assert [(e.reason, e.type) for e in plan.events] == [("SpotRebalanceRecommendation", "Normal")]


def test_unknown_instances_and_kinds_are_taken_off_the_queue() -> None:
    assert acts(message(InterruptionKind.SPOT_INTERRUPTED, "i-z"), claim("a")) == ["DeleteMessage message/m"]
    assert acts(message(InterruptionKind.NO_OP, "i-a"), claim("a")) == ["DeleteMessage message/m"]


def test_a_message_stays_while_claims_are_not_known_completely() -> None:
    assert acts(message(InterruptionKind.SPOT_INTERRUPTED, "i-z"), fresh_at={Source.PODS: NOW}) == []


def test_a_message_stays_while_its_instance_waits_for_a_claim() -> None:
    waiting = claim("w", annotations={labels.LAUNCH_GROUP: "g1"})
    waiting = replace(waiting, status=replace(waiting.status, provider_id=""))
    own = Instance("i-n", "m5.large", "us-west-2a", "running", "spot", NOW, tags={labels.LAUNCH_GROUP: "g1"})
    assert acts(message(InterruptionKind.SPOT_INTERRUPTED, "i-n"), waiting, instances={"i-n": own}) == []
    chosen = replace(waiting, metadata=replace(waiting.metadata, annotations={labels.INSTANCE: "i-n"}))
    assert acts(message(InterruptionKind.SPOT_INTERRUPTED, "i-n"), chosen) == ["DeleteObject nodeclaim/w"]


def test_a_message_that_makes_no_sense_holds_up_no_other() -> None:
    nonsense: Any = (7,)
    found = (
        message(InterruptionKind.SPOT_INTERRUPTED, *nonsense, "i-a", id_="odd"),
        message(InterruptionKind.SPOT_INTERRUPTED, "i-a"),
    )
    plan = interrupt(snapshot([claim("a")], interruptions=found))
    assert [a.key for a in plan.actions] == ["DeleteObject nodeclaim/a"]
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("message/odd", "InternalError")]
    assert plan.next_due is not None


def test_several_messages_about_one_instance_end_it_once() -> None:
    found = (
        message(InterruptionKind.SPOT_INTERRUPTED, "i-a", id_="1"),
        message(InterruptionKind.INSTANCE_STOPPED, "i-a", "i-b", id_="2"),
    )
    plan = interrupt(snapshot([claim("a"), claim("b")], interruptions=found))
    assert [a.key for a in plan.actions] == ["DeleteObject nodeclaim/a", "DeleteObject nodeclaim/b"]


def test_what_is_ended_by_force_is_not_also_disrupted_and_uses_up_budget() -> None:
    a, b = claim("a", expireAfter="1m"), claim("b")
    own = pool(budgets=[{"nodes": "1"}])
    plan = disrupt(snapshot([own, a, node(a), b, node(b), pod("log", "a", owner="DaemonSet")]), never)
    assert [a.key for a in plan.actions] == ["DeleteObject nodeclaim/a"]
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("node/node-b", "Budget")]
