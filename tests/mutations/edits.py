"""Edits of a planted bug: in a definition, wherever it lives, a piece of its syntax tree is replaced.

    Edit("reconciler/kerf/ec2:Candidates.cheapest", "max(prices)", "min(prices)")

Names a folder and a definition by its qualified name: a function, a class, or an assignment of a module or class. Other
files of the folder, line breaks, comments and spaces do not matter, so a definition may move within the folder. The
piece is an expression, statements that follow each other, or the head of a statement up to its colon, which keeps its
blocks. Without a definition the place is a file, and the piece is
text that occurs once in it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody")


class DoesNotApply(Exception):
    """The piece to replace occurs never, or more than once; or its definition does."""


@dataclass(frozen=True, slots=True)
class Edit:
    """At `place`, `new` replaces `old`; see the module."""

    place: str
    old: str
    new: str

    def apply(self, sources: Sources) -> None:
        """Make the change in the sources. Raises DoesNotApply."""
        place, _, definition = self.place.partition(":")
        if definition:
            self._apply_to_syntax(sources, place, definition)
        else:
            sources.write(place, self._replaced(sources.read(place)))

    def _replaced(self, text: str) -> str:
        count = text.count(self.old)
        if count != 1:
            raise DoesNotApply(f"{self.place} has {count} times, not once:\n{self.old}")
        return text.replace(self.old, self.new)

    def _apply_to_syntax(self, sources: Sources, folder: str, definition: str) -> None:
        old, new = _piece(self.old, self.new)
        found = [(file, len(one.matches(old))) for file, one in sources.definitions(folder, definition)]
        count = sum(number for _, number in found)
        if count != 1:
            places = ", ".join(file for file, _ in found) or "no file"
            raise DoesNotApply(f"{self.place} ({places}) has {count} times, not once:\n{self.old}")
        (file,) = (file for file, number in found if number)
        tree = ast.parse(sources.read(file))
        (match,) = (m for one in _within(tree, "") if one.name == definition for m in one.matches(old))
        match.replace(new, head=self.old.endswith(":"))
        sources.write(file, ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def changed(edits: Iterable[Edit], root: Path) -> Mapping[str, str]:
    """Return the new texts of the files below `root` that the edits change, by path. Raises DoesNotApply."""
    sources = Sources(root)
    for edit in edits:
        edit.apply(sources)
    return sources.changed


@dataclass(slots=True)
class Sources:
    """The files below `root`, and changes that are not written there."""

    root: Path
    changed: dict[str, str] = field(default_factory=dict)

    def read(self, file: str) -> str:
        if file in self.changed:
            return self.changed[file]
        return (self.root / file).read_text(encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        self.changed[file] = text

    def definitions(self, folder: str, name: str) -> Iterator[tuple[str, _Definition]]:
        """All definitions of that qualified name in the Python files of the folder and those below it."""
        last = name.rpartition(".")[2]
        for path in sorted((self.root / folder).rglob("*.py")):
            file = path.relative_to(self.root).as_posix()
            text = self.read(file)
            if last in text:
                yield from ((file, one) for one in _definitions(text).get(name, ()))


@dataclass(frozen=True, slots=True)
class _Match:
    """A place in a tree: the items `first` to `last` of a list, or the one value, in a field of `parent`."""

    parent: ast.AST
    field: str
    first: int | None = None
    last: int = 0

    def is_only(self, statement: ast.stmt) -> bool:
        return self.first is not None and getattr(self.parent, self.field)[self.first : self.last] == [statement]

    def replace(self, new: Sequence[ast.AST], *, head: bool) -> None:
        """Put the new piece there; a `head` gets the blocks of the old one."""
        if self.first is None:
            setattr(self.parent, self.field, new[0])
            return
        items = getattr(self.parent, self.field)
        if head:
            for name in _BLOCKS:
                setattr(new[0], name, getattr(items[self.first], name, []))
        items[self.first : self.last] = new
        if not items and self.field == "body":
            items.append(ast.Pass())


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition by its qualified name, and the node that it is a statement of."""

    name: str
    statement: ast.stmt
    parent: ast.AST

    def matches(self, piece: Sequence[ast.AST]) -> list[_Match]:
        """The places of the piece in the definition; it may be all of it."""
        if isinstance(piece[0], ast.expr):
            wanted = ast.dump(piece[0])
            return [m for node in ast.walk(self.statement) for m in _expressions(node, piece[0], wanted)]
        here = [m for m in _statements(self.parent, piece) if m.is_only(self.statement)]
        return [*here, *(m for node in ast.walk(self.statement) for m in _statements(node, piece))]


def _piece(old: str, new: str) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
    """Both as expressions if both are, else as statements; a head has an empty body. Raises SyntaxError."""
    if old.endswith(":"):
        return [_head(ast.parse(old + " ...").body[0])], [_head(ast.parse(new + " ...").body[0])]
    try:
        return [ast.parse(old, mode="eval").body], [ast.parse(new, mode="eval").body]
    except SyntaxError:
        return ast.parse(old).body, ast.parse(new).body


def _head(statement: ast.AST) -> ast.AST:
    """The statement without its blocks."""
    blocks: dict[str, list[ast.stmt]] = {name: [] for name in _BLOCKS if hasattr(statement, name)}
    return type(statement)(**{**dict(ast.iter_fields(statement)), **blocks})


def _expressions(parent: ast.AST, piece: ast.expr, wanted: str) -> Iterator[_Match]:
    for name, value in ast.iter_fields(parent):
        if isinstance(value, list):
            for number, item in enumerate(value):
                if type(item) is type(piece) and ast.dump(item) == wanted:
                    yield _Match(parent, name, number, number + 1)
        elif type(value) is type(piece) and ast.dump(value) == wanted:
            yield _Match(parent, name)


def _statements(parent: ast.AST, piece: Sequence[ast.AST]) -> Iterator[_Match]:
    wanted = [ast.dump(one) for one in piece]
    is_head = getattr(piece[0], "body", None) == []
    for name in _BLOCKS:
        block = getattr(parent, name, None)
        if isinstance(block, list) and len(block) >= len(wanted):
            found = [ast.dump(_head(one) if is_head else one) for one in block]
            for first in range(len(found) - len(wanted) + 1):
                if found[first : first + len(wanted)] == wanted:
                    yield _Match(parent, name, first, first + len(wanted))


def _within(parent: ast.AST, prefix: str) -> Iterator[_Definition]:
    """Each definition below a node, those within classes and functions too."""
    named = isinstance(parent, ast.Module | ast.ClassDef)
    for one in ast.iter_child_nodes(parent):
        if isinstance(one, _DEFINES):
            yield _Definition(prefix + one.name, one, parent)
            yield from _within(one, f"{prefix}{one.name}.")
        elif isinstance(one, ast.stmt):
            if named:
                yield from (_Definition(prefix + name, one, parent) for name in _assigned(one))
            yield from _within(one, prefix)


def _assigned(statement: ast.stmt) -> Iterator[str]:
    """The names that an assignment of a module or a class binds."""
    targets: Sequence[ast.expr] = ()
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = (statement.target,)
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


@cache
def _definitions(text: str) -> Mapping[str, Sequence[_Definition]]:
    """The definitions of a module by name; the trees are shared, so they must not be changed."""
    found = defaultdict[str, list[_Definition]](list)
    for one in _within(ast.parse(text), ""):
        found[one.name].append(one)
    return found
