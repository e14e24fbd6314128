"""The catalogues of numbered behaviours: which tests bear each number, and where Kerf says why it differs.

A test bears a number by its name (`test_NNN_words`); a row `| NNN | why |` below the heading `## Where Kerf differs` of
the room's document says why a behaviour is another one here. Where both are there, the test shows what Kerf does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from tests.sources import ROOT

#: One in so many behaviours may differ.
MAY_DIFFER = 20


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`files` are globs below the root; `to_come` are numbers that are not built, or not built completely, yet."""

    name: str
    numbers: range
    files: tuple[str, ...]
    document: str
    to_come: Collection[int] = ()

    def tests(self) -> dict[int, list[str]]:
        """The test functions that bear each number, as pytest's node IDs."""
        found: dict[int, list[str]] = {}
        for path in sorted({path for pattern in self.files for path in ROOT.glob(pattern)}):
            for name in re.findall(r"^def (test_\d{3}_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
                found.setdefault(int(name[5:8]), []).append(f"{path.relative_to(ROOT)}::{name}")
        return found

    def rows(self) -> Counter[int]:
        """How many rows of the table are about each number."""
        _, _, table = (ROOT / self.document).read_text(encoding="utf-8").partition("## Where Kerf differs")
        return Counter(int(number) for number in re.findall(r"^\| (\d+) \| \S.*\|$", table, re.MULTILINE))

    def missing(self) -> list[int]:
        """Numbers with neither a test nor a row."""
        known = {*self.tests(), *self.rows(), *self.to_come}
        return [number for number in self.numbers if number not in known]

    def unknown(self) -> list[int]:
        """Numbers of tests or rows that the catalogue does not have, or that have two rows."""
        rows = self.rows()
        strange = {*self.tests(), *rows} - set(self.numbers)
        return sorted(strange | {number for number, count in rows.items() if count > 1})

    def differing(self) -> float:
        """How many of its behaviours differ, of those that are built, as a share of what may (1: all of it)."""
        return len(self.rows()) * MAY_DIFFER / (len(self.numbers) - len(self.to_come))


SCHEDULING = Catalogue(
    "scheduling", range(1, 234), ("tests/unit/scheduling/test_catalogue_*.py",), "docs/scheduling.md"
)
DISRUPTION = Catalogue(
    "disruption", range(1, 170), ("tests/unit/disruption/catalogue/test_*.py",), "docs/disruption.md"
)
AWS = Catalogue(
    "aws",
    range(1, 228),
    (
        "tests/unit/aws/catalogue/test_*.py",
        "tests/contract/test_aws_catalogue_*.py",
        "tests/contract/test_cloud_placement.py",
        "tests/unit/disruption/test_impairment.py",
        "tests/unit/aws/test_aws_batches.py",
        "tests/unit/aws/test_aws_pace.py",
        "tests/unit/runtime/test_impairments.py",
    ),
    "docs/aws.md",
)
CATALOGUES = {each.name: each for each in (SCHEDULING, DISRUPTION, AWS)}
