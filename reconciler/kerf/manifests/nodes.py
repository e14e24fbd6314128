"""A YAML document as values that know where they were written.

Built from the parser's events in one pass: plain values for the linter, and beside them the line and column of every
key and value, so that a problem's path can be shown as a place in a file. Anchors, aliases and merge keys are resolved
here, and here is where a document that would unfold without end is stopped. Lines and columns count from 1.

Most values never have a problem, so their marks are kept as the parser made them and become places when one is asked.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from yaml.events import AliasEvent, MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent

from kerf.manifests import scalars

#: Deeper than the linter bears, so that it can say so itself with a path.
DEEPEST: Final = 100
#: How many values aliases may repeat in one document: far more than any manifest, far less than would hurt.
MOST_REPEATED: Final = 100_000
MERGE: Final = "<<"
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})

Steps = tuple[str | int, ...]


class Place(NamedTuple):
    """A line and a column of a file, both from 1."""

    line: int
    column: int


class Unreadable(Exception):
    """A file or a document that cannot be understood: the rule, the place and the words."""

    def __init__(self, rule: str, place: Place, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.rule, self.place, self.message, self.hint = rule, place, message, hint


class Node:
    """A value and its place.

    `first`, `last` are the parser's marks and `offset` the line of the file in which it began to count. `word` is an
    unquoted word whose meaning is no text (`on`), "" for everything else. `keys` are the nodes of a map's keys, `below`
    those of its values by key, or of a list's entries by index. `size` counts the values within, those that aliases
    repeat as often as they are repeated. `style` is the parser's: `|` for a literal block; "{" for collections in
    brackets and "*" for an alias.
    """

    __slots__ = ("below", "first", "keys", "last", "offset", "size", "style", "value", "word")

    def __init__(self, value: Any, first: Any, last: Any, offset: int, word: str = "", style: str = "") -> None:
        self.value, self.first, self.last, self.offset = value, first, last, offset
        self.word, self.style, self.size = word, style, 1
        self.keys: Mapping[str, Node] = _NOTHING
        self.below: Mapping[str | int, Node] = _NOTHING

    @property
    def start(self) -> Place:
        """Where the value begins."""
        return Place(self.first.line + self.offset, self.first.column + 1)

    @property
    def end(self) -> Place:
        """The place just after the value."""
        return Place(self.last.line + self.offset, self.last.column + 1)


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that can be read but should not be so: a key that is written twice, or is read as something else."""

    rule: str
    place: Place
    message: str
    hint: str
    steps: Steps


