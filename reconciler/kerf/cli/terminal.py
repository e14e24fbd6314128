"""Text for people: fitted to the width of a terminal, under the name by which the program was called.

Machine formats never pass through here: they are printed as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

KUBECTL: Final = "kubectl kerf"
#: The files by which kubectl finds a plugin, and its completion.
PLUGIN, COMPLETION = "kubectl-kerf", "kubectl_complete-kerf"
#: Values of TERM for terminals without escape sequences, or of unknown ones.
_DUMB: Final = frozenset({"", "dumb", "unknown"})
#: The words after `kerf` in a command.
VERBS: Final = (
    *("run", "webhook", "why", "events", "preflight", "settings", "status", "debug", "migrate", "release", "demo"),
    *("catalogue", "validate", "explain", "default", "convert", "schema", "snapshot", "plan", "replay", "bundle"),
    *("simulate", "ui", "ui-server", "top"),
)
#: A command of Kerf as a text names it; not the program in a pod, a path or a part of a word.
_COMMAND: Final = re.compile(rf"(?<![\w/.-])(?<!-- )kerf(?= (?:{'|'.join(VERBS)})\b)")
#: Lines of help that are as long as this go on in the next line.
_FULL: Final = 95
_NARROWEST: Final = 20
_INDENT: Final = 4


def program() -> str:
    """The name that a person calls: `kerf`, or `kubectl kerf` for the plugin of kubectl."""
    return KUBECTL if os.path.basename(sys.argv[0]) in (PLUGIN, COMPLETION) else "kerf"


def spelled(text: str) -> str:
    """The text with commands as the caller spells them; for the plugin each `kerf VERB` is `kubectl kerf VERB`."""
    return _COMMAND.sub(KUBECTL, text) if program() == KUBECTL else text


def plain() -> bool:
    """Whether no escape sequence may be written: by `NO_COLOR`, or for a terminal that knows none."""
    return bool(os.environ.get("NO_COLOR")) or dumb()


def dumb() -> bool:
    """Whether the terminal knows no escape sequences, and so has no cursor to move."""
    return os.environ.get("TERM", "").lower() in _DUMB


def say(text: str, *, err: bool = False, end: str = "\n", prose: bool = False) -> None:
    """Print text for people to standard output or error; in a terminal no line is wider than it, if words allow.

    Of `prose`, as helps are, full lines go on in the next one.
    """
    stream = sys.stderr if err else sys.stdout
    stream.write(fitted(spelled(text) + end, width(stream), prose=prose))
    stream.flush()


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the cells of rows below each other; the last cell of a row has any length."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    return [
        "  ".join([*(f"{cell:<{size}}" for cell, size in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def width(stream: TextIO) -> int:
    """The columns of a terminal; 0 for a stream that is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else 0


def fitted(text: str, columns: int, *, prose: bool = False) -> str:
    """The text with lines of at most `columns` characters, 0 for any length. A longer word stays whole."""
    if not columns or all(len(line) <= columns for line in text.split("\n")):
        return text
    whole, columns = text.split("\n"), max(columns, _NARROWEST)
    lines = _paragraphs(whole) if prose else whole
    return "\n".join(part for line in lines for part in _parts(line, columns, prose=prose))


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Lines of prose that go on in the next line as one; tables and indented lines as they are."""
    whole = ""
    for line in lines:
        if whole and line[:1].strip() and not _COMMAND.match(line):
            whole += f" {line}"
        elif whole:
            yield whole
            whole = line
        else:
            whole = line
        if not (_FULL <= len(line) <= 120 and line[:1].strip() and "  " not in line):
            yield whole
            whole = ""
    if whole:
        yield whole


def _parts(line: str, columns: int, *, prose: bool) -> list[str]:
    if len(line) <= columns:
        return [line]
    is_prose = prose and line[:1].strip() and "  " not in line and not _COMMAND.match(line)
    indent = "" if is_prose else " " * _hanging(line, columns)
    return textwrap.wrap(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [
        line
    ]


def _hanging(line: str, columns: int) -> int:
    """The column below which a line goes on: that of its last cell, if enough width is left, or a small indent."""
    starts = [found.end() for found in re.finditer(r"\S {2,}", line) if found.end() <= columns // 2]
    lead = len(line) - len(line.lstrip())
    return max(starts, default=min(lead + _INDENT, columns // 2))
