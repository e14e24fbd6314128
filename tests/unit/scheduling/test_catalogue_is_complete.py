"""Every numbered behaviour of the catalogue (scheduling reference §11) has a test that bears its number, or a row in
docs/scheduling.md that says why Kerf differs; where both are there, the test shows what Kerf does."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DOCS = ROOT / "docs" / "scheduling.md"
NUMBERS = range(1, 234)
#: At most a twentieth may differ.
MOST_ROWS = len(NUMBERS) // 20


def numbered_tests() -> dict[int, list[str]]:
    """The test functions that bear each number, as pytest's node IDs."""
    found: dict[int, list[str]] = {}
    for path in sorted(HERE.glob("test_catalogue_*.py")):
        for name in re.findall(r"^def (test_\d{3}_\w+)", path.read_text(), re.MULTILINE):
            found.setdefault(int(name[5:8]), []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def explained() -> Counter[int]:
    """How many rows of the table are about each number."""
    _, _, table = DOCS.read_text().partition("## Where Kerf differs")
    return Counter(int(number) for number in re.findall(r"^\| (\d+) \| \S.*\|$", table, re.MULTILINE))


def test_every_number_has_one_test_or_a_reason() -> None:
    tests = Counter({number: len(found) for number, found in numbered_tests().items()})
    rows = explained()
    assert [n for n in NUMBERS if not tests[n] and not rows[n]] == []
    assert [n for found in (tests, rows) for n, count in found.items() if count > 1] == []
    assert {*tests, *rows} == set(NUMBERS)


def test_few_behaviours_differ() -> None:
    assert len(explained()) <= MOST_ROWS
