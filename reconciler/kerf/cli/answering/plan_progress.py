"""The progress of a plan that is being simulated, in one line of a terminal; nothing where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TextIO

from kerf.cli.terminal import plain, width
from kerf_api import durations

if TYPE_CHECKING:
    from kerf.planning.lives import Progress

_EVERY_SECONDS: Final = 0.5
#: Back to the first column, and remove the line.
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def shown(stream: TextIO) -> Iterator[Callable[[Progress], None]]:
    """Show the progress that the yielded function gets, and remove the line at the end."""
    columns = width(stream)
    if not columns or plain():
        yield lambda _: None
        return
    latest = 0.0

    def show(progress: Progress) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest >= _EVERY_SECONDS:
            latest = now
            stream.write(f"{_CLEAR}{line(progress)[: columns - 1]}")
            stream.flush()

    try:
        yield show
    finally:
        stream.write(_CLEAR)
        stream.flush()


def line(progress: Progress) -> str:
    """The line of a progress."""
    lived = durations.go_text(timedelta(seconds=int(progress.lived.total_seconds())))
    return f"kerf plan: simulated {lived}; disruption started: {progress.going}, nodes deleted: {progress.gone}"
