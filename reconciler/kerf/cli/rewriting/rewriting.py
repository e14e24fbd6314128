"""New objects written down with what was written about the old ones: comments, quotes, the form of maps and lists.

What was moved whole is copied to the letter and indented again; the rest is written from its values, and comments go
where their key went. The comment of something that has no place in the new object goes before what followed it, so that
none is lost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kerf.manifests.comments import Entry, Page
from kerf.manifests.nodes import Node, Steps
from kerf.manifests.written import flow, literal
from kerf_api.conversion import Draft, Origin

_STEP: Final = 2
_WIDEST: Final = 120
Spot = tuple[int, Steps]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where a manifest is written: the number of its page, and its place in that."""

    page: int
    prefix: Steps


@dataclass(frozen=True, slots=True)
class _Source:
    """A place that a part came from; `entry` is None within brackets."""

    spot: Spot
    page: Page
    node: Node
    entry: Entry | None


class Writer:
    """Writes drafts; `sheets` are those of their origins. With `plain`, nothing is copied: where a text leans on
    anchors that are elsewhere now, it would mean nothing."""

    def __init__(self, pages: Sequence[Page], sheets: Mapping[int, Sheet], *, plain: bool = False) -> None:
        self._pages, self._sheets, self._plain = pages, sheets, plain
        self._told: set[tuple[int, int]] = set()
        self._page = 0
        self._visited: dict[int, set[Steps]] = {}
        self._strays: dict[Spot, list[str]] = {}
        self._offset = 0

    def write(self, drafts: Mapping[int, Sequence[Draft]]) -> dict[int, list[list[str]]]:
        """The lines of each object, by page; every comment of these pages is in one of them."""
        self._all(drafts)
        ends = {page: self._find_strays(page) for page in drafts}
        self._told.clear()
        written = self._all(drafts)
        for page, strays in ends.items():
            written[page][-1] += strays
        return written

    def _all(self, drafts: Mapping[int, Sequence[Draft]]) -> dict[int, list[list[str]]]:
        written: dict[int, list[list[str]]] = {}
        for page, found in drafts.items():
            self._page, self._offset = page, _list_offset(self._pages[page])
            written[page] = [self._map(draft, (), draft.values, 0) for draft in found]
        return written

    def _find_strays(self, number: int) -> list[str]:
        """Give comments that nothing took to what follows them; those that nothing follows are returned."""
        page = self._pages[number]
        seen = self._visited.get(number, set())
        visited = sorted(
            ((entry.line, entry.column, steps) for steps, entry in page.entries.items() if steps in seen),
            key=lambda found: found[:2],
        )
        begins = [begin for begin, *_ in visited]
        ends = []
        for line, text in page.comments.items():
            if (number, line) in self._told:
                continue
            following = bisect_right(begins, line)
            if following == len(visited):
                ends.append(text)
            else:
                self._strays.setdefault((number, visited[following][-1]), []).append(text)
        return ends

    def _find(self, origin: Origin) -> _Source | None:
        sheet = self._sheets[origin.manifest]
        page, steps = self._pages[sheet.page], (*sheet.prefix, *origin.steps)
        node = page.root
        for step in steps:
            if step not in node.below:
                return None
            node = node.below[step]
        return _Source((sheet.page, steps), page, node, page.entries.get(steps))

    def _map(self, draft: Draft, path: Steps, values: Mapping[str, Any], indent: int) -> list[str]:
        lines: list[str] = []
        for number, (key, value) in enumerate(values.items()):
            here = (*path, key)
            sources = self._sources(draft, here)
            lines += self._above(sources, indent, first=number == 0 and bool(path))
            lines += self._entry(draft, here, f"{flow(key)}:", value, sources, indent)
        return lines

    def _list(self, draft: Draft, path: Steps, values: Sequence[Any], indent: int) -> list[str]:
        lines: list[str] = []
        for index, value in enumerate(values):
            here = (*path, index)
            sources = self._sources(draft, here)
            lines += self._above(sources, indent, first=index == 0)
            copied = self._copied(draft, here, "-", value, sources, indent)
            if copied is not None:
                lines += copied
            elif isinstance(value, dict) and value and not (sources and _is_in_brackets(sources[-1].node)):
                lines += _dashed(self._map(draft, here, value, indent + _STEP), indent)
                lines += self._below(sources, indent)
            else:
                lines += self._entry(draft, here, "-", value, sources, indent)
        return lines

    def _sources(self, draft: Draft, path: Steps) -> list[_Source]:
        return [found for origin in draft.origins(path) if (found := self._find(origin)) is not None]

    def _entry(
        self, draft: Draft, path: Steps, head: str, value: Any, sources: list[_Source], indent: int
    ) -> list[str]:
        """A key or dash with its value, and the comments after it."""
        copied = self._copied(draft, path, head, value, sources, indent)
        if copied is not None:
            return copied
        beside, above = self._beside(sources, indent)
        begin, below = " " * indent + head, self._below(sources, indent)
        if isinstance(value, str) and (block := literal(value)) is not None:
            rows = [" " * (indent + _STEP) + row if row else "" for row in block[1]]
            return [*above, f"{begin} {block[0]}{beside}", *rows, *below]
        on_one_line = f"{begin} {flow(value)}{beside}"
        if sources and _is_in_brackets(sources[-1].node) and len(on_one_line) <= _WIDEST:
            return [*above, on_one_line, *below]
        if isinstance(value, dict) and value:
            return [*above, begin + beside, *self._map(draft, path, value, indent + _STEP), *below]
        if isinstance(value, list) and value and not (all(map(_is_scalar, value)) and not sources):
            inner = self._list(draft, path, value, indent + self._offset)
            return [*above, begin + beside, *inner, *below]
        return [*above, on_one_line, *below]

    def _copied(
        self, draft: Draft, path: Steps, head: str, value: Any, sources: list[_Source], indent: int
    ) -> list[str] | None:
        """The lines as they were, where all of them can stay; None otherwise."""
        source = sources[-1] if sources else None
        if source is None or self._plain or not draft.is_moved_whole(path) or not _same(value, source.node.value):
            return None
        entry, page = source.entry, source.page
        if entry is None or (entry.key is None) != (head == "-"):
            if source.node.below and source.node.style not in ("{", "["):
                return None
            return self._copied_value(source, " " * indent + head, sources, indent)
        if _is_cut(source):
            return None
        lines = page.lines[entry.line - 1 : entry.end]
        first = lines[0][entry.column - 1 :]
        if entry.key is not None:
            if entry.key.end.line != entry.line or entry.key.style == "*":
                return None
            first = head[:-1] + lines[0][entry.key.end.column - 1 :]
        elif not first.startswith("-"):
            return None
        _, above = self._beside(sources[:-1], indent, spare=True)
        self._told.update((source.spot[0], line) for line in range(entry.line, entry.end + 1))
        shift = indent - (entry.column - 1)
        return [*above, " " * indent + first.rstrip(), *(_shifted(line, shift) for line in lines[1:])]

    def _copied_value(self, source: _Source, begin: str, sources: list[_Source], indent: int) -> list[str] | None:
        """A value alone as it was written, such as one in brackets."""
        start, end = source.node.start, source.node.end
        if source.node.value is None or start.line != end.line or source.node.style in ("|", ">", "*"):
            return None
        text = source.page.lines[start.line - 1][start.column - 1 : end.column - 1]
        beside, above = self._beside(sources, indent)
        return [*above, f"{begin} {text}{beside}", *self._below(sources, indent)]

    def _above(self, sources: Sequence[_Source], indent: int, *, first: bool) -> list[str]:
        """The lines before an entry; an empty one only where something stands before it."""
        found: list[str] = []
        for source in sources:
            if source.spot[0] == self._page:
                self._visited.setdefault(self._page, set()).add(source.spot[1])
            found += self._strays.get(source.spot, ())
            if source.entry is not None and self._take(source, [line for line, _ in source.entry.above]):
                found += [text for _, text in source.entry.above]
        while found and not found[0] and first:
            del found[0]
        return [" " * indent + text if text else "" for text in found]

    def _take(self, source: _Source, numbers: list[int]) -> bool:
        """Whether these lines were written nowhere yet; now they are."""
        spots = {(source.spot[0], number) for number in numbers}
        new = not spots & self._told
        self._told |= spots
        return new

    def _beside(self, sources: Sequence[_Source], indent: int, *, spare: bool = False) -> tuple[str, list[str]]:
        """The comment at the end of a line, and those for which there is no more room there."""
        found: list[str] = []
        for source in reversed(sources):
            entry = source.entry
            if entry is not None:
                comments = [*([entry.beside] if entry.beside else []), *entry.within]
                if self._take(source, [line for line, _ in comments]):
                    found += [text for _, text in comments]
        beside = f"  {found.pop(0)}" if found and not spare else ""
        return beside, [" " * indent + text for text in found]

    def _below(self, sources: Sequence[_Source], indent: int) -> list[str]:
        found: list[str] = []
        for source in sources:
            if source.entry is not None and self._take(source, [line for line, _ in source.entry.below]):
                found += [text for _, text in source.entry.below]
        return [" " * indent + text for text in found]


