"""Where lines of the log go: standard output, standard error and files, as LOG_OUTPUT_PATHS names them.

A line that cannot be written (a full disk) is lost, and said to be lost on the sinks for errors, once a minute at most:
the log must not end the controller.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

SAID_EVERY_SECONDS: Final = 60.0
_STANDARD: Final = {"stdout": lambda: sys.stdout, "stderr": lambda: sys.stderr}


class Sinks:
    """All of them as one; any thread may write. `clock` is in seconds and only ever grows."""

    def __init__(
        self, paths: Sequence[str], error_paths: Sequence[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Files are opened to be added to. Raises OSError when one cannot be."""
        self._clock, self._lock, self._said = clock, threading.Lock(), -SAID_EVERY_SECONDS
        self._streams, self._errors = [_opened(path) for path in paths], [_opened(path) for path in error_paths]

    def write(self, text: str, /) -> int:
        with self._lock:
            for stream in self._streams:
                try:
                    stream.write(text)
                except OSError as error:
                    self._lost(error)
        return len(text)

    def flush(self) -> None:
        with self._lock:
            for stream in self._streams:
                try:
                    stream.flush()
                except OSError as error:
                    self._lost(error)

    def _lost(self, error: OSError) -> None:
        if self._clock() - self._said < SAID_EVERY_SECONDS:
            return
        self._said = self._clock()
        for stream in self._errors:
            try:
                stream.write(f"a line of the log could not be written: {error}\n")
                stream.flush()
            except OSError:
                continue  # there is nowhere left to say so


def _opened(path: str) -> TextIO:
    standard = _STANDARD.get(path)
    return standard() if standard is not None else open(path, "a", encoding="utf-8", buffering=1)
