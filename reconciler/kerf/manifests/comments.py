"""The comments of a document, each with the key or list entry that it speaks of.

A comment at the end of a line belongs to what is written there. One on a line of its own belongs to what follows, or,
when it is indented deeper than that, to what stands above: an entry of a list that is commented out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kerf.manifests.nodes import Node, Place, Steps
from kerf.manifests.texts import Texts
from kerf.manifests.written import last_line, own_keys

_BEGIN = re.compile(r"(?:^|(?<=\s))#")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=\s|$)")
_BRACKETS: Final = ("{", "[", "*")


@dataclass(slots=True)
class Entry:
    """A key of a block map, or an entry of a block list, whose `key` is None.

    `line` and `column` (from 1) are where the key or the dash stands, `end` is its last line, comments of what lies
    within included. `above` are the lines before it, "" for an empty one, `beside` the comment at its end, `within`
    those inside brackets, `below` those after it.
    """

    steps: Steps
    key: Node | None
    value: Node
    line: int
    column: int
    end: int
    above: list[tuple[int, str]] = field(default_factory=list)
    beside: tuple[int, str] | None = None
    within: list[tuple[int, str]] = field(default_factory=list)
    below: list[tuple[int, str]] = field(default_factory=list)


class Page:
    """A document with its text: `lines` are those of the file, of which `first` to `last` (from 1) are its own."""

    def __init__(self, root: Node, lines: list[str]) -> None:
        self.root, self.lines = root, lines
        self.first, self.last = _region(root, lines)
        self.entries = {entry.steps: entry for entry in _entries(root, lines, ())}
        #: Every comment's line, with its text.
        self.comments: dict[int, str] = {}
        self._assign()

    def _assign(self) -> None:
        ordered = sorted(self.entries.values(), key=lambda entry: (entry.line, entry.column))
        texts = Texts([self.root])
        waiting: list[tuple[int, str, int]] = []
        position = 0
        for number in range(self.first, self.last + 1):
            while position < len(ordered) and ordered[position].line <= number:
                self._lead(ordered, position, waiting)
                waiting = []
                position += 1
            line = self.lines[number - 1]
            above = ordered[position - 1] if position else None
            begin = _comment(line, number, texts)
            if begin is not None:
                self.comments[number] = line[begin:].rstrip()
            inside = above is not None and _last(self.lines, above) > number
            if begin is None:
                if not line.strip() and not inside:
                    waiting.append((number, "", 0))
            elif line[:begin].strip() and above is not None:
                _beside(above, number, self.comments[number], inside)
            elif inside and above is not None and above.value.style in _BRACKETS:
                above.within.append((number, self.comments[number]))
            else:
                waiting.append((number, self.comments[number], begin + 1))
        self._lead(ordered, len(ordered), waiting)

    def _lead(self, ordered: list[Entry], position: int, waiting: list[tuple[int, str, int]]) -> None:
        """Give the comments between two entries to one of them."""
        following = ordered[position] if position < len(ordered) else None
        before = ordered[position - 1] if position else None
        lead = before is None
        for number, text, column in waiting:
            if text and following is not None and column <= following.column:
                lead = True
            if following is not None and (lead or not text):
                following.above.append((number, text))
            elif text and before is not None:
                owner = self._outer(before, column)
                owner.below.append((number, text))
                self._stretch(owner, number)

    def _outer(self, entry: Entry, column: int) -> Entry:
        """The outermost entry around this one, itself included, that is indented as deep as a comment below it."""
        around = [
            self.entries[entry.steps[:n]] for n in range(1, len(entry.steps) + 1) if entry.steps[:n] in self.entries
        ]
        return next((found for found in reversed(around) if found.column <= column), around[0])

    def _stretch(self, entry: Entry, line: int) -> None:
        for depth in range(1, len(entry.steps) + 1):
            around = self.entries.get(entry.steps[:depth])
            if around is not None:
                around.end = max(around.end, line)


def _region(root: Node, lines: list[str]) -> tuple[int, int]:
    """The first and the last line of a document, without the lines that divide it from others."""
    first = root.start.line
    while first > 1 and not _MARKER.match(lines[first - 2]):
        first -= 1
    last = min(last_line(lines, root), len(lines))
    end = last
    while end < len(lines) and not _MARKER.match(lines[end]):
        end += 1
        last = end if lines[end - 1].strip() else last
    return first, last


def _entries(node: Node, lines: list[str], steps: Steps) -> Iterator[Entry]:
    if node.style in _BRACKETS:
        return
    if isinstance(node.value, dict):
        own = {id(key) for key in own_keys(node)}
        for name, key in node.keys.items():
            if id(key) in own:
                value, here = node.below[name], (*steps, name)
                end = max(key.end.line, last_line(lines, value))
                yield Entry(here, key, value, key.start.line, key.start.column, end)
                yield from _entries(value, lines, here)
    elif isinstance(node.value, list):
        for index, value in node.below.items():
            here = (*steps, index)
            line = value.start.line
            yield Entry(here, None, value, line, node.start.column, max(line, last_line(lines, value)))
            yield from _entries(value, lines, here)


def _comment(line: str, number: int, texts: Texts) -> int | None:
    """Where in a line a comment begins, from 0; None when it has none."""
    for found in _BEGIN.finditer(line):
        if not texts.have(Place(number, found.start() + 1)):
            return found.start()
    return None


def _last(lines: list[str], entry: Entry) -> int:
    """The last line of an entry that is no block collection; of one that is, its first."""
    if entry.value.below and entry.value.style not in _BRACKETS:
        return entry.line
    return last_line(lines, entry.value)


def _beside(entry: Entry, number: int, text: str, inside: bool) -> None:
    if inside and entry.value.style in _BRACKETS:
        entry.within.append((number, text))
    elif entry.beside is None:
        entry.beside = (number, text)
    else:
        entry.within.append((number, text))
