"""Manifests of the kinds that users write, each with all that `kerf validate` is to find in it.

A case begins with its name and its findings, in two comments; it ends where the next one begins.
`python -m tests.field` writes the findings as they are now, to be reviewed as a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kerf.manifests import file_rules
from kerf.manifests.checking import Content, Report, Wish, check

FOLDER: Final = Path(__file__).parent
NOTHING: Final = "nothing"
_HEAD: Final = re.compile(r"^# case: (.+)\n# finds: (.+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """A manifest as text; `finds` has severity and rule of each finding, the most important first."""

    file: Path
    name: str
    finds: str
    text: str

    def report(self, text: str = "") -> Report:
        """What `kerf validate` says to it, or to another text."""
        return check([Content("f.yaml", (text or self.text).encode())], Wish(), file_rules.known)

    def found(self, text: str = "") -> str:
        """The findings as they are now."""
        problems = {(f.problem.severity, f.problem.rule): None for f in self.report(text).findings}
        order = ("error", "warning", "info")
        return ", ".join(f"{s} {r}" for s, r in sorted(problems, key=lambda p: (order.index(p[0]), p[1]))) or NOTHING

    @property
    def is_refused(self) -> bool:
        """Whether an error is to be found."""
        return "error" in self.finds


def cases() -> list[Case]:
    """All cases, in the order of files and lines."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _read(path)]


def _read(path: Path) -> Iterator[Case]:
    _, *parts = _HEAD.split(path.read_text(encoding="utf-8"))
    for name, finds, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield Case(path, name, finds, text)
