"""Every regular expression takes linear time, by its form.

Python's engine backtracks. It is linear where each character leaves one way to go on: then a failure has nothing else
to try. For each expression of the sources, the positions that may follow each other are worked out (the automaton of
Glushkov). Two rules are checked:

- Ways: of the positions that may follow one within a repetition, no two take the same character when one of them is in
  that repetition. A possessive repetition leaves no second way. Otherwise `(#[^\\n]*)*` and `[ -]+.*$` would pass.
- Starts: a search tries every place. A repetition with something behind it must not take a character that begins a
  match, or each place would read the rest of the text again.

Repetitions with a bound count where they are within an unbounded one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.sources import FOLDERS, ROOT

PACKAGES = (*FOLDERS.values(), "image")
#: Expressions for texts that no stranger writes, or that are linear for another reason.
EXEMPT = {
    "api/kerf_api/lint/expressions/cel.py": "the rules of Kerf's own CRDs",
    "api/kerf_api/lint/rulebook/paths.py": "the paths of Kerf's own rules",
    "image/holdings.py": "the files of the image that is built",
    "reconciler/kerf/kube/transport.py": "a header of at most 64 KiB; a quote ends each match",
    "reconciler/kerf/sandbox/api/selectors.py": "the selectors of Kerf's own requests to its sandbox",
    "reconciler/kerf/scheduling/devices/selectors.py": "punctuation ends each match where another may begin",
}
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
ANCHORED = {"match", "fullmatch"}
#: Each kind of character that expressions tell apart is among these.
ALPHABET = [*map(chr, range(256)), "\u0130", "\u0431", "\u2028", "\u3000", "\ud800", "\U0001f600"]
Parsed = Any
_sre: Any = re._parser
_constants: Any = re._constants


@dataclass
class Automaton:
    """The positions of an expression: their characters, those that may follow (one entry a way), the repetitions."""

    flags: int
    characters: list[frozenset[str]] = field(default_factory=list)
    follow: dict[int, list[int]] = field(default_factory=dict)
    #: Each repetition: whether it is possessive, and its positions; -1 marks one with a bound below 100.
    repeats: list[tuple[bool, frozenset[int]]] = field(default_factory=list)
    ahead: bool = False

    def add(self, characters: frozenset[str]) -> tuple[set[int], set[int], bool]:
        position = len(self.characters)
        self.characters.append(characters)
        self.follow[position] = []
        return {position}, {position}, False

    def sequence(self, items: Sequence[Any]) -> tuple[set[int], set[int], bool]:
        first: set[int] = set()
        last: set[int] = set()
        empty = True
        for operation, value in items:
            begin, end, nullable = self.item(operation, value)
            for position in last:
                self.follow[position] += begin
            first |= begin if empty else set()
            last = end | (last if nullable else set())
            empty = empty and nullable
        return first, last, empty

    def item(self, operation: Any, value: Any) -> tuple[set[int], set[int], bool]:
        name = str(operation)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            return self.add(self.members(name, value))
        if name == "SUBPATTERN":
            return self.sequence(value[3])
        if name == "ATOMIC_GROUP":
            return self.sequence(value)
        if name == "BRANCH":
            parts = [self.sequence(branch) for branch in value[1]]
            return set().union(*(p[0] for p in parts)), set().union(*(p[1] for p in parts)), any(p[2] for p in parts)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self.repeat(name == "POSSESSIVE_REPEAT", *value)
        if name in ("ASSERT", "ASSERT_NOT"):
            self.ahead |= any(str(op).endswith("REPEAT") and v[1] > 99 for op, v in _flat(value[1]))
            return set(), set(), True
        assert name in ("AT", "GROUPREF"), name
        return set(), set(), True

    def repeat(self, possessive: bool, least: int, most: int, inner: Parsed) -> tuple[set[int], set[int], bool]:
        before = len(self.characters)
        first, last, empty = self.sequence(inner)
        if most > 1:
            for position in last:
                self.follow[position] += first
            self.repeats.append((possessive, frozenset(range(before, len(self.characters)))))
            if most <= 99:
                self.repeats[-1] = (possessive, self.repeats[-1][1] | {-1})
        return first, last, empty or least == 0

    def members(self, name: str, value: Any) -> frozenset[str]:
        if name == "ANY":
            return frozenset(c for c in ALPHABET if c != "\n" or self.flags & re.DOTALL)
        items = value if name == "IN" else [(_constants.LITERAL, value)]
        found = {c for c in ALPHABET for item in items if _takes(item, c, self.flags)}
        negated = name == "NOT_LITERAL" or str(items[0][0]) == "NEGATE"
        return frozenset(ALPHABET) - found if negated else frozenset(found)


def _takes(item: Any, character: str, flags: int) -> bool:
    operation, value = str(item[0]), item[1]
    forms = {character, character.lower(), character.upper()} if flags & re.IGNORECASE else {character}
    if operation == "LITERAL":
        return chr(value) in forms
    if operation == "RANGE":
        return any(len(form) == 1 and value[0] <= ord(form) <= value[1] for form in forms)
    if operation == "CATEGORY":
        letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).split("_")[-1]]
        letter = letter.upper() if "_NOT_" in str(value) else letter
        return re.fullmatch(f"\\{letter}", character, flags & re.ASCII) is not None
    return False


def _flat(items: Any) -> Iterator[tuple[Any, Any]]:
    for operation, value in items:
        yield operation, value
        for inner in value if isinstance(value, (tuple, list)) else ():
            if isinstance(inner, _sre.SubPattern):
                yield from _flat(inner)
            elif isinstance(inner, list):
                for branch in inner:
                    if isinstance(branch, _sre.SubPattern):
                        yield from _flat(branch)


def faults(pattern: str, flags: int = 0, *, searched: bool = False) -> list[str]:
    """The rules that an expression breaks."""
    parsed = _sre.parse(pattern, flags)
    made = Automaton(parsed.state.flags)
    first, last, _ = made.sequence(parsed)
    found = ["a repetition within a look-around"] if made.ahead else []
    for possessive, positions in made.repeats:
        bounded = -1 in positions and not any(-1 not in outer and positions - {-1} < outer for _, outer in made.repeats)
        if possessive or bounded:
            continue
        for position in positions - {-1}:
            after = sorted(made.follow[position])
            for index, one in enumerate(after):
                for other in after[index + 1 :]:
                    within = one in positions or other in positions
                    sealed = any(
                        p and position in s and ((one in s) != (other in s) or (one == other and s < positions))
                        for p, s in made.repeats
                    )
                    if within and not sealed and made.characters[one] & made.characters[other]:
                        found.append(f"two ways for {sorted(made.characters[one] & made.characters[other])[0]!r}")
    start = str(parsed[0][1]) if len(parsed) and str(parsed[0][0]) == "AT" else ""
    behind = parsed[0][1][1] if len(parsed) and str(parsed[0][0]) == "ASSERT_NOT" and parsed[0][1][0] < 0 else ()
    never = {c for operation, value in behind for c in made.members(str(operation), value)}
    if searched and not (start.startswith("AT_BEGINNING") and not made.flags & re.MULTILINE):
        begins = {"\n"} if start == "AT_BEGINNING" else set().union(*(made.characters[p] for p in first))
        for _, positions in made.repeats:
            if -1 in positions or positions & last:
                continue
            taken = set().union(*(made.characters[p] for p in positions))
            if taken & (begins - never):
                found.append(f"a search begins again at {sorted(taken & (begins - never))[0]!r}")
    return sorted(set(found))


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None


def _flags(nodes: Sequence[ast.expr]) -> int:
    names = {n.attr for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return sum(getattr(re, name).value for name in names if name.isupper())


def expressions() -> Iterator[tuple[str, str, int, bool]]:
    """Place, text, flags, and whether it is searched for, of each expression in the sources."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text()
            if "re." in source:
                yield from _expressions_of(str(path.relative_to(ROOT)), ast.parse(source))


