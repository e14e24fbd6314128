"""The batch window: who opens it, who prolongs it, who closes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.model.settings import Settings
from reconciler.model.snapshot import Batch
from reconciler.runtime.batching import AGAIN, BatchWindow

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(cluster_name="c", batch_idle=timedelta(seconds=1), batch_max=timedelta(seconds=10))


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
    assert window.at(after(0.9)) == Batch(START, START, maiden=True)


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
    assert window.at(after(4) + AGAIN) == Batch(after(4) + AGAIN, after(4) + AGAIN)


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
