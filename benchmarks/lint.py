"""The linter: manifest after manifest in a warm process, and `kerf validate` from cold: a file, a folder of 500."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

from ruamel.yaml import YAML

from benchmarks.nodepools import nodepool
from benchmarks.table import Row, milliseconds, quantile
from kerf_api import lint
from tests.sources import ROOT

_MANIFESTS: Final = 200
_FILES: Final = 500
_STARTS: Final = 5
_FOLDER_SECONDS: Final = 6.0
_FILE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds from start to end of a process, and of CPU in it."""

    seconds: float
    cpu_seconds: float


def single() -> list[float]:
    """CPU seconds of `validate` for each of many different NodePools of 30 requirements, warm."""
    lint.prepare()
    seconds = []
    for number in range(_MANIFESTS):
        manifest = nodepool(number)
        began = process_time()
        problems = lint.validate(manifest)
        seconds.append(process_time() - began)
        if any(problem.severity == "error" for problem in problems):
            raise ValueError(f"the benchmark's own manifest is wrong: {problems[0]}")
    return seconds


def command(path: Path, files: int) -> Took:
    """`kerf validate` of a path that holds so many clean files, as a process of its own."""
    before = os.times()
    began = perf_counter()
    arguments = [sys.executable, "-m", "kerf.cli.main", "validate", str(path)]
    done = subprocess.run(arguments, cwd=ROOT, check=False, capture_output=True, text=True)
    seconds = perf_counter() - began
    after = os.times()
    counted = f"in {files} manifest{'' if files == 1 else 's'} of {files} file{'' if files == 1 else 's'}"
    if done.returncode != 0 or counted not in done.stdout:
        raise ValueError(f"unexpected, code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return Took(seconds, user + system)


def commands() -> tuple[Took, Took]:
    """A folder of 500 files; one file, the quickest of some starts: what others do meanwhile is none of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(_FILES):
            with (folder / f"pool-{number}.yaml").open("w") as file:
                YAML().dump(nodepool(number), file)
        whole = command(folder, _FILES)
        starts = [command(folder / "pool-0.yaml", 1) for _ in range(_STARTS)]
    return whole, min(starts, key=lambda took: took.seconds)


def rows() -> list[Row]:
    """What `python -m benchmarks` shows."""
    seconds, (folder, file) = single(), commands()
    return [
        Row("validate a NodePool of 30 requirements, CPU, median", milliseconds(quantile(seconds, 0.5))),
        Row("  99th percentile", milliseconds(quantile(seconds, 0.99))),
        _row(f"kerf validate of {_FILES} such files, start-up included", folder, _FOLDER_SECONDS),
        _row("kerf validate of one of them", file, _FILE_SECONDS),
    ]


def _row(what: str, took: Took, target: float) -> Row:
    measured = f"{took.seconds:.2f} s ({took.cpu_seconds:.2f} s of CPU)"
    return Row(what, measured, f"{target:g} s", took.seconds <= target)


if __name__ == "__main__":
    for row in rows():
        print(row.what, row.measured, row.target, sep="  ")
