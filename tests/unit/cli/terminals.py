"""A program in a pseudo-terminal: all that it writes, and its exit code."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.sources import ROOT, python_path


@dataclass(frozen=True, slots=True)
class Shown:
    code: int
    text: str


#: `kerf`; the second one plays three scenes of the demo's five.
KERF = ("-m", "kerf.cli.main")
SHORT_DEMO = (
    "-c",
    "import runpy; from kerf.cli.demonstration.demo import Demo; Demo._shrink = Demo._drift = lambda self: None; "
    "runpy.run_module('kerf.cli.main', run_name='__main__')",
)


def run(*words: str, columns: int = 80, rows: int = 24, program: Sequence[str] = KERF, **environment: str) -> Shown:
    """Run `kerf` in a terminal of that size, without a cluster, an account or a configuration."""
    reading, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "HOME": "/nonexistent", **environment}
    command = [sys.executable, *program, *words]
    process = subprocess.Popen(command, stdin=own, stdout=own, stderr=own, cwd=ROOT, env=env, start_new_session=True)
    os.close(own)
    with process, os.fdopen(reading, "rb", buffering=0) as terminal:
        written = bytearray()
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            while chunk := terminal.read(1 << 16):
                written += chunk
    return Shown(process.returncode, written.decode().replace("\r\n", "\n"))


def lines(text: str, columns: int, rows: int) -> list[str]:
    """All lines that a terminal of that size keeps: those that have scrolled up, and its screen.

    It understands what Rich writes: the cursor up, the erasure of a line, and styles, which it ignores.
    """
    kept, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\??[0-9;]*[A-Za-z]|[^\x1b]", text):
        if part == "\n":
            row, column = row + 1, 0
            kept += [""] * (row + 1 - len(kept))
        elif part == "\r":
            column = 0
        elif part.endswith("A") and len(part) > 1:
            row = max(row - int(part[2:-1] or 1), len(kept) - rows, 0)
        elif part == "\x1b[2K":
            kept[row] = ""
        elif len(part) == 1:
            if column == columns:
                row, column = row + 1, 0
                kept += [""] * (row + 1 - len(kept))
            kept[row] = kept[row][:column].ljust(column) + part + kept[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in kept]
