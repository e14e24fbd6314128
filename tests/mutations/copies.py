"""A copy of the sources with a bug in it, or without, and what the suite finds there.

Each part of the suite runs in a process of its own, in the copy. It counts as found only when the output names the
test whose assertion failed or the invariant that broke: a copy that cannot even be imported has found nothing, nor has
a test that ends with any other error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutations.bug import Bug
from tests.sources import FOLDERS, ROOT, python_path

_COPIED = (*FOLDERS.values(), "charts", "docs", "manifests", "benchmarks", "tests")
_LEFT_OUT = shutil.ignore_patterns("__pycache__")
_PYTEST = ("pytest", "-n0", "-q", "--tb=no", "-p", "no:cacheprovider")
#: Wide enough that pytest says in the same line of which error a test died.
_COLUMNS = "400"
_FAILED_TEST = re.compile(r"^FAILED \S+?::(.+?) - (?:assert\b|AssertionError|Failed: DID NOT)", re.MULTILINE)
_BROKEN = re.compile(r"^(seed \d+: .{0,60})", re.MULTILINE)


class Broken(Exception):
    """A part of the suite ended without success and without saying what it has found."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the suite: a module to run, and where its output names what failed."""

    module: Sequence[str]
    names: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Finding:
    """What found a bug (empty: nothing did), and how long that took."""

    by: str
    seconds: float


def named_tests(*bugs: Bug) -> Part:
    """The tests that should fail with these bugs."""
    chosen = dict.fromkeys(test for bug in bugs for test in bug.tests)
    return Part((*_PYTEST, *chosen), _FAILED_TEST)


def named_seeds(*bugs: Bug) -> Part | None:
    """The seeds of the simulation one of which should fail; None when no seed should."""
    chosen = sorted({seed for bug in bugs for seed in bug.seeds})
    return Part(("tests.mutations.hunt", *map(str, chosen)), _BROKEN) if chosen else None


def parts_of(*bugs: Bug) -> list[Part]:
    return [part for part in (named_tests(*bugs), named_seeds(*bugs)) if part is not None]


def found(bug: Bug) -> Iterator[Finding]:
    """What each part of the suite finds in a copy with the bug. Raises DoesNotApply, Broken."""
    with copy() as root:
        bug.plant(root)
        for part in parts_of(bug):
            yield run(root, part)


def unmutated(*bugs: Bug) -> Iterator[Finding]:
    """What the parts for these find in a copy without any bug: nothing, or the check proves nothing. Raises Broken."""
    with copy() as root:
        for part in parts_of(*bugs):
            yield run(root, part)


@contextmanager
def copy() -> Iterator[Path]:
    """A copy of all sources, for as long as it is needed."""
    with TemporaryDirectory(prefix="kerf-mutation-") as place:
        root = Path(place)
        for name in _COPIED:
            shutil.copytree(ROOT / name, root / name, ignore=_LEFT_OUT)
        shutil.copy(ROOT / "pyproject.toml", root)
        yield root


def run(root: Path, part: Part) -> Finding:
    """Run a part of the suite in a copy. Raises Broken."""
    environment = {**os.environ, "PYTHONPATH": python_path(root), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": _COLUMNS}
    began = time.monotonic()
    command = [sys.executable, "-m", *part.module]
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if ended.returncode == 0:
        return Finding("", seconds)
    named = part.names.search(ended.stdout)
    if ended.returncode != 1 or named is None:
        raise Broken(f"{' '.join(part.module)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return Finding(named[1], seconds)
