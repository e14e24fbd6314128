"""The table that the benchmarks print: what was measured, and what it is to reach."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement in words and figures; `target` is empty where there is none.

    `met` is False where what was measured misses what a benchmark must reach; targets that are only to be looked at
    are met always.
    """

    what: str
    measured: str
    target: str = ""
    met: bool = True


def text(rows: Iterable[Row]) -> str:
    """The rows under a heading, in aligned columns."""
    return aligned([("what", "measured", "to reach"), *((row.what, row.measured, row.target) for row in rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of equally many cells, in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """The same as a table of a document: the first line heads it, the first column is words, all others are figures."""
    head, *rest = lines
    rows = [head, ["---", *("---:" for _ in head[1:])], *rest]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def missed(rows: Iterable[Row]) -> list[str]:
    """A line for each row that misses its target."""
    return [f"missed: {row.what.strip()}: {row.measured}, to reach {row.target}" for row in rows if not row.met]


def conclude(rows: Sequence[Row]) -> int:
    """Print the table, the machine and what was missed; the exit code, 1 when something was."""
    print(text(rows))
    print(f"\n{os.cpu_count()} cores, load average of the last minute {os.getloadavg()[0]:.1f}")
    misses = missed(rows)
    print("\n".join(misses) or "every target was reached")
    return 1 if misses else 0


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share of them does not exceed. Raises IndexError for none."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
