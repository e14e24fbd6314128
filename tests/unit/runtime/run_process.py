"""`kerf run` as a process of its own, in whose log a certain line has no place: who writes it dies, as of a bug."""

from __future__ import annotations

import io
import os
import sys
import threading

from reconciler.runtime.program import Process, Where
from reconciler.runtime.settings import parse
from reconciler.telemetry.logs import make_logger


class Breaking(io.StringIO):
    """Writes to standard output, but for the lines of one message."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = f'"message": "{message}"'

    def write(self, text: str) -> int:
        if self._message in text:
            raise ZeroDivisionError
        return sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


def main(kubeconfig: str, message: str) -> int:
    return Process(
        parse([], os.environ), Where(kubeconfig), make_logger("info", Breaking(message)), threading.Event()
    ).run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
