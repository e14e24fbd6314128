"""`decide` is pure: the same snapshots give the same plans, to the byte, in processes with different hash seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from kerf.cli.demonstration.demo import manifests
from kerf.decide import decide
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.world import World
from kerf_api.v1.meta import Value, encode
from tests.sources import ROOT


def canonical(thing: Any) -> Any:
    """A plan as nested tuples whose text says everything: sets sorted, all order that is visible to act kept."""
    if isinstance(thing, Value):
        return (type(thing).__name__, canonical(encode(thing)))
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return (type(thing).__name__, *[(f.name, canonical(getattr(thing, f.name))) for f in dataclasses.fields(thing)])
    if isinstance(thing, Mapping):
        return tuple((str(key), canonical(value)) for key, value in thing.items())
    if isinstance(thing, frozenset | set):
        return tuple(sorted(str(canonical(item)) for item in thing))
    if isinstance(thing, tuple | list):
        return tuple(canonical(item) for item in thing)
    return repr(thing)


def digest(plan: Plan) -> str:
    return hashlib.sha256(repr(canonical(plan)).encode()).hexdigest()


def record() -> list[Snapshot]:
    """Snapshots of a little life: growth, a reclaim, shrinking."""
    seen: list[Snapshot] = []

    def watched(snapshot: Snapshot, memory: Memory) -> Plan:
        seen.append(snapshot.detached())
        return decide(snapshot, memory)

    world = World(seed=3)
    settings = Settings(cluster_name="sandbox", interruption_queue="sandbox")
    controller = Controller(world.ports, Parts(decide=watched), settings=settings, inline=True)
    for manifest in manifests("EC2NodeClass", "NodePool", "Deployment", "DaemonSet", "PodDisruptionBudget"):
        if manifest["metadata"]["name"] != "mistake":
            world.apply(manifest)
    world.run(controller, timedelta(minutes=4))
    spot = sorted(i.id for i in world.ec2.instances.values() if i.capacity_type == "spot")
    world.ec2.reclaim_spot(spot[0])
    world.run(controller, timedelta(minutes=4))
    world.scale("default", "web", 4)
    world.run(controller, timedelta(minutes=8))
    return seen[:: max(1, len(seen) // 80)]


def digests_in_another_process(snapshots: Path, hash_seed: str) -> list[str]:
    code = (
        "import pickle, sys; from kerf.decide import decide; from tests.laws.test_decide_is_pure import digest;"
        "[print(digest(decide(s))) for s in pickle.load(open(sys.argv[1], 'rb'))]"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code, str(snapshots)]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout.split()


def test_two_processes_with_different_hash_seeds_make_identical_plans(tmp_path: Path) -> None:
    snapshots = record()
    file = tmp_path / "snapshots.pickle"
    file.write_bytes(pickle.dumps(snapshots))
    here = [digest(decide(snapshot)) for snapshot in snapshots]
    assert len(set(here)) > 10, "the snapshots lead to different plans, so the comparison means something"
    assert digests_in_another_process(file, "1") == here
    assert digests_in_another_process(file, "2") == here


def test_deciding_twice_on_one_snapshot_gives_the_same_plan() -> None:
    snapshots = record()
    assert [digest(decide(s)) for s in snapshots] == [digest(decide(s)) for s in snapshots]
