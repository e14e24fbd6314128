"""Seeds of chaos with the recorder: another process, with another hash seed, makes the same decisions of the record.

python -m tests.simulation.replays --decisions 10000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from kerf.records.encoding import Encoder
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.runtime.recording.recorder import Recorder
from kerf.runtime.recording.ring import Ring, parts
from kerf.runtime.recording.software import software
from tests.simulation import chaos
from tests.simulation.scripts import script
from tests.sources import ROOT, python_path

#: Nothing is deleted, and no decision is missed.
_NO_BOUND: Final = 2**40
#: Python's own choice for the recording process is another one, but for one in four billion.
_HASH_SEED: Final = "20261127"


@dataclass(slots=True)
class Recorded:
    """Worlds with all their decisions in a folder each."""

    folder: Path
    decisions: int = 0
    bytes: int = 0
    errors: list[Exception] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    def play(self, seed: int) -> None:
        """One seed, from its storm to its rest."""
        folder = self.folder / str(seed)
        ring = Ring(folder, _NO_BOUND, timedelta(days=1000))
        recorder = Recorder(ring, Encoder(b"key", software()), self.errors.append, capacity=_NO_BOUND)

        def made(ports: Any, given: Parts, **options: Any) -> Controller:
            def deciding(snapshot: Any, memory: Any) -> Any:
                self.decisions += 1
                return given.decide(snapshot, memory)

            recorded = recorder.deciding(deciding, lambda: controller.state.catalogues.region)
            controller = Controller(ports, replace(given, decide=recorded), **options)
            return controller

        with patch.object(chaos, "Controller", made):
            chaos.play(script(seed))
        recorder.wait()
        recorder.close()
        self.folders.append(folder)
        self.bytes += sum(path.stat().st_size for path in parts(folder))


def replayed(folder: Path) -> subprocess.CompletedProcess[str]:
    """`kerf replay` of a folder in a process of its own."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "PYTHONHASHSEED": _HASH_SEED}
    command = [sys.executable, "-m", "kerf.cli.main", "replay", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=ROOT)


def check(seeds: Iterable[int], decisions: int, folder: Path) -> tuple[Recorded, list[str]]:
    """Play seeds until there are so many decisions; what was recorded, and the output of each replay that differs."""
    found, wrong = Recorded(folder), list[str]()
    for seed in seeds:
        before = found.decisions
        found.play(seed)
        done = replayed(found.folders[-1])
        number = found.decisions - before
        if (
            done.returncode
            or f"{number:,} decisions " not in done.stdout
            or not done.stdout.count(f": {number} are the")
        ):
            wrong.append(f"seed {seed}, {number} decisions: {done.returncode}\n{done.stdout}{done.stderr}")
        if found.decisions >= decisions:
            break
    return found, wrong


def main() -> int:
    """Print the result; 1 when a decision differs or was not recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replays", description=__doc__)
    parser.add_argument("--decisions", type=int, default=10_000, help="at least so many (default 10000)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, wrong = check(count(), given.decisions, Path(folder))
    for text in wrong:
        print(text)
    per_thousand = found.bytes / found.decisions * 1000 / 1024
    print(f"{found.decisions:,} decisions of {len(found.folders)} seeds; seeds with differences: {len(wrong)}")
    print(f"{per_thousand:,.0f} KiB for 1,000 decisions; errors of the recorder: {len(found.errors)}")
    return 1 if wrong or found.errors else 0


if __name__ == "__main__":
    sys.exit(main())
