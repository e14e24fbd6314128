"""Decisions of a real control plane under churn, made again from the record in another process with another hash seed.

Deployments are scaled, NodePools edited, spot instances interrupted and the controller restarted, by SIGTERM and by
SIGKILL. `make long` runs 30 minutes; KERF_REPLAY_MINUTES sets another duration. The figures are printed (`-s`).
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kerf.runtime.recording.ring import parts
from tests.simulation.replays import replayed

from .control_plane import ControlPlane
from .fleet import Fleet
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = [pytest.mark.cluster, pytest.mark.long]

MINUTES: Final = float(os.environ.get("KERF_REPLAY_MINUTES", "30"))
PAUSE_SECONDS: Final = 4.0
#: A smaller record is that of a controller that stood still.
FEWEST_A_MINUTE: Final = 5
MIB: Final = 1024 * 1024
_SAME: Final = re.compile(r"^([0-9,]+) decisions from \S+ to \S+: ([0-9]+) are the same$", re.MULTILINE)
_MISSED: Final = re.compile(r"^([0-9,]+) decisions? not recorded", re.MULTILINE)


class Churn:
    """Random changes of a cluster; `done` counts them by kind."""

    def __init__(self, fleet: Fleet, record: Path) -> None:
        self.done: Counter[str] = Counter()
        self._fleet, self._kerf, self._random = fleet, fleet.kerf, random.Random(37)
        #: No part is deleted within the test.
        self._flags = ("--record-folder", str(record), "--record-size", "2000", "--record-age", "24h")
        self._restart(kill=False)

    def step(self) -> None:
        """One change."""
        kind = self._random.choices(("scale", "edit", "interrupt", "restart"), (10, 3, 3, 1))[0]
        if getattr(self, f"_{kind}")():
            self.done[kind] += 1

    def _scale(self) -> bool:
        name, most = self._random.choice((("web", 30), (self._fleet.name, 4)))
        self._kerf.kubectl("scale", "deployment", name, f"--replicas={self._random.randint(0, most)}")
        return True

    def _edit(self) -> bool:
        if self._random.random() < 0.5:
            self._fleet.change_template(f"v{self._random.randint(1, 5)}")
        else:
            patch = json.dumps({"spec": {"weight": self._random.randint(1, 100), "limits": {"cpu": "200"}}})
            self._kerf.kubectl("patch", "nodepool", "general", "--type=merge", "-p", patch)
        return True

    def _interrupt(self) -> bool:
        found = [one["id"] for one in self._kerf.running_instances()]
        if found:
            self._kerf.aws.interrupt(self._random.choice(found))
        return bool(found)

    def _restart(self, *, kill: bool | None = None) -> bool:
        if self._random.random() < 0.5 if kill is None else kill:
            self._kerf.kill_controller()
        else:
            self._kerf.stop_controller()
        self._kerf.start_controller(*self._flags)
        return True


@pytest.fixture
def fleet(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Fleet]:
    with Installation(control_plane, tmp_path) as installation:
        installation.kubectl("apply", "-f", str(Path(__file__).with_name("workloads.yaml")))
        with a_fleet(installation, gone_within=600) as ready:
            yield ready
        installation.kubectl("scale", "deployment/web", "--replicas=0")
        installation.kubectl("delete", "nodeclaims", "--all", "--wait=false")
        installation.wait(lambda: not installation.get("nodeclaims"), 600, "all nodes are deleted")


@pytest.mark.timeout(MINUTES * 120 + 1800)
def test_all_decisions_under_churn_are_reproduced(fleet: Fleet, tmp_path: Path) -> None:
    record = tmp_path / "record"
    churn, ends = Churn(fleet, record), time.monotonic() + MINUTES * 60
    while time.monotonic() < ends:
        churn.step()
        time.sleep(PAUSE_SECONDS)
    fleet.kerf.stop_controller()
    done = replayed(record)
    fleet.kerf.start_controller()
    found = _SAME.search(done.stdout)
    assert found, done.stdout + done.stderr
    decisions, same = int(found[1].replace(",", "")), int(found[2])
    missed = _MISSED.search(done.stdout)
    mib = sum(path.stat().st_size for path in parts(record)) / MIB
    print(
        f"\n{MINUTES:g} minutes of churn ({dict(sorted(churn.done.items()))}): {decisions:,} decisions, {same:,} are "
        f"the same; not recorded: {missed[1] if missed else 0}; {1000 * mib / decisions:.2f} MiB for 1,000 decisions",
        flush=True,
    )
    assert decisions >= FEWEST_A_MINUTE * MINUTES
    assert (done.returncode, same) == (0, decisions), done.stdout + done.stderr
