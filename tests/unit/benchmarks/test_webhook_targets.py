"""What the webhook's benchmark calls a miss."""

from __future__ import annotations

import pytest

from benchmarks.webhook import Load, table


@pytest.mark.parametrize(
    ("rate", "cpu", "slowest", "met"),
    [
        (150, 0.004, 0.01, [True, True]),
        (150, 0.0041, 0.01, [False, True]),
        (50, 0.004, 0.0101, [True, False]),
        (500, 0.1, 1.0, [True, True]),
    ],
    ids=["just enough", "too much CPU", "too slow", "only to be looked at"],
)
def test_reviews_cost_little_and_are_answered_soon(rate: int, cpu: float, slowest: float, met: list[bool]) -> None:
    latencies = (0.001,) * 98 + (slowest,) * 2
    assert [row.met for row in table("/validate", Load(rate, rate, latencies, cpu))] == met
