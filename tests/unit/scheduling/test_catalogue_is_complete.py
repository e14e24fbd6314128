"""Every numbered behaviour of the catalogue (scheduling reference §11) has a test that bears its number, or a row in
docs/scheduling.md that says why Kerf differs; where both are there, the test shows what Kerf does."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "scheduling.md"
NUMBERS = range(1, 234)
#: What Kerf does not do yet: devices (pods that claim some are refused: 222).
WAITING = {*range(223, 234)}
#: At most a twentieth may differ.
MOST_ROWS = len(NUMBERS) // 20


def numbered() -> Counter[int]:
    """How many test functions bear each number."""
    texts = (path.read_text() for path in sorted(HERE.glob("test_catalogue_*.py")))
    return Counter(int(number) for text in texts for number in re.findall(r"^def test_(\d{3})_", text, re.MULTILINE))


def explained() -> Counter[int]:
    """How many rows of the table are about each number."""
    _, _, table = DOCS.read_text().partition("## Where Kerf differs")
    return Counter(int(number) for number in re.findall(r"^\| (\d+) \| \S.*\|$", table, re.MULTILINE))


def test_every_number_has_one_test_or_a_reason() -> None:
    tests, rows = numbered(), explained()
    assert [n for n in NUMBERS if not tests[n] and not rows[n] and n not in WAITING] == []
    assert [n for found in (tests, rows) for n, count in found.items() if count > 1] == []
    assert {*tests, *rows} == set(NUMBERS) - WAITING


def test_few_behaviours_differ() -> None:
    assert len(explained()) <= MOST_ROWS
