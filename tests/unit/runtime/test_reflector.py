"""The list-and-watch state machine against a scripted Kube."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.ports import Change, Disconnected, Expired, Forbidden, Listing, Throttled, Unavailable
from kerf.runtime.inbox import Changed, Fresh, Inbox, Listed, Removed, Withheld
from kerf.runtime.observe.reflector import SILENCE, Reflector
from kerf_api.v1.meta import ObjectMeta

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class ScriptedWatch:
    def __init__(self, script: list[Sequence[Change] | Exception]) -> None:
        self.script, self.closed = script, False

    def read(self, timeout_seconds: float) -> Sequence[Change]:
        step = self.script.pop(0) if self.script else ()
        if isinstance(step, Exception):
            raise step
        return step

    def close(self) -> None:
        self.closed = True


class ScriptedKube:
    """Answers lists and watches from scripts; every call is noted. Nothing else is asked of it."""

    def __init__(self, lists: list[Listing | Exception], watches: list[ScriptedWatch | Exception]) -> None:
        self.lists, self.watches, self.calls = lists, watches, list[str]()

    def list(self, kind: Any, **selectors: str) -> Any:
        self.calls.append("list")
        return _next(self.lists)

    def watch(self, kind: Any, resource_version: str) -> Any:
        self.calls.append(f"watch {resource_version}")
        return _next(self.watches)


class SlowKube(ScriptedKube):
    """One whose lists take so many seconds."""

    def __init__(
        self, lists: list[Listing | Exception], watches: list[ScriptedWatch | Exception], clock: Clock, seconds: float
    ) -> None:
        super().__init__(lists, watches)
        self._clock, self._seconds = clock, seconds

    def list(self, kind: Any, **selectors: str) -> Any:
        self._clock.sleep(self._seconds)
        return super().list(kind, **selectors)


def _next(script: list[Any]) -> Any:
    step = script.pop(0)
    if isinstance(step, Exception):
        raise step
    return step


def pod(name: str, version: str = "1") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="d", uid=f"uid-{name}", resource_version=version))


def make(
    lists: list[Listing | Exception], watches: list[ScriptedWatch | Exception]
) -> tuple[Reflector, ScriptedKube, Clock, Inbox]:
    kube, clock, inbox = ScriptedKube(lists, watches), Clock(), Inbox()
    return Reflector(kinds.POD, kube, clock, inbox), kube, clock, inbox  # type: ignore[arg-type]


def test_a_list_that_took_long_is_no_silence_of_its_watch() -> None:
    clock, inbox = Clock(), Inbox()
    kube = SlowKube([Listing((pod("a"),), "10")], [ScriptedWatch([])], clock, SILENCE.total_seconds() + 15)
    reflector = Reflector(kinds.POD, kube, clock, inbox)  # type: ignore[arg-type]
    assert reflector.step()
    for _ in range(3):
        assert not reflector.step()
        clock.sleep(1)
    assert kube.calls == ["list", "watch 10"]
    (listed,) = inbox.drain()
    assert isinstance(listed, Listed)
    assert listed.at == START


def test_a_list_and_then_changes() -> None:
    gone = pod("a", "12")
    changes = (Change("ADDED", pod("b", "11"), "11"), Change("DELETED", gone, "12"))
    reflector, kube, _, inbox = make([Listing((pod("a"),), "10")], [ScriptedWatch([changes])])
    assert reflector.step()
    assert reflector.synced
    assert inbox.drain() == [Listed(kinds.POD, (pod("a"),), "10", START)]
    assert reflector.step()
    assert inbox.drain() == [Changed(kinds.POD, pod("b", "11")), Removed(kinds.POD, "d", "a", "uid-a")]
    assert kube.calls == ["list", "watch 10"]


def test_a_forbidden_list_says_nothing_and_is_tried_again_later() -> None:
    reflector, kube, clock, inbox = make([Forbidden("no"), Listing((), "1")], [])
    assert not reflector.step()
    assert not reflector.synced
    assert inbox.drain() == [Withheld(kinds.POD)]
    assert not reflector.step()
    assert kube.calls == ["list"]
    assert reflector.not_before is not None
    clock.time = reflector.not_before
    assert reflector.step()
    assert reflector.synced


def test_what_may_not_be_watched_any_more_is_not_trusted_and_listed_again_when_it_may() -> None:
    forbidden = ScriptedWatch([Forbidden("no")])
    reflector, kube, clock, inbox = make([Listing((pod("a"),), "10"), Listing((), "20")], [forbidden])
    assert reflector.step()
    assert not reflector.step()
    assert inbox.drain()[1:] == [Withheld(kinds.POD)]
    assert reflector.not_before is not None
    clock.time = reflector.not_before
    assert reflector.step()
    assert kube.calls == ["list", "watch 10", "list"]


def test_a_server_that_says_when_to_come_again_is_believed() -> None:
    reflector, _, clock, _ = make([Throttled("busy", 7.0)], [])
    assert not reflector.step()
    assert reflector.not_before == clock.now() + timedelta(seconds=7)


@pytest.mark.parametrize("error", [Unavailable("x"), ZeroDivisionError("a bug")])
def test_failures_wait_longer_each_time(error: Exception) -> None:
    reflector, _, clock, _ = make([error] * 6, [])
    waits = []
    for _ in range(6):
        reflector.step()
        assert reflector.not_before is not None
        waits.append(reflector.not_before - clock.time)
        clock.time = reflector.not_before
    assert waits == sorted(waits)
    assert waits[-1] > 5 * waits[0]


def test_after_a_bug_in_reading_a_watch_it_is_listed_again_and_the_bug_is_told() -> None:
    """Nobody knows what was lost with it."""
    watch, told = ScriptedWatch([ZeroDivisionError("a bug")]), list[str]()
    kube, clock = ScriptedKube([Listing((), "1"), Listing((), "9")], [watch]), Clock()
    reflector = Reflector(kinds.POD, kube, clock, Inbox(), lambda kind, error: told.append(f"{kind.name}: {error}"))  # type: ignore[arg-type]
    reflector.step()
    assert not reflector.step()
    assert watch.closed
    assert told == ["Pod: ZeroDivisionError: a bug"]
    assert reflector.not_before is not None
    clock.time = reflector.not_before
    assert reflector.step()
    assert kube.calls == ["list", "watch 1", "list"]


def test_an_expired_watch_lists_again() -> None:
    watch = ScriptedWatch([Expired("410")])
    reflector, kube, clock, _ = make([Listing((), "1"), Listing((), "9")], [watch, ScriptedWatch([])])
    reflector.step()
    reflector.step()
    assert watch.closed
    clock.sleep(60)
    reflector.step()
    reflector.step()
    assert kube.calls == ["list", "watch 1", "list", "watch 9"]


def test_a_lost_watch_goes_on_where_it_was() -> None:
    first = ScriptedWatch([(Change("MODIFIED", pod("a", "7"), "7"),), (), Disconnected("x")])
    reflector, kube, clock, _ = make([Listing((), "1")], [first, ScriptedWatch([])])
    for _ in range(3):
        reflector.step()
        clock.sleep(5)
    reflector.step()
    assert reflector.not_before is None
    reflector.step()
    assert kube.calls == ["list", "watch 1", "watch 7"]


def test_watches_that_end_at_once_are_a_failure() -> None:
    reflector, _, _, _ = make([Listing((), "1")], [ScriptedWatch([Disconnected("x")])])
    reflector.step()
    reflector.step()
    assert reflector.not_before is not None


@pytest.mark.parametrize("end", [[Disconnected("x")], []], ids=["it ends", "it stays silent"])
def test_a_watch_that_lived_ends_a_row_of_failures_though_it_said_nothing(end: list[Exception]) -> None:
    """Of a kind in which nothing happens. What fails next is tried again as soon as after any first failure."""
    refused = [Unavailable("503") for _ in range(6)]
    watches: list[ScriptedWatch | Exception] = [*refused, ScriptedWatch([(), *end]), Unavailable("503")]
    reflector, _, clock, _ = make([Listing((), "1"), Unavailable("503")], watches)
    reflector.step()
    for _ in refused:
        reflector.step()
        assert reflector.not_before is not None
        clock.time = reflector.not_before
    reflector.step()
    clock.time += SILENCE + timedelta(seconds=1)
    reflector.step()
    reflector.step()
    assert reflector.not_before is not None
    assert reflector.not_before - clock.time < timedelta(seconds=1)


def test_a_bookmark_is_a_sign_of_life_and_moves_the_version() -> None:
    watch = ScriptedWatch([(Change("BOOKMARK", None, "50"),), Disconnected("x")])
    reflector, kube, clock, inbox = make([Listing((), "1")], [watch, ScriptedWatch([])])
    reflector.step()
    inbox.drain()
    clock.sleep(30)
    reflector.step()
    assert inbox.drain() == [Fresh(kinds.POD, START + timedelta(seconds=30))]
    clock.sleep(5)
    reflector.step()
    reflector.step()
    assert kube.calls[-1] == "watch 50"


def test_a_silent_watch_is_not_believed() -> None:
    reflector, kube, clock, inbox = make([Listing((), "1"), Listing((), "1")], [ScriptedWatch([]), ScriptedWatch([])])
    reflector.step()
    reflector.step()
    clock.time += SILENCE + timedelta(seconds=1)
    reflector.step()
    inbox.drain()
    reflector.step()
    assert kube.calls == ["list", "watch 1", "list"]
    assert inbox.drain() == [Listed(kinds.POD, (), "1", clock.time)]


def test_a_back_off_that_is_over_keeps_nobody_awake() -> None:
    """The watch of a quiet kind came back: nothing has been learnt, and nothing is waited for any more."""
    reflector, _, clock, _ = make([Listing((), "5")], [Unavailable("503"), ScriptedWatch([()])])
    reflector.step()
    reflector.step()
    assert reflector.not_before is not None
    clock.time = reflector.not_before
    assert not reflector.step()
    assert reflector.not_before is None
