"""Warnings of runs: weather and assertions that had nothing to act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kerf.simulating.results import Result


def lines(results: Sequence[Result]) -> Iterator[str]:
    """A line for each warning."""
    yield from (f"WARN  {text}" for text in texts(results))


def texts(results: Sequence[Result]) -> Iterator[str]:
    """Each warning once, of several runs with the number of those that have it."""
    found = Counter(warning for one in results for warning in one.warnings)
    for warning, number in found.items():
        runs = f" (in {number} of {len(results)} runs)" if len(results) > 1 else ""
        yield f"{warning}{runs}"
