"""Keys of a terminal, one at a time and without echo."""

from __future__ import annotations

import codecs
import os
import re
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
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
}
#: A sequence of a key: whole, and one whose rest has not come yet.
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[@-~]|O[@-~])")
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;?]*|O)?")
#: Seconds in which the rest of a sequence comes; what comes later is another key.
_REST: Final = 0.05
_READ: Final = 1024


@contextmanager
def single_keys(descriptor: int) -> Iterator[None]:
    """Set the terminal to single keys, and set it back at the end."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Keys:
    """The keys of a terminal. Several that come at once, as from a fast hand or a paste, are kept for later calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._text = descriptor, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")

    @property
    def waiting(self) -> bool:
        """Whether keys have come that `next` has not returned."""
        return bool(self._text)

    def next(self, seconds: float) -> str:
        """The next key, by name or as its character; empty after these seconds without one. Raises EOFError."""
        if not self._text:
            self._more(seconds)
        if _BEGUN.fullmatch(self._text):
            self._more(_REST)
        if not self._text:
            return ""
        found = _SEQUENCE.match(self._text)
        part = found[0] if found else self._text[0]
        self._text = self._text[len(part) :]
        return _NAMES.get(part, part if part.isprintable() else "")

    def _more(self, seconds: float) -> None:
        if select.select([self._descriptor], [], [], seconds)[0]:
            data = os.read(self._descriptor, _READ)
            if not data:
                raise EOFError
            self._text += self._decoder.decode(data)
