"""A manifest's text with every default written into it, each marked by a comment.

The text is not printed again: what is missing is put into it at the right lines, so that comments, quotes and the order
of keys stay to the letter as their author wrote them. In a block map a default is a line of its own below the last
entry; in braces it goes first, because there a comment may follow the comma.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import yaml

from kerf.manifests import checking, documents
from kerf.manifests.documents import Document
from kerf.manifests.nodes import Node, Place, Unreadable
from kerf.manifests.written import flow, last_line, own_keys
from kerf_api.defaulting import default

MARK: Final = "  # default"
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_WIDE: Final = 1 << 20


class _Edit(NamedTuple):
    """`text` in the place of so many letters at an offset; of several at one offset the most indented comes first."""

    offset: int
    outwards: int
    order: int
    removed: int
    text: str


@dataclass(frozen=True, slots=True)
class _Text:
    """A file's text, with its lines and their offsets."""

    whole: str
    lines: tuple[int, ...]
    split: list[str]
    newline: str

    def offset(self, place: Place) -> int:
        return self.lines[place.line - 1] + place.column - 1

    def line(self, number: int) -> str:
        return self.split[number - 1]


def filled(data: bytes) -> str:
    """The text of a file with all defaults. JSON, which has no comments, becomes YAML. Raises Unreadable."""
    text = documents.decoded(data)
    found = list(_documents(data))
    if text.lstrip().startswith(("{", "[")):
        text = "---\n".join(yaml.safe_dump(d.node.value, sort_keys=False, allow_unicode=True) for d in found)
        found = list(_documents(text.encode()))
    lines = (0, *(match.end() for match in _BREAK.finditer(text)))
    source = _Text(text, lines, documents.lines(text), "\r\n" if "\r\n" in text else "\n")
    edits: dict[tuple[int, str], _Edit] = {}
    for document in found:
        for manifest in checking.manifests(document):
            for name, edit in _edits(source, manifest.node, default(manifest.node.value)):
                edits.setdefault((edit.offset, name), edit._replace(order=len(edits)))
    return _applied(source, sorted(edits.values()))


def _documents(data: bytes) -> Iterator[Document]:
    for part in documents.read(data):
        if isinstance(part, Unreadable):
            raise part
        yield part


def _applied(source: _Text, edits: list[_Edit]) -> str:
    parts, done = [], 0
    for edit in edits:
        parts += [source.whole[done : edit.offset], edit.text]
        done = edit.offset + edit.removed
    return "".join(parts) + source.whole[done:]


def _edits(source: _Text, node: Node, after: Any) -> Iterator[tuple[str, _Edit]]:
    """What has to be written so that a node's text says `after`; what an alias repeats is written at its anchor."""
    if node.style == "*":
        return
    if isinstance(node.value, list):
        for index, child in node.below.items():
            yield from _edits(source, child, after[index])
    elif isinstance(node.value, dict):
        missing = {name: value for name, value in after.items() if name not in node.value}
        for name, value in missing.items():
            yield name, _entry(source, node, name, value)
        if missing and node.style == "{":
            yield "", _Edit(_inside(source, node), 1, 0, 0, _new_line(source, node.start))
        for name, child in node.below.items():
            if child.value is None and after.get(name) is not None:
                yield str(name), _instead_of_null(source, node, child, after[name])
            elif name in after:
                yield from _edits(source, child, after[name])


def _entry(source: _Text, node: Node, name: str, value: Any) -> _Edit:
    """A key that is missing in a map, in the map's own style."""
    if node.style == "{":
        text = f"{_new_line(source, node.start)}{flow({name: value})[1:-1]},{MARK}"
        return _Edit(_inside(source, node), 0, 0, 0, text)
    indent = next(iter(own_keys(node)), node).start.column - 1
    first, *more = yaml.safe_dump({name: value}, sort_keys=False, width=_WIDE, allow_unicode=True).splitlines()
    text = source.newline.join(" " * indent + line for line in (first + MARK, *more))
    last = last_line(source.split, node)
    if last < len(source.lines):
        return _Edit(source.lines[last], -indent, 0, 0, text + source.newline)
    return _Edit(len(source.whole), -indent, 0, 0, source.newline + text)


def _inside(source: _Text, node: Node) -> int:
    """Just behind the brace that opens a map; an anchor may stand before it."""
    return source.whole.index("{", source.offset(node.start)) + 1


def _instead_of_null(source: _Text, parent: Node, child: Node, value: Any) -> _Edit:
    """A null takes the default. In braces the line must end after the comment."""
    begin, end = source.offset(child.start), source.offset(child.end)
    text = f"{'' if end > begin else ' '}{flow(value)}{MARK}"
    if parent.style == "{":
        text += _new_line(source, child.start)
    return _Edit(begin, 0, 0, end - begin, text)


def _new_line(source: _Text, place: Place) -> str:
    """The break after a comment in braces, and the indentation of what follows."""
    line = source.line(place.line)
    inner = line.lstrip(" ")
    return source.newline + " " * (len(line) - len(inner) + (4 if inner.startswith("- ") else 2))
