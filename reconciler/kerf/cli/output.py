"""Standard output is for Kerf's own output alone.

Libraries print to descriptor 1, C libraries too: a banner before a JSON document breaks it for every reader. So the
descriptor is copied for Kerf at the start of the process, and what anything else writes to it goes to standard error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, Final

_STDOUT: Final = 1
_STDERR: Final = 2


class _Own(io.FileIO):
    """Standard output. A reader that closes the pipe, as `head` does, changes no verdict: the rest is thrown away."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(data)


def keep() -> None:
    """Keep standard output for `sys.stdout`; all else that is written to its descriptor goes to standard error.

    Call it once, before a library is loaded that may print. Without a standard output nothing is done. A file or a pipe
    gets UTF-8, as YAML and JSON are; a terminal escapes in place of characters that its locale does not have.
    """
    before = sys.stdout
    try:
        own = os.dup(_STDOUT)
    except OSError:
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Own(own, "w")),
        encoding=before.encoding if os.isatty(own) else "utf-8",
        errors="backslashreplace" if os.isatty(own) else before.errors,
        line_buffering=bool(before.line_buffering) or os.isatty(own),
    )
    sys.__stdout__ = sys.stdout  # type: ignore[misc]  # the width of the terminal is asked there
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # closed by the caller
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


def forward(line: Callable[[str], object]) -> None:
    """Give each line that libraries write to descriptor 1 from now on to `line`, in a thread of its own."""
    from threading import Thread

    reading, writing = os.pipe()
    os.dup2(writing, _STDOUT)
    os.close(writing)
    Thread(target=_read, args=(reading, line), name="standard-output", daemon=True).start()


def _read(descriptor: int, line: Callable[[str], object]) -> None:
    with open(descriptor, encoding="utf-8", errors="replace") as lines:
        for text in lines:
            if text.strip():
                line(text.rstrip())