def _dashed(lines: list[str], indent: int) -> list[str]:
    """The lines of a map as an entry of a list; comments above its first key stand above the dash."""
    first = next(number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
    above = [" " * indent + line.strip() if line.strip() else "" for line in lines[:first]]
    return [*above, f"{' ' * indent}- {lines[first].lstrip()}", *lines[first + 1 :]]


def _shifted(line: str, by: int) -> str:
    if not line.strip():
        return line
    free = len(line) - len(line.lstrip(" "))
    return " " * by + line if by > 0 else line[min(-by, free) :]


def _list_offset(page: Page) -> int:
    """How far a document indents the entries of its lists below their key."""
    for entry in page.entries.values():
        if (
            entry.key is not None
            and isinstance(entry.value.value, list)
            and entry.value.style == ""
            and entry.value.below
        ):
            return max(0, entry.value.start.column - entry.column)
    return 0


def _is_cut(source: _Source) -> bool:
    """Whether a literal block ends with the file, in the middle of a line: another line would change its text."""
    node, lines = source.node, source.page.lines
    while node.below and node.style == "":
        node = max(node.below.values(), key=lambda child: child.start)
    return node.style in ("|", ">") and node.end.line == len(lines) and bool(lines[-1].strip())


def _is_in_brackets(node: Node) -> bool:
    return node.style in ("{", "[") and node.start.line == node.end.line


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _same(one: Any, other: Any) -> bool:
    """Equal and of the same types: true is no 1."""
    return one == other and repr(one) == repr(other)
