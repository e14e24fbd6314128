"""Slow answers of the API server: which are counted, when they are a trouble, and how the loop hears of them."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from kerf.judgement import troubles
from kerf.model.failures import ANSWER, API_SERVER, SLOW, key
from kerf.runtime.inbox import Inbox, Reported
from kerf.runtime.observe.answer_times import AnswerTimes
from kerf.runtime.process.clock import SystemClock
from tests.unit.runtime.test_own_writes import NOW, after, state

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kerf/leases/kerf"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def answered(times: AnswerTimes, *seconds: float, method: str = "PUT", path: str = LEASE) -> AnswerTimes:
    for one in seconds:
        times.answered(method, path, {}, 200, one)
    return times


def test_slow_answers_are_named_with_the_slowest_request() -> None:
    times = answered(AnswerTimes(), *[1.5] * 9, 3.0)
    assert times.slow() == "95 % of 10 answers within 3.0 s (limit 1 s); the slowest is update leases with 3.0 s"


@pytest.mark.parametrize(
    "seconds",
    [[1.0] * 20, [0.1] * 19 + [8.0], [5.0] * 4],
    ids=["at the limit", "one of twenty", "too few"],
)
def test_the_usual_is_not_slow(seconds: list[float]) -> None:
    assert answered(AnswerTimes(), *seconds).slow() == ""


def test_lists_and_watches_do_not_count() -> None:
    times = answered(AnswerTimes(), *[20.0] * 9, method="GET", path=CLAIMS)
    times.answered("GET", CLAIMS, {"watch": "true"}, 200, 20.0)
    assert times.slow(fewest=1) == ""
    assert "get nodeclaims" in answered(times, 20.0, method="GET", path=f"{CLAIMS}/a").slow(fewest=1)


def test_answers_are_forgotten_after_a_minute() -> None:
    clock = Seconds()
    times = answered(AnswerTimes(clock=clock), *[2.0] * 10)
    clock.now = 60.5
    assert times.slow() == ""


def test_the_loop_hears_while_they_are_slow_and_once_when_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, inbox, stop = Seconds(), Inbox(), threading.Event()
    times = answered(AnswerTimes(clock=clock), *[2.0] * 10)
    monkeypatch.setattr("kerf.runtime.observe.answer_times.REPORTED_EVERY", timedelta(milliseconds=20))
    thread = threading.Thread(target=times.report, args=(inbox, SystemClock(), stop))
    thread.start()
    assert inbox.wait(5)
    clock.now = 61
    stop.wait(0.2)
    stop.set()
    thread.join()
    found = [news for news in inbox.drain() if isinstance(news, Reported)]
    assert [one.outcome for one in found][-1] == ""
    assert {one.outcome for one in found[:-1]} == {SLOW}


def test_status_names_it_after_half_a_minute_until_it_is_over() -> None:
    known = state()
    for seconds in (0, 15, 29):
        known.take(Reported(ANSWER, API_SERVER, after(seconds), SLOW, "95 % within 3.0 s"), after(seconds))
    assert not list(troubles.failing(known.snapshot(after(29)).failures.values(), after(29)))
    (found,) = troubles.failing(known.snapshot(after(30)).failures.values(), after(30))
    assert f"{found}".startswith("kubernetes/api-server: answers slowly: 95 % within 3.0 s; check etcd")
    assert found.since == NOW
    known.take(Reported(ANSWER, API_SERVER, after(130)), after(130))
    assert key(ANSWER, API_SERVER) not in known.snapshot(after(130)).failures
