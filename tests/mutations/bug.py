"""A planted bug as data: edits of the source, the fault that they cause, and the tests that must fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.mutations.edits import Edit, changed

#: The tests of the rules: the whole controller in the sandbox.
RULES = "tests/simulation/test_rules.py"


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
        for file, text in changed(self.edits, root).items():
            (root / file).write_text(text, encoding="utf-8")


def rule(name: str) -> str:
    """The node ID of a test of the rules."""
    return f"{RULES}::{name}"
