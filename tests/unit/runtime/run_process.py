"""`kerf run` as a process of its own, which has few seconds to end, and in whose log a certain line has no place.

Who writes that line dies of it, as of a bug.
"""

from __future__ import annotations

import io
import os
import sys
import threading

from kerf.runtime.process.connecting import Where
from kerf.runtime.process.signals import heed
from kerf.runtime.program import Process
from kerf.runtime.settings.settings import parse
from kerf.telemetry.log.logs import make_logger


class Breaking(io.StringIO):
    """Writes to standard output, but for the lines of one message."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = f'"message":"{message}"'

    def write(self, text: str) -> int:
        if self._message in text:
            raise ZeroDivisionError
        return sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


def main(kubeconfig: str, message: str, grace_seconds: str = "20") -> int:
    log, grace = make_logger("info", Breaking(message)), float(grace_seconds)
    process = Process(parse([], os.environ), Where(kubeconfig), log, threading.Event())
    heed(process.ask_to_stop)
    return process.run(grace)


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # as the program itself: it waits for no answer any more
