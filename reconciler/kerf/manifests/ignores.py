"""Exceptions that stand in the file itself: `# kerf:ignore KERF-NP-201 because …`.

At the end of a line the comment covers what is shown on that line; on a line of its own, the key or list entry on the
next line and everything in it. An exception without a reason is refused, and one that covers nothing is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kerf.manifests import file_rules
from kerf.manifests.nodes import Node, Place
from kerf.manifests.texts import Texts
from kerf_api.lint import Problem, Steps, nearest

WORD: Final = "kerf:ignore"
_PREFIX: Final = "KERF-"
_COMMENT = re.compile(rf"(?:^|(?<=\s))#\s*{WORD}(?:[ \t:]++([^\r\n]*+))?$")
_TEXT = re.compile(r"(KERF-[\w-]++(?:,\s*KERF-[\w-]++)*+)(?:[\s:-]++(.*))?", re.ASCII | re.IGNORECASE)
_NO_CONTENT = re.compile(r"\s*(?:#.*|---\s*(?:#.*)?)?")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment: where it stands, the rules it names, the line it is about, and whether it covers what is within."""

    place: Place
    rules: tuple[str, ...]
    line: int
    within: bool


@dataclass(frozen=True, slots=True)
class Comments:
    """The exceptions of a file, and what is wrong with those that cannot be heeded."""

    ignores: tuple[Ignore, ...]
    faults: tuple[tuple[Place, Problem], ...]


def mentioned(text: str) -> bool:
    """Whether it is worth while to look for comments."""
    return WORD in text


def comments(lines: Sequence[str], documents: Sequence[Node], known: frozenset[str]) -> Comments:
    """The exceptions in the lines of a file; `known` are the rules that there are."""
    ignores: list[Ignore] = []
    faults: list[tuple[Place, Problem]] = []
    texts, following = Texts(documents), _following(lines)
    for number, line in enumerate(lines, 1):
        found = _COMMENT.search(line)
        if not found or texts.have(Place(number, found.start() + 1)):
            continue
        place = Place(number, found.start() + 1)
        rules, fault = _understood((found[1] or "").strip(), known)
        if fault is not None:
            faults.append((place, fault))
        elif line[: found.start()].strip() in ("", "---"):
            ignores.append(Ignore(place, rules, following[number], within=True))
        else:
            ignores.append(Ignore(place, rules, number, within=False))
    return Comments(tuple(ignores), tuple(faults))


def _understood(text: str, known: frozenset[str]) -> tuple[tuple[str, ...], Problem | None]:
    found = _TEXT.fullmatch(text)
    form = f"write it like # {WORD} KERF-NP-201 the reason"
    if not found:
        return (), _fault("the exception names no rule", form)
    rules = tuple(rule.strip().upper() for rule in found[1].split(","))
    for rule in rules:
        if rule not in known:
            return (), _fault(f"{rule} is no rule", did_you_mean(rule, known))
    if not (found[2] or "").strip():
        return (), _fault(f"the exception from {', '.join(rules)} gives no reason", form)
    return rules, None


@lru_cache(maxsize=256)
def did_you_mean(rule: str, known: frozenset[str]) -> str:
    """The nearest rule as a question; empty when none is near."""
    close = nearest.name(rule.removeprefix(_PREFIX), (one.removeprefix(_PREFIX) for one in known))
    return f"did you mean {_PREFIX}{close}?" if close else ""


def _fault(message: str, hint: str) -> Problem:
    return Problem(file_rules.IGNORE, "error", "", message, hint)


def _following(lines: Sequence[str]) -> list[int]:
    """For each line, by its number, the next that holds more than a comment or the beginning of a document, or 0."""
    found = [0] * (len(lines) + 1)
    for number in range(len(lines) - 1, -1, -1):
        found[number] = found[number + 1] if _NO_CONTENT.fullmatch(lines[number]) else number + 1
    return found


def outermost(root: Node) -> dict[int, Steps]:
    """By line, the outermost key or entry of a document that begins there."""
    found: dict[int, Steps] = {}
    level: list[tuple[Node, Steps, int, int]] = [(root, (), 0, root.end.line)]
    while level:
        deeper: list[tuple[Node, Steps, int, int]] = []
        for node, steps, first, last in level:
            for step, child in node.below.items():
                line = (node.keys[step] if isinstance(step, str) else child).start.line
                if first <= line <= last:
                    found.setdefault(line, (*steps, step))
                if child.style != "*":
                    # An entry that a merge brings stands elsewhere.
                    low, high = max(first, child.start.line), min(last, child.end.line)
                    deeper += [(child, (*steps, step), low, high)] if low <= high and child.below else []
        level = deeper
    return found


def unused(ignores: Iterable[Ignore]) -> Iterator[tuple[Place, Problem]]:
    """The problems of exceptions that covered nothing; of rules across files and about
    changes it depends on which files are given."""
    for ignore in ignores:
        if any(rule.startswith(("KERF-SET-", "KERF-DIFF-")) for rule in ignore.rules):
            continue
        message = f"nothing here breaks {' or '.join(ignore.rules)}"
        yield ignore.place, Problem(file_rules.UNUSED, "info", "", message, "remove the comment")
