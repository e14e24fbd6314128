"""The state of a running controller as a file, for the debug port."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from kerf.runtime.observe.looking import captured
from kerf.runtime.questions import Questions
from kerf.runtime.state.state import State
from kerf.snapshots import files, writing
from kerf.telemetry.precedence import GiveWay

_KEY_BYTES: Final = 32


class Loop(Protocol):
    """The part of the loop that is needed here."""

    questions: Questions
    state: State


def new_key() -> bytes:
    """A random key for the digests of one file."""
    return secrets.token_bytes(_KEY_BYTES)


def snapshot(loop: Loop, now: Callable[[], datetime], seconds: float, give_way: GiveWay) -> bytes:
    """Return what the controller sees as a file, with digests by a key that is not kept.

    The loop's thread makes a copy; this thread encodes it and gives way to the loop before each line. Raises
    TimeoutError when the loop does not answer within `seconds`.
    """
    found = loop.questions.ask(lambda: captured(loop.state, now()), seconds)
    return files.compressed(writing.lines(found, new_key()), give_way)
