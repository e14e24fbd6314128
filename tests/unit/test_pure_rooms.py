"""What pure rooms may not call is refused by `make check`, and only there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.sources import ROOT


def refused(source: str, file: str) -> str:
    """What the linter says of a source, were it this file of the repository."""
    rules = ("--select", "PTH123,T20,TID251", "--output-format", "concise", "--config", "pyproject.toml")
    command = (sys.executable, "-m", "ruff", "check", *rules, "--stdin-filename", file, "-")
    return subprocess.run(command, input=source, capture_output=True, text=True, cwd=ROOT, check=False).stdout


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("from datetime import datetime\nat = datetime.now()\n", "clock"),
        ("import datetime\nat = datetime.datetime.utcnow()\n", "clock"),
        ("from datetime import date\nat = date.today()\n", "clock"),
        ("from time import monotonic\n", "clock"),
        ("import os\n", "environment"),
        ("from pathlib import Path\n", "file"),
        ("text = open('x').read()\n", "PTH123"),
        ("print('x')\n", "T201"),
        ("from random import Random\n", "draws"),
        ("import numpy as np\nnoise = np.random.default_rng()\n", "draws|Draw"),
        ("from uuid import uuid4\n", "draws"),
    ],
)
def test_a_pure_room_calls_no_clock_environment_or_file(source: str, word: str) -> None:
    for room in ("reconciler/kerf/scheduling/x.py", "reconciler/kerf/decide.py", "api/kerf_api/lint/x.py"):
        assert any(one in refused(source, room) for one in word.split("|")), room
    assert "All checks passed!" in refused(source, "reconciler/kerf/runtime/x.py")
