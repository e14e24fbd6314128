"""Runs the tiers: the stages one after the other, the tiers of one stage side by side.

A tier that fails fails the run, but the others still run, so that one look shows everything.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.peers.karpenter import PeerUnavailable
from image.player import ImageUnavailable
from tests.aws_calls import record as aws_calls
from tests.aws_rules import RULES
from tests.cluster.binaries import ControlPlaneUnavailable
from tests.sources import ROOT

from .progress import Progress

#: So many tiers run side by side: with more, two cores are too busy at the beginning for the tests that wait.
SIDE_BY_SIDE = 6
#: The last line of a run of pytest: `2 failed, 23 passed, 1 deselected in 37.63s (0:00:37)`.
_PYTEST_ENDS = re.compile(r"\b(\d+) passed\b.* in \d+\.\d+s")


@dataclass(frozen=True, slots=True)
class Tier:
    """A named list of commands, run one after the other; all must succeed.

    `needs` finds, or builds, what not every machine can have.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    needs: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a tier: `passed`, `FAILED`, `skipped`, or `before` (it has passed on the same sources)."""

    name: str
    outcome: str
    seconds: float
    #: Tests that passed; 0 of tiers that are no tests.
    tests: int = 0


def main(stages: Sequence[Sequence[Tier]], *, all_must_run: bool = False, progress: Progress | None = None) -> int:
    """Run the tiers; 0 when all that could run passed (and, if `all_must_run`, all could run)."""
    run = _Run(progress)
    rows = [row for stage in stages for row in run.stage(stage)]
    if os.environ.get(aws_calls.VARIABLE):
        judged = aws_calls.read(Path(os.environ[aws_calls.VARIABLE]))
        print(f"\n{aws_calls.line(aws_calls.total(judged), len(RULES))}")
    print("\nTiers:")
    for number, row in enumerate(rows, 1):
        tests = f"{row.tests:>6,} tests" if row.tests else ""
        print(f"  {number:>2}  {row.name:<40} {row.outcome:<8} {row.seconds:6.0f} s {tests}".rstrip())
    print(f"{sum(row.tests for row in rows):,} tests in {run.elapsed():.0f} s")
    failed = [row.name for row in rows if row.outcome == "FAILED" or (all_must_run and row.outcome == "skipped")]
    print("All tiers that this machine can run passed." if not failed else f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


class _Run:
    """One run, and what had passed before it."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._one_at_a_time = threading.Lock()
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._started

    def stage(self, tiers: Sequence[Tier]) -> list[Row]:
        """Run the tiers of a stage side by side."""
        if len(tiers) == 1:
            print(f"\n=== {tiers[0].name} ===", flush=True)
            return [self._tier(tiers[0], sys.stdout)]
        names = ", ".join(tier.name for tier in tiers)
        print(f"\n=== side by side, each shown when it has ended: {names} ===", flush=True)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return list(pool.map(self._aside, tiers))

    def _aside(self, tier: Tier) -> Row:
        said = io.StringIO()
        row = self._tier(tier, said)
        with self._one_at_a_time:
            print(f"\n=== {tier.name} ===\n{said.getvalue()}", flush=True)
        return row

    def _tier(self, tier: Tier, out: IO[str]) -> Row:
        if self._progress is not None and tier.name in self._progress.passed:
            print("has passed on the same sources", file=out, flush=True)
            return Row(tier.name, "before", self._progress.passed[tier.name])
        row = _run(tier, out)
        if self._progress is not None and row.outcome == "passed":
            with self._one_at_a_time:
                self._progress.keep(tier.name, row.seconds)
        return row


def _run(tier: Tier, out: IO[str]) -> Row:
    started = time.monotonic()
    try:
        if tier.needs is not None:
            tier.needs()
    except (ControlPlaneUnavailable, ImageUnavailable, PeerUnavailable) as reason:
        print(f"left out: {reason}", file=out, flush=True)
        return Row(tier.name, "skipped", time.monotonic() - started)
    # All of them, whatever becomes of the first, so that one look shows everything.
    ended = [_command(command, out) for command in tier.commands]
    outcome = "passed" if all(succeeded for succeeded, _ in ended) else "FAILED"
    return Row(tier.name, outcome, time.monotonic() - started, sum(tests for _, tests in ended))


def _command(command: Sequence[str], out: IO[str]) -> tuple[bool, int]:
    """Run it, its output going to `out`; whether it succeeded, and how many tests passed in it."""
    tests = 0
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            out.write(line)
            out.flush()
            if found := _PYTEST_ENDS.search(line):
                tests += int(found[1])
    return process.returncode == 0, tests