def _expressions_of(file: str, tree: ast.Module) -> Iterator[tuple[str, str, int, bool]]:
    nodes = list(ast.walk(tree))
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
            names.setdefault(node.value.id, set()).add(node.attr)
    assigned = {
        id(n.value): (n.targets[0] if isinstance(n, ast.Assign) else n.target)
        for n in nodes
        if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None
    }
    for call in nodes:
        function = call.func if isinstance(call, ast.Call) else None
        if not (isinstance(call, ast.Call) and isinstance(function, ast.Attribute) and call.args):
            continue
        text, method = _text(call.args[0]), function.attr
        of_re = isinstance(function.value, ast.Name) and function.value.id == "re"
        if not of_re or text is None or method not in ("compile", *METHODS):
            continue
        target = assigned.get(id(call))
        used = names.get(target.id, set()) if isinstance(target, ast.Name) else set()
        how = {method} if method != "compile" else used or {"search"}
        more = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        yield (
            f"{file}:{call.lineno}",
            text,
            _flags(more) if method in ("compile", *ANCHORED) else _flags(more[-1:]),
            bool(how - ANCHORED),
        )


FOUND = list(expressions())


def test_the_expressions_of_the_sources_are_found() -> None:
    assert len(FOUND) > 80
    assert {"api/kerf_api/durations.py", "reconciler/kerf/manifests/documents.py"} <= {
        place.split(":")[0] for place, *_ in FOUND
    }


@pytest.mark.parametrize(("place", "text", "flags", "searched"), FOUND, ids=[row[0] for row in FOUND])
def test_an_expression_is_linear(place: str, text: str, flags: int, searched: bool) -> None:
    found = faults(text, flags, searched=searched)
    assert found == [] or place.split(":")[0] in EXEMPT


def test_an_exemption_is_needed() -> None:
    flawed = {place.split(":")[0] for place, text, flags, searched in FOUND if faults(text, flags, searched=searched)}
    assert flawed == set(EXEMPT)


@pytest.mark.parametrize(
    ("pattern", "searched", "words"),
    [
        (r"(?:[ \n]|#[^\n]*|---)*", False, "two ways for"),
        (r"(?:\s*(?:#[^\n]*|%[^\n]*))*\s*", False, "two ways for"),
        (r"(a+)+b", False, "two ways for 'a'"),
        (r"(ab|ac?b)*d", False, "two ways for 'b'"),
        (r"(a{0,9})*b", False, "two ways for 'a'"),
        (r"[ -]+.*$", False, "two ways for"),
        (r"\d*,?\d*x", False, "two ways for '0'"),
        (r"\{\{.*?\}\}", True, "two ways for '}'"),
        (r"\s+x", True, "a search begins again at"),
        (r",(?![^(]*\))", True, "a repetition within a look-around"),
    ],
)
def test_an_expression_that_is_not_linear_is_found(pattern: str, searched: bool, words: str) -> None:
    assert any(fault.startswith(words) for fault in faults(pattern, searched=searched))


@pytest.mark.parametrize("pattern", [r"(?:[ \n]++|#[^\n]*+|---)*+", r"[a-z]+(?:-+[a-z]+)*", r"(?:0|[0-9]+(?:s|m))x"])
def test_an_expression_that_is_linear_passes(pattern: str) -> None:
    assert faults(pattern) == []