class Builder:
    """Builds the nodes of one document; `event` gives the parser's next event, `first_line` is where its count began.

    Raises Unreadable for what no cluster could read either.
    """

    def __init__(self, event: Callable[[], Any], first_line: int) -> None:
        self._event, self._offset = event, first_line
        self._anchors: dict[str, Node] = {}
        self._open: set[str] = set()
        self._repeated = 0
        self.oddities: list[Oddity] = []

    def node(self, event: Any, steps: Steps = ()) -> Node:
        """The node that begins with this event, and all below it."""
        kind, anchor = event.__class__, event.anchor
        if kind is ScalarEvent:
            node = self._scalar(event)
        elif kind is AliasEvent:
            return self._alias(event)
        elif len(steps) > DEEPEST:
            message = f"is nested more than {DEEPEST} levels deep"
            raise Unreadable("KERF-FILE-LIMIT", self._place(event), message, "no manifest is that deep")
        else:
            self._open.add(anchor)
            node = self._map(event, steps) if kind is MappingStartEvent else self._list(event, steps)
            self._open.discard(anchor)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _place(self, event: Any) -> Place:
        return Place(event.start_mark.line + self._offset, event.start_mark.column + 1)

    def _alias(self, event: Any) -> Node:
        """What the anchor has, shown where the alias stands; what lies within is shown where it was written."""
        place, name = self._place(event), event.anchor
        if name in self._open:
            raise Unreadable("KERF-FILE-YAML", place, f"*{name} is inside &{name} and would be endless")
        if name not in self._anchors:
            raise Unreadable("KERF-FILE-YAML", place, f"*{name} repeats &{name}, but nothing above is named so")
        there = self._anchors[name]
        self._repeated += there.size
        if self._repeated > MOST_REPEATED:
            message = f"with *{name}, more than {MOST_REPEATED} values of this document are repetitions"
            raise Unreadable("KERF-FILE-LIMIT", place, message, "use fewer aliases")
        node = Node(there.value, event.start_mark, event.end_mark, self._offset, there.word, "*")
        node.keys, node.below, node.size = there.keys, there.below, there.size
        return node

    def _scalar(self, event: Any) -> Node:
        word, kept = event.value, ""
        if event.implicit[0]:
            value = scalars.meaning(word)
            if value is not word:
                kept = word
        elif event.tag:
            value = self._tagged(event)
        else:
            value = word
        return Node(value, event.start_mark, event.end_mark, self._offset, kept, event.style)

    def _tagged(self, event: Any) -> Any:
        try:
            if event.tag.endswith((":binary", "!binary")):
                return base64.b64decode(event.value).decode("utf-8", "replace")
            return scalars.tagged(event.value, event.tag)
        except ValueError as error:
            raise Unreadable("KERF-FILE-YAML", self._place(event), str(error)) from error

    def _list(self, event: Any, steps: Steps) -> Node:
        values: list[Any] = []
        below: dict[str | int, Node] = {}
        size = 1
        while (entry := self._event()).__class__ is not SequenceEndEvent:
            index = len(values)
            node = below[index] = self.node(entry, (*steps, index))
            values.append(node.value)
            size += node.size
        result = Node(values, event.start_mark, entry.end_mark, self._offset, style="[" if event.flow_style else "")
        result.below, result.size = below, size
        return result

    def _map(self, event: Any, steps: Steps) -> Node:
        values: dict[str, Any] = {}
        keys: dict[str, Node] = {}
        below: dict[str | int, Node] = {}
        merged: list[Node] = []
        size = 1
        while (entry := self._event()).__class__ is not MappingEndEvent:
            key = self.node(entry, (*steps, ""))
            if key.value == MERGE and entry.__class__ is ScalarEvent and entry.implicit[0]:
                merged += self._mergeable(self.node(self._event(), (*steps, MERGE)))
                continue
            name = key.value if key.value.__class__ is str else self._name(key, steps)
            if name in keys:
                self._twice(name, keys[name].start, key.start, steps)
            node = below[name] = self.node(self._event(), (*steps, name))
            values[name], keys[name] = node.value, key
            size += node.size + 1
        result = Node(values, event.start_mark, entry.end_mark, self._offset, style="{" if event.flow_style else "")
        result.keys, result.below, result.size = keys, below, size
        for source in merged:
            # What a merge brings are entries that the map does not have yet, with their own places.
            for name in [name for name in source.keys if name not in keys]:
                values[name], keys[name], below[name] = source.value[name], source.keys[name], source.below[name]
                result.size += below[name].size + 1
        return result

    def _mergeable(self, node: Node) -> list[Node]:
        sources = list(node.below.values()) if isinstance(node.value, list) else [node]
        if any(not isinstance(source.value, dict) for source in sources):
            raise Unreadable("KERF-FILE-YAML", node.start, f"{MERGE} merges maps, and this is none")
        return sources

    def _name(self, key: Node, steps: Steps) -> str:
        """The text that a key becomes which is none."""
        name = None if isinstance(key.value, (dict, list)) else scalars.key_text(key.value)
        if name is None:
            what = "empty" if key.value is None else "a map or a list"
            raise Unreadable("KERF-FILE-YAML", key.start, f"the key is {what}; keys are texts", "put it in quotes")
        if key.word and name != key.word:
            message, hint = f'the key {key.word} is read as "{name}"', f'put it in quotes: "{key.word}"'
            self.oddities.append(Oddity("KERF-FILE-KEY", key.start, message, hint, (*steps, name)))
        return name

    def _twice(self, name: str, first: Place, again: Place, steps: Steps) -> None:
        message = f"the key {name} is written twice in one map, first in line {first.line}"
        hint = "remove one of the two; some tools keep the last, others refuse the file"
        self.oddities.append(Oddity("KERF-FILE-TWICE", again, message, hint, (*steps, name)))


def locate(node: Node, steps: Steps) -> tuple[Place, Place]:
    """Where a path is written, from and to: a scalar itself, the key of a map or list, or of the nearest parent."""
    shown = node
    for step in steps:
        if step not in node.below:
            break
        child = node.below[step]
        named = isinstance(step, str) and (isinstance(child.value, (dict, list)) or child.value is None)
        shown = node.keys[str(step)] if named else child
        node = child
    return _span(shown)


def locate_key(node: Node, steps: Steps) -> tuple[Place, Place] | None:
    """Where the last key of a path is written; None when it is missing or an index."""
    for step in steps[:-1]:
        if step not in node.below:
            return None
        node = node.below[step]
    key = node.keys.get(str(steps[-1])) if steps and isinstance(steps[-1], str) else None
    return _span(key) if key is not None else None


def _span(node: Node) -> tuple[Place, Place]:
    """From and to, of what takes several lines only where it begins."""
    start, end = node.start, node.end
    return start, end if end.line == start.line else Place(start.line, start.column + 1)
