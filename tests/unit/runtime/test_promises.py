"""What the state remembers of a provisioning pass: its promises, until the next pass or for a minute after they end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kerf.model.plan import Nomination, Plan
from kerf.model.settings import Settings
from kerf.runtime.state.promises import PROMISES_KEPT
from kerf.runtime.state.state import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = NOW + timedelta(seconds=20)
SECOND = timedelta(seconds=1)


def state() -> State:
    return State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda _: None)


def promises(*pods: str) -> Plan:
    return Plan(nominations=tuple(Nomination(pod, "node", UNTIL) for pod in pods), provisioned=True)


def test_a_pass_replaces_the_promises_of_the_one_before_in_its_own_order() -> None:
    known = state()
    known.planned(promises("b", "a"), NOW)
    assert [n.pod_uid for n in known.snapshot(NOW).nominations] == ["b", "a"]
    known.planned(promises("c"), NOW)
    assert [n.pod_uid for n in known.snapshot(NOW).nominations] == ["c"]


def test_a_plan_that_was_no_pass_leaves_the_promises_alone() -> None:
    known = state()
    known.planned(promises("a"), NOW)
    known.planned(Plan(), NOW)
    assert len(known.snapshot(NOW).nominations) == 1


def test_promises_outlive_their_time_by_a_late_pass_and_no_more() -> None:
    known = state()
    known.planned(promises("a"), NOW)
    assert known.snapshot(UNTIL + PROMISES_KEPT - SECOND).nominations
    assert not known.snapshot(UNTIL + PROMISES_KEPT).nominations


def test_the_turns_of_pods_are_kept_until_the_next_pass_over_pods() -> None:
    known = state()
    known.planned(Plan(provisioned=True, left_over=frozenset({"a"}), had_turn=frozenset({"b"})), NOW)
    known.planned(Plan(), NOW)
    found = known.snapshot(NOW)
    assert (found.left_over, found.had_turn) == (frozenset({"a"}), frozenset({"b"}))
