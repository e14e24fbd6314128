"""What libraries log, warn of or die of in a thread goes the way of our own lines, instead of breaking into them."""

from __future__ import annotations

import logging
import threading
import traceback
import warnings
from typing import Final

from kerf.telemetry.log.logs import Logger

#: Said for each connection too many that a pool closes again; it is what the pool is for.
_IDLE: Final = ("urllib3.connectionpool",)


class _Handler(logging.Handler):
    """Everything from warnings on; Karpenter's log has no level for these, so what is less than an error is INFO."""

    def __init__(self, log: Logger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.name in _IDLE and record.levelno < logging.ERROR:
            return
        say = self._log.error if record.levelno >= logging.ERROR else self._log.info
        say(_one_line(record.getMessage()), library=record.name)


def route(log: Logger) -> None:
    """From now on. What a thread dies of is a bug, with the place where it happened."""
    logging.basicConfig(handlers=[_Handler(log)], level=logging.WARNING, force=True)
    warnings.simplefilter("default")
    logging.captureWarnings(True)

    def died(args: threading.ExceptHookArgs) -> None:
        frames = traceback.extract_tb(args.exc_traceback)
        where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
        thread = args.thread.name if args.thread is not None else ""
        log.error("a thread died of a bug", thread=thread, error=args.exc_value or args.exc_type.__name__, where=where)

    threading.excepthook = died


def _one_line(text: str) -> str:
    return " ".join(text.split())
