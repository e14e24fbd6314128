"""One call for many: who goes with whom, and what each is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kerf.aws.requests.batches import Batches, Outcomes
from kerf.ports import AlreadyGone, Throttled

LONG = 20.0


class Service:
    """Answers a call when it is let; `calls` are those that were made."""

    def __init__(self, answer: Callable[[Sequence[str]], Outcomes] = dict.fromkeys) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.called, self.may_answer = threading.Semaphore(0), threading.Semaphore(0)
        self._answer = answer

    def call(self, items: Sequence[str]) -> Outcomes:
        self.calls.append(tuple(items))
        self.called.release()
        assert self.may_answer.acquire(timeout=LONG)
        return self._answer(items)


class Crowd:
    """Threads that ask."""

    def __init__(self, service: Service, most: int = 500, patience: float = LONG) -> None:
        self.service, self.batches = service, Batches(service.call, most, patience)
        self._pool = ThreadPoolExecutor(16)

    def ask(self, *items: str) -> list[Future[None]]:
        return [self._pool.submit(self.batches.ask, item) for item in items]

    def ask_behind_one(self, *items: str) -> list[Future[None]]:
        """They come while the call of another is under way, which ends then."""
        first = self.ask("first")
        assert self.service.called.acquire(timeout=LONG)
        asked = [*first, *self.ask(*items)]
        wait_until(lambda: len(self.batches._waiting) == len(set(items)))
        self.service.may_answer.release()
        return asked


def wait_until(holds: Callable[[], bool]) -> None:
    event = threading.Event()
    for _ in range(2000):
        if holds():
            return
        event.wait(0.01)
    raise AssertionError("did not come true in time")


def test_225_one_alone_goes_at_once() -> None:
    service = Service()
    service.may_answer.release()
    Batches(service.call, 500).ask("a")
    assert service.calls == [("a",)]


def test_225_those_that_come_while_a_call_is_under_way_go_together() -> None:
    service = Service()
    crowd = Crowd(service)
    asked = crowd.ask_behind_one("a", "b", "c", "d", "e")
    service.may_answer.release()
    for each in asked:
        each.result(LONG)
    assert [sorted(call) for call in service.calls] == [["first"], ["a", "b", "c", "d", "e"]]


def test_225_the_same_one_of_two_callers_goes_once_and_both_are_answered() -> None:
    service = Service(lambda items: {item: AlreadyGone(item) if item == "a" else None for item in items})
    crowd = Crowd(service)
    first, *asked = crowd.ask_behind_one("a", "a", "b")
    service.may_answer.release()
    first.result(LONG)
    assert [type(each.exception(LONG)) for each in asked] == [AlreadyGone, AlreadyGone, type(None)]
    assert sorted(service.calls[1]) == ["a", "b"]


def test_no_call_has_more_than_it_may() -> None:
    service = Service()
    crowd = Crowd(service, most=2)
    asked = crowd.ask_behind_one("a", "b", "c", "d", "e")
    for _ in range(3):
        service.may_answer.release()
    for each in asked:
        each.result(LONG)
    assert [len(call) for call in service.calls] == [1, 2, 2, 1]


@pytest.mark.parametrize("error", [Throttled("slower"), ValueError("a bug")])
def test_when_a_call_fails_all_who_were_in_it_are_told(error: Exception) -> None:
    def fail(items: Sequence[str]) -> Outcomes:
        raise error

    service = Service(fail)
    crowd = Crowd(service)
    asked = crowd.ask_behind_one("a", "b")
    service.may_answer.release()
    assert [each.exception(LONG) for each in asked] == [error] * 3


def test_who_is_left_out_of_an_answer_is_done() -> None:
    service = Service(lambda items: {})
    service.may_answer.release()
    Batches(service.call, 500).ask("a")


def test_a_call_that_hangs_holds_up_nobody_for_long() -> None:
    service = Service()
    crowd = Crowd(service, patience=0.05)
    hanging = crowd.ask("hanging")[0]
    assert service.called.acquire(timeout=LONG)
    other = crowd.ask("other")[0]
    assert service.called.acquire(timeout=LONG)
    assert service.calls == [("hanging",), ("other",)]
    service.may_answer.release(2)
    assert (hanging.exception(LONG), other.exception(LONG)) == (None, None)


def test_a_thread_that_is_torn_away_leaves_nobody_waiting() -> None:
    class Torn(BaseException):
        pass

    def tear(items: Sequence[str]) -> Outcomes:
        raise Torn

    batches = Batches(tear, 500)
    with pytest.raises(Torn):
        batches.ask("a")
    with pytest.raises(Torn):
        batches.ask("a")
    assert not batches._waiting
