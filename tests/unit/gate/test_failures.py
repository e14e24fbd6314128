"""Failures of background work are reported once, counted each time, and end no thread."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from kerf.cli.gate.kept_views import STALE_SECONDS, KeptViews
from kerf.cli.gate.metrics import PageMetrics
from kerf.cli.gate.readings import READING, VIEWS, Reading, Readings, Watch
from kerf.model.settings import Settings
from kerf.sandbox.clock import VirtualClock
from tests.sources import ROOT
from tests.unit.gate.test_kept_views import World
from tests.unit.gate.worlds import NOW, Cluster, Tried


def test_a_report_that_fails_ends_no_thread() -> None:
    """Standard error may be closed."""
    cluster, counted, asked = Cluster(), list[str](), threading.Event()
    cluster.down = True

    def report(text: str) -> None:
        raise BrokenPipeError(text)

    def failed(work: str) -> None:
        counted.append(work)
        if len(counted) == 3:
            asked.set()

    readings = Readings(cluster, Settings("test"), VirtualClock(NOW).now, Watch(report, failed))
    readings.start(0.001)
    assert asked.wait(10)
    cluster.down = False
    until = time.monotonic() + 10
    while readings.failing and time.monotonic() < until:
        time.sleep(0.001)
    readings.stop()
    assert readings.latest is not None
    assert set(counted) == {READING}


@pytest.mark.parametrize("broken", ["of", "follow"])
def test_a_bug_in_a_reading_ends_no_thread_either(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(Cluster())

    def bug(*_: Any) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Reading if broken == "of" else KeptViews, broken, bug)
        tried.readings.read()
        tried.readings.read()
    assert (tried.reported, tried.failures) == (["the cluster cannot be read: a bug"], [READING] * 2)
    assert "The cluster was not read again" in tried.get("/", token="admin-token").text
    tried.readings.read()
    assert "The cluster was not read again" not in tried.get("/", token="admin-token").text


def _settle(tried: Tried) -> None:
    """Wait for the views that are being made."""
    tried.readings.views._pool.submit(lambda: None).result(10)


def test_views_that_cannot_be_made_are_reported_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(Cluster())
    before = tried.get("/", token="shop-token").text

    def bug(*_: Any) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Reading, "board", bug)
        tried.readings.read()
        _settle(tried)
        assert tried.reported == ["the views cannot be made: ValueError: a bug; this is a bug of Kerf"]
        during = tried.get("/", token="shop-token")
        _settle(tried)
        assert (tried.failures, len(tried.reported)) == ([VIEWS] * 2, 1)
    assert "its views cannot be made; this is a bug of Kerf: the log has the error" in during.text
    assert ("alert" in before, "node-a" in during.text, "a bug" in during.text) == (False, True, True)
    tried.readings.read()
    _settle(tried)
    assert "alert" not in tried.get("/", token="shop-token").text


def test_views_that_cannot_be_made_do_not_become_old() -> None:
    world = World()
    world.follow("first")
    world.board("a")
    world.follow("second").broken = True
    world.now = STALE_SECONDS + 1
    with pytest.raises(ValueError, match="broken"):
        world.board("a")
    assert world.views.failing(frozenset("a"))
    assert not world.views.failing(frozenset("b"))


def test_failures_are_counted_by_their_work() -> None:
    metrics = PageMetrics()
    for work in (READING, VIEWS, VIEWS):
        metrics.failed(work)
    found = [line for line in metrics.text().splitlines() if line.startswith("kerf_page_failures_total{")]
    assert found == [
        f'kerf_page_failures_total{{work="{READING}"}} 1.0',
        f'kerf_page_failures_total{{work="{VIEWS}"}} 2.0',
    ]


def test_the_messages_of_the_page_are_documented() -> None:
    text = (ROOT / "docs/reference/logs.md").read_text(encoding="utf-8")
    part = text[text.index("## Messages of kerf ui-server") :]
    assert all(f"| `{message}` |" in part for message in ("the cluster cannot be read", "the views cannot be made"))
