"""`python -m tests.tiers`: every tier of `make test` that this machine can run.

python -m tests.tiers e2e                      # all tests on the real control plane, those of `make test` included
python -m tests.tiers long                     # all else that `make test` leaves out, after `e2e`
python -m tests.tiers long "planted bugs"      # the tiers whose names contain one of these words

`e2e` and `long` leave out tiers that have passed on the same sources, and of long tests without a control plane those
that have: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tests.aws_calls import record as aws_calls
from tests.cluster import record
from tests.sources import ROOT

from . import passed
from .progress import Progress, state_of_the_sources
from .running import main as run
from .table import AWS_CALLS, E2E, LONG, RECORD, STAGES

_RUNS = {"test": STAGES, "e2e": E2E, "long": (*E2E, *LONG)}


def main(arguments: Sequence[str]) -> int:
    """Run the tiers that the arguments select; 0 when all passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description="Run the tiers of the tests.")
    parser.add_argument("run", nargs="?", default="test", choices=_RUNS, help="which tiers (default: those of test)")
    parser.add_argument("words", nargs="*", help="of these only the tiers whose names contain one of these words")
    asked = parser.parse_args(arguments)
    stages = [
        [tier for tier in stage if not asked.words or any(word in tier.name for word in asked.words)]
        for stage in _RUNS[asked.run]
    ]
    progress = None
    if asked.run != "test":
        state = state_of_the_sources(ROOT)
        progress = Progress(ROOT / "build" / "tiers" / "tiers.json", state)
        passed.begin(ROOT / "build" / "tiers" / "tests.txt", state)
    anew = progress is None or not progress.passed
    record.begin(RECORD, anew=anew)
    aws_calls.begin(AWS_CALLS, anew=anew)
    all_must_run = os.environ.get("CI") == "true"
    return run([stage for stage in stages if stage], all_must_run=all_must_run, progress=progress)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
