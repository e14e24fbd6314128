"""A planted bug as data: pieces of source that are replaced, what goes wrong with that, and which tests must fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: The tests of the rules: the whole controller in the sandbox.
RULES = "tests/simulation/test_rules.py"


class DoesNotApply(Exception):
    """A piece of source that should be replaced occurs never, or more than once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """In `file` (relative to the root of the repository), `new` takes the place of `old`."""

    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The file's text with the change. Raises DoesNotApply."""
        count = text.count(self.old)
        if count != 1:
            raise DoesNotApply(f"{self.file} has {count} times, not once:\n{self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Bug:
    """`breaks` says in one sentence what goes wrong.

    `tests` (pytest's node IDs) fail with it, one after another by themselves; so does one of these `seeds` of the
    simulation (none where none is known to).
    """

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    seeds: range = range(0)

    def plant(self, root: Path) -> None:
        """Change the sources below `root`. Raises DoesNotApply."""
        for edit in self.edits:
            file = root / edit.file
            file.write_text(edit.applied(file.read_text(encoding="utf-8")), encoding="utf-8")


def rule(name: str) -> str:
    """The node ID of a test of the rules."""
    return f"{RULES}::{name}"
