"""When the slow half need not be asked: nothing differs but times of reading, and its answer has not run out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.aws.accounts import Accounts
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.cluster import FACTS
from kerf.model.kubernetes.objects import Node, NodeCondition, NodeStatus
from kerf.model.settings import Settings
from kerf.model.snapshot import Proposal, Snapshot
from kerf.runtime.inbox import Changed, Proposed, Removed
from kerf.runtime.repetition import REST_AFTER, UNCONSIDERED, Repetition
from kerf.runtime.state.changes import Changes
from kerf.runtime.state.state import State
from kerf_api.v1.meta import ObjectMeta

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = NOW + timedelta(minutes=10)
SNAPSHOT = Snapshot(now=NOW, settings=Settings(cluster_name="c"))


def _answered(until: datetime | None = UNTIL, made_at: datetime = NOW) -> Repetition:
    repetition = Repetition(NOW)
    repetition.asked(SNAPSHOT)
    repetition.answered(Proposed((), made_at, until=until))
    return repetition


def _later(seconds: float = 10.0) -> Snapshot:
    return replace(SNAPSHOT, now=NOW + timedelta(seconds=seconds))


def test_the_same_question_need_not_be_asked() -> None:
    assert _answered().same(_later(), Changes())


@pytest.mark.parametrize(
    "repetition",
    [
        lambda: Repetition(NOW),
        lambda: _answered(None),
        lambda: _answered(made_at=NOW - timedelta(seconds=10)),
        lambda: _answered(NOW + timedelta(seconds=10)),
    ],
    ids=["never asked", "an answer that may change", "no answer to this question", "an answer that has run out"],
)
def test_without_an_answer_that_counts_it_is_asked(repetition: Callable[[], Repetition]) -> None:
    assert not repetition().same(_later(), Changes())


def test_what_was_forgotten_is_asked() -> None:
    repetition = _answered()
    repetition.forget()
    assert not repetition.same(_later(), Changes())


def test_after_a_clock_is_set_back_it_is_asked() -> None:
    assert not _answered().same(_later(-10), Changes())


@pytest.mark.parametrize(
    "changed",
    [
        {"not_before": {"nodepool/a": NOW}},
        {"buffer_pods": {"node/a": 1}},
        {"out_of_stock": {("m5.large", "a", "spot"): NOW}},
        {"settings": Settings(cluster_name="c", preference_policy="Ignore")},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_fact_is_another_question(changed: dict[str, Any]) -> None:
    assert not _answered().same(replace(_later(), **changed), Changes())


def test_times_of_reading_make_no_other_question() -> None:
    at = NOW + timedelta(seconds=5)
    assert _answered().same(replace(_later(), examined_at=at, resolved_at={"default": at}), Changes())


def test_interruptions_and_accounts_make_no_other_question() -> None:
    accounts = Accounts({}, {"general": (NOW, 5)})
    interruptions = (Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-1",), Message("m", "r", "{}")),)
    assert _answered().same(replace(_later(), interruptions=interruptions, accounts=accounts), Changes())


def _proposal(made_at: datetime) -> Proposal:
    return Proposal("a", "Underutilized", "delete", ("node/a",), (), 5, {}, made_at=made_at)


def test_proposals_that_stand_need_not_be_found_again() -> None:
    found = (_proposal(NOW),)
    repetition = Repetition(NOW)
    repetition.asked(SNAPSHOT)
    repetition.answered(Proposed(found, NOW, until=UNTIL))
    assert repetition.same(replace(_later(), proposals=found), Changes())
    assert not repetition.rests(NOW + REST_AFTER)


def test_when_other_proposals_stand_than_the_answer_has_it_is_asked() -> None:
    repetition = Repetition(NOW)
    repetition.asked(SNAPSHOT)
    repetition.answered(Proposed((_proposal(NOW),), NOW, until=UNTIL))
    assert not repetition.same(_later(), Changes())  # forgotten, as after a clock was set back
    assert not repetition.same(replace(_later(), proposals=(_proposal(NOW - timedelta(minutes=1)),)), Changes())


def test_a_table_that_is_filled_later_is_another_question() -> None:
    """The maps of a snapshot may be views of tables that live on."""
    table: dict[str, datetime] = {}
    repetition = Repetition(NOW)
    repetition.asked(replace(SNAPSHOT, not_before=table))
    repetition.answered(Proposed((), NOW, until=UNTIL))
    table["nodepool/a"] = NOW
    assert not repetition.same(replace(_later(), not_before=table), Changes())


def test_it_rests_when_nothing_new_has_come_up_for_a_while() -> None:
    repetition = _answered()
    assert not repetition.rests(NOW + REST_AFTER - timedelta(seconds=1))
    assert repetition.rests(NOW + REST_AFTER)
    repetition.asked(_later(700))  # the same again, because the answer had run out
    assert repetition.rests(NOW + timedelta(seconds=701))
    repetition.asked(replace(_later(800), buffer_pods={"node/a": 1}))
    assert not repetition.rests(NOW + timedelta(seconds=801))


def test_what_is_left_out_are_facts() -> None:
    assert set(FACTS) >= UNCONSIDERED


def _node(version: str, status: str = "True", name: str = "a") -> Node:
    condition = NodeCondition(type="Ready", status=status)
    meta = ObjectMeta(name=name, uid=name, resource_version=version)
    return Node(metadata=meta, status=NodeStatus(conditions=(condition,)))


def _state() -> State:
    state = State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda message: None)
    state.take(Changed(kinds.NODE, _node("1")), NOW)
    assert state.changes.different
    state.changes.clear()
    assert not state.changes.different
    return state


def test_a_heartbeat_is_no_difference_but_is_passed_on() -> None:
    state = _state()
    state.take(Changed(kinds.NODE, _node("2")), NOW)
    assert len(state.changes) == 1
    assert not state.changes.different
    assert _answered().same(_later(), state.changes)


@pytest.mark.parametrize(
    "news",
    [Changed(kinds.NODE, _node("2", "False")), Changed(kinds.NODE, _node("2", name="b")), Removed(kinds.NODE, "", "a")],
    ids=["changed", "added", "removed"],
)
def test_what_changes_is_a_difference(news: Changed | Removed) -> None:
    state = _state()
    state.take(news, NOW)
    state.take(Changed(kinds.NODE, _node("3", name="b")), NOW)
    assert state.changes.different
    assert not _answered().same(_later(), state.changes)
