"""What is asked of the process by signals: to stop, and to show where its threads stand.

A handler runs in the midst of whatever the main thread is doing, which may hold the very lock that stopping needs. So
it only leaves word, in a queue that is made for that, and a thread of its own takes it up.
"""

from __future__ import annotations

import faulthandler
import queue
import signal
import threading
from collections.abc import Callable


def heed(stop: Callable[[], None]) -> None:
    """From now on SIGTERM and SIGINT ask to stop. Only the main thread may call it."""
    word: queue.SimpleQueue[int] = queue.SimpleQueue()

    def listen() -> None:
        while word.get():
            stop()

    threading.Thread(target=listen, name="signals", daemon=True).start()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, frame: word.put(number))


def show_stacks() -> None:
    """From now on SIGUSR1 has the stacks of all threads written to standard error, even when none runs any more: for a
    process that answers nothing else."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
