"""The batch window: who opens it, who prolongs it, who closes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf.runtime.state.batching import AGAIN, BUFFERS_AGAIN, RECHECK_EVERY, RECHECK_FOR, BatchWindow
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(cluster_name="c", batch_idle=timedelta(seconds=1), batch_max=timedelta(seconds=10))


SPEC = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"}, "requirements": []}
JOINED = decode(NodeClaim, {"metadata": {"name": "n", "uid": "u"}, "spec": SPEC})
CONDITIONS = [{"type": "Initialized", "status": "True"}]
INITIALIZED = decode(
    NodeClaim, {"metadata": {"name": "n", "uid": "u"}, "spec": SPEC, "status": {"conditions": CONDITIONS}}
)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_the_first_opens_it_and_new_ones_prolong_it() -> None:
    window = BatchWindow()
    assert window.at(START) is None
    assert window.due(START, SETTINGS) is None
    window.trigger("a", START)
    window.trigger("b", after(0.7))
    assert window.at(after(0.8)) == Batch(START, after(0.7), maiden=True)
    assert window.due(after(0.8), SETTINGS) == after(1.7)


def test_it_never_lasts_longer_than_the_maximum() -> None:
    window = BatchWindow()
    for n in range(20):
        window.trigger(str(n), after(n * 0.9))
    assert window.due(after(9), SETTINGS) == after(10)
    assert window.due(after(17), SETTINGS) is None


def test_the_same_pod_again_changes_nothing() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.trigger("a", after(0.9))
    assert window.at(after(0.9)) == Batch(START, START, maiden=True, lone=True)


def test_a_pod_that_comes_alone_waits_less_for_others() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    assert window.due(START, SETTINGS) == after(0.2)
    window.trigger("b", after(0.1))
    assert window.due(after(0.1), SETTINGS) == after(1.1)
    window.served(after(2))
    window.trigger("c", after(3))
    assert window.due(after(3), SETTINGS) == after(4), "others came a moment ago"
    window.served(after(4))
    window.trigger("d", after(13.5))
    assert window.due(after(13.5), SETTINGS) == after(13.7)


def test_a_solution_from_before_the_close_is_of_the_pods_that_were_there() -> None:
    window = BatchWindow()
    window.looked(START, None, ahead=True)
    assert window.at(START) is None
    window.trigger("a", START)
    window.looked(after(0.3), None, ahead=True)
    window.looked(after(0.4), after(1))
    assert window.at(after(0.5)) == Batch(
        START, START, maiden=True, lone=True, tried_at=after(0.4), try_at=after(1), ahead_at=after(0.3)
    )
    window.set_back(timedelta(seconds=1))
    found = window.at(START)
    assert found is not None
    assert found.ahead_at == after(-0.7)
    window.trigger("b", START)
    found = window.at(START)
    assert found is not None
    assert (found.ahead_at, found.tried_at) == (None, after(-0.6))


def test_when_to_look_for_early_orders_again_stays_with_the_batch() -> None:
    window = BatchWindow()
    window.tried(START, after(1))
    assert window.at(START) is None
    window.trigger("a", START)
    window.tried(START, after(1))
    window.trigger("b", after(0.5))
    assert window.at(after(0.5)) == Batch(START, after(0.5), maiden=True, tried_at=START, try_at=after(1))
    window.set_back(timedelta(seconds=1))
    assert window.at(START) == Batch(after(-1), after(-0.5), maiden=True, tried_at=after(-1), try_at=START)
    window.served(after(1))
    window.trigger("c", after(2))
    assert window.at(after(2)) == Batch(after(2), after(2))


def test_pods_that_come_in_one_moment_are_not_alone() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.trigger("b", START)
    assert window.due(START, SETTINGS) == after(1)


@pytest.mark.parametrize(("idle", "lone", "expected"), [(0.1, 0.2, 0.1), (3, 0.5, 0.5), (1, 5, 1)])
def test_nobody_alone_waits_longer_than_others(idle: float, lone: float, expected: float) -> None:
    settings = replace(SETTINGS, batch_idle=timedelta(seconds=idle), batch_lone=timedelta(seconds=lone))
    window = BatchWindow()
    window.trigger("a", START)
    assert window.due(START, settings) == after(expected)


def test_what_was_served_asks_again_after_a_while_and_a_new_pod_at_once() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.served(after(1))
    window.trigger("a", after(2))
    assert window.at(after(2)) is None
    assert window.due(after(2), SETTINGS) == after(1) + AGAIN
    window.trigger("b", after(3))
    assert window.at(after(3)) == Batch(after(3), after(3))
    window.served(after(4))
    assert window.at(after(4) + AGAIN) == Batch(after(4) + AGAIN, after(4) + AGAIN, again=True)


def test_nothing_waits_any_more() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.served(after(1))
    window.forget("a")
    assert window.at(after(60)) is None
    assert window.due(after(60), SETTINGS) is None


def test_new_room_lets_what_was_served_in_vain_ask_at_once() -> None:
    window = BatchWindow()
    window.reopen(START)
    assert window.at(START) is None, "nobody waits"
    window.trigger("a", START)
    window.served(after(1))
    window.reopen(after(2))
    assert window.due(after(2), SETTINGS) == after(3)


def test_a_buffer_opens_it_and_asks_again_for_as_long_as_it_is_there() -> None:
    window = BatchWindow()
    window.keep("buffer", START)
    assert window.at(START) == Batch(START, START, maiden=True)
    window.served(after(1))
    assert window.due(after(1), SETTINGS) == after(1) + BUFFERS_AGAIN
    assert window.at(after(30)) is None
    assert window.at(after(31)) == Batch(after(31), after(31), again=True)
    window.served(after(32))
    window.trigger("pod", after(33))
    window.served(after(34))
    assert window.due(after(34), SETTINGS) == after(34) + AGAIN
    window.forget("pod")
    assert window.due(after(34), SETTINGS) == after(34) + BUFFERS_AGAIN
    window.keep_no_longer("buffer", after(40))
    assert window.at(after(40)) == Batch(after(40), after(40))
    window.served(after(41))
    assert window.due(after(41), SETTINGS) is None


def test_what_buffers_may_refer_to_matters_only_where_there_are_buffers() -> None:
    window = BatchWindow()
    window.look_again(START)
    window.keep_no_longer("unknown", START)
    assert window.at(START) is None
    window.keep("buffer", START)
    window.served(after(1))
    window.look_again(after(2))
    assert window.at(after(2)) == Batch(after(2), after(2))


def test_after_a_node_is_initialized_its_pods_are_looked_for_until_the_next_plan() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.claim_changed(JOINED, INITIALIZED, after(0.5))
    assert window.at(after(0.5)) == Batch(START, START, maiden=True, lone=True), "no plan has made a node for it"
    window.served(after(1))
    window.claim_changed(JOINED, INITIALIZED, after(4))
    window.claim_changed(JOINED, INITIALIZED, after(4.5))
    recheck = after(4) + RECHECK_EVERY
    expected = Batch(recheck, recheck, again=True, opened_at=after(4), recheck_at=recheck, asks_at=after(1) + AGAIN)
    assert window.at(after(4.5)) == expected, "it waits for the first of them"
    assert expected.closes(SETTINGS) == after(1) + AGAIN, "without such pods all is as before"
    assert window.due(after(4.5), SETTINGS) == recheck
    window.trigger("b", after(4.6))
    assert window.at(after(4.6)) == Batch(after(4.6), after(4.6), opened_at=after(4), recheck_at=recheck)
    window.served(after(5))
    assert window.at(after(5)) is None


@pytest.mark.parametrize("late", [0, 0.001, 0.02, 0.9])
def test_pods_of_an_initialized_node_are_looked_for_a_few_times(late: float) -> None:
    """Looks come a little later than they are due."""
    window = BatchWindow()
    window.trigger("a", START)
    window.served(after(1))
    window.claim_changed(JOINED, INITIALIZED, after(2))
    looks = list[datetime]()
    while (batch := window.at(now := looks[-1] if looks else after(2))) is not None and batch.recheck_at is not None:
        assert batch.recheck_at > now
        looks.append(batch.recheck_at + timedelta(seconds=late))
        window.looked(looks[-1], None)
    assert len(looks) == RECHECK_FOR // RECHECK_EVERY
    assert looks[-1] >= after(2) + RECHECK_FOR


def test_a_loop_that_stood_still_looks_again_in_a_second() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.served(after(1))
    window.claim_changed(JOINED, INITIALIZED, after(2))
    window.looked(after(5.5), None)
    assert window.due(after(5.5), SETTINGS) == after(6.5)


def test_when_nobody_waits_any_more_no_pod_is_looked_for() -> None:
    window = BatchWindow()
    window.trigger("a", START)
    window.served(after(1))
    window.claim_changed(JOINED, INITIALIZED, after(2))
    window.forget("a")
    assert window.at(after(3)) is None
    window.trigger("b", after(60))
    assert window.at(after(60)) == Batch(after(60), after(60), lone=True)
    window.forget("b")
    window.claim_changed(JOINED, INITIALIZED, after(61))
    window.trigger("c", after(62))
    assert window.due(after(62), SETTINGS) == after(63)
