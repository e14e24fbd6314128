"""Signals, really sent to this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from kerf.runtime.process.signals import heed

ASKED = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The handlers of who runs the tests are his again afterwards."""
    before = [signal.getsignal(one) for one in ASKED]
    yield
    for one, handler in zip(ASKED, before, strict=True):
        signal.signal(one, handler)


@pytest.mark.parametrize("number", ASKED)
def test_a_signal_may_come_while_the_main_thread_holds_a_lock_that_stopping_needs(number: signal.Signals) -> None:
    lock, asked = threading.Lock(), threading.Semaphore(0)

    def stop() -> None:
        with lock:
            asked.release()

    heed(stop)
    for _ in range(2):
        with lock:
            signal.raise_signal(number)
        assert asked.acquire(timeout=5)
