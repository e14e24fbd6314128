"""The table of the load that follows the days: a line for each idea, with its settings and what it came to."""

from __future__ import annotations

from datetime import timedelta

from benchmarks.load_curve import CASES, HEAD, IDEAS, lines
from tests.simulation.days import Outcome

FOUND = Outcome(1234.5, 1000.0, 1500, 70, 19, timedelta(hours=3, minutes=30), 1, 2)


def test_a_line_has_the_settings_the_ratio_and_hours() -> None:
    head, line, other = lines({("Kerf", "15m", "10%"): FOUND, ("threshold", "0s", "10%"): FOUND})
    assert tuple(head) == HEAD
    cells = ("1,234.50", "1,000.00", "1.234", "1,500", "70", "19", "3.5", "1", "2")
    assert tuple(line) == ("Kerf", "15m", "10%", *cells)
    assert tuple(other) == ("threshold", "-", "-", *cells)


def test_every_idea_is_tried_with_the_defaults() -> None:
    assert {idea for idea, *settings in CASES if settings == ["0s", "10%"]} == set(IDEAS)
