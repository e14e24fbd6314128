"""Keys of a terminal, one at a time and without echo."""

from __future__ import annotations

import os
import select
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: The sequences of keys that have no character.
_NAMES: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
}


@contextmanager
def single_keys(descriptor: int) -> Iterator[None]:
    """Set the terminal to single keys, and set it back at the end."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def key(descriptor: int, seconds: float) -> str:
    """The next key, by name or as its character; empty after these seconds without one. Raises EOFError."""
    if not select.select([descriptor], [], [], seconds)[0]:
        return ""
    data = os.read(descriptor, 8)
    if not data:
        raise EOFError
    text = data.decode(errors="ignore")
    return _NAMES.get(text, text[:1] if text[:1].isprintable() else "")
