"""A problem: one thing that is wrong, or unwise, in one place of a manifest, in words that help to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

from kerf_api.texts import counted

Severity = Literal["error", "warning", "info"]
Steps = tuple[str | int, ...]

RANK: Final[dict[str, int]] = {"error": 0, "warning": 1, "info": 2}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_VALUE: Final = 80
_MOST_ENTRIES: Final = 12
#: Whole numbers beyond this are not written out: Python refuses to from 4300 digits on, and no reader needs them.
LONGEST_NUMBER_BITS: Final = 1024


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    `rule` is stable (`KERF-NP-003`), so that documentation and exceptions can name it. `path` is written like
    `spec.disruption.budgets[2].nodes`, and `steps` are the same path as keys and indexes. `message` says what is wrong
    and what is allowed; `hint` how to fix it, often with the nearest valid value; it is empty when there is no advice.
    `value` is what was found there, None when something is missing.
    """

    rule: str
    severity: Severity
    path: str
    message: str
    hint: str = ""
    value: Any = None
    steps: Steps = ()

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{where}{self.message}{advice} [{self.rule}]"


#: Problems of several manifests, each with its manifest's index.
Found = Iterator[tuple[int, Problem]]


def at(
    steps: Sequence[str | int], rule: str, severity: Severity, message: str, hint: str = "", value: Any = None
) -> Problem:
    """A problem at a place given as keys and indexes."""
    return Problem(rule, severity, path_text(steps), message, hint, value, tuple(steps))


def path_text(steps: Iterable[str | int]) -> str:
    """Keys and indexes as one text: `spec.template.metadata.labels[example.com/team]`."""
    text = ""
    for step in steps:
        if isinstance(step, int) or not _PLAIN.fullmatch(step):
            text += f"[{shown(step, quotes=False)}]"
        else:
            text += f".{step}" if text else step
    return text


def shown(value: Any, *, quotes: bool = True) -> str:
    """A value as a reader of YAML would write it, cut to a bearable length."""
    if isinstance(value, str):
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in _cut(value))
        return f'"{text}"' if quotes else text
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        parts = ", ".join(
            f"{shown(key, quotes=False)}: {shown(entry, quotes=False)}"
            for key, entry in islice(value.items(), _MOST_ENTRIES)
        )
        return _cut(f"{{{parts}}}")
    if isinstance(value, list | tuple):
        return _cut(f"[{', '.join(shown(entry, quotes=False) for entry in value[:_MOST_ENTRIES])}]")
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER_BITS:
        return "a number of hundreds of digits"
    return _cut(str(value))


def some(names: Sequence[str], total: int | None = None) -> str:
    """Some names in words: all of them when they are few. `total` counts them where `names` has only the first."""
    count = len(names) if total is None else total
    return " and ".join(sorted(names)[:3]) + (f" and {counted(count - 3, 'other')}" if count > 3 else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def ordered(problems: Iterable[Problem]) -> list[Problem]:
    """Without repetitions, the most important first: by severity, then by place, then by rule."""
    unique = {(p.rule, p.steps, p.message): p for p in problems}
    return sorted(unique.values(), key=lambda p: (RANK[p.severity], _place(p.steps), p.rule, p.message))


def ratcheted(problems: Iterable[Problem], before: Iterable[Problem]) -> list[Problem]:
    """Turn errors that the object had before into warnings, so that an old fault never blocks an unrelated change.

    A fault counts as old when the same rule complained about the same value at the same place; positions in lists do
    not matter, because entries move when one is removed.
    """
    known = {_identity(p) for p in before if p.severity == "error"}
    return ordered(_softened(p) if p.severity == "error" and _identity(p) in known else p for p in problems)


def _softened(problem: Problem) -> Problem:
    message = f"{problem.message} (it was so before this change)"
    return Problem(problem.rule, "warning", problem.path, message, problem.hint, problem.value, problem.steps)


def _identity(problem: Problem) -> tuple[str, Steps, str]:
    return problem.rule, tuple(step for step in problem.steps if isinstance(step, str)), repr(problem.value)


def _place(steps: Steps) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, step, "") if isinstance(step, int) else (1, 0, step) for step in steps)
