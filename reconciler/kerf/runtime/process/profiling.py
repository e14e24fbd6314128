"""What a process is busy with, for an operator who cannot stop it: where each thread stands, and where its time goes.

A profile looks at all threads many times a second and puts what CPU time each has used since the last look on the stack
where it stands now. Its lines are folded stacks (`thread;caller;called microseconds`), as flame graphs are made from.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

EVERY_SECONDS: Final = 0.02
LONGEST_SECONDS: Final = 120.0
_OWN_TIME: Final = "/proc/self/task/{}/schedstat"


class Busy(Exception):
    """A profile is being taken already."""


def threads() -> str:
    """The stack of each thread, the innermost call last."""
    known = {thread.ident: thread for thread in threading.enumerate()}
    parts = []
    for ident, frame in sorted(sys._current_frames().items()):
        thread = known.get(ident)
        name = thread.name if thread is not None else "unknown"
        parts.append(f"thread {name} ({ident})\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)


class Profiler:
    """See the module. One profile at a time; any thread may ask."""

    def __init__(
        self, pause: Callable[[float], object] = time.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pause, self._clock, self._lock = pause, clock, threading.Lock()

    def profile(self, seconds: float) -> str:
        """Of so many seconds, the stacks with most time first. Raises Busy."""
        if not self._lock.acquire(blocking=False):
            raise Busy
        try:
            return self._profile(min(seconds, LONGEST_SECONDS))
        finally:
            self._lock.release()

    def _profile(self, seconds: float) -> str:
        until, used, spent = self._clock() + seconds, dict[int, int](), Counter[str]()
        while True:
            for thread, frame in _others():
                now = _cpu_nanoseconds(thread.native_id)
                before = used.get(thread.native_id or 0)
                used[thread.native_id or 0] = now
                if before is not None and now > before:
                    spent[f"{thread.name};{_folded(frame)}"] += (now - before) // 1000
            if self._clock() >= until:
                return "".join(f"{stack} {micros}\n" for stack, micros in spent.most_common() if micros)
            self._pause(EVERY_SECONDS)


def _others() -> Iterator[tuple[threading.Thread, FrameType]]:
    """Every thread but the one that asks, and where it stands."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.ident in frames:
            yield thread, frames[thread.ident]


def _cpu_nanoseconds(native_id: int | None) -> int:
    """What a thread has used so far, as Linux counts it; 0 on other systems, and when it has just ended."""
    try:
        return int(Path(_OWN_TIME.format(native_id)).read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return 0


def _folded(frame: FrameType | None) -> str:
    calls = []
    while frame is not None:
        code = frame.f_code
        calls.append(f"{code.co_filename.rpartition('/')[2]}:{code.co_name}")
        frame = frame.f_back
    return ";".join(reversed(calls))
