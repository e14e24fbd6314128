"""How long a plan takes: `python -m benchmarks.plans --nodes 64,250,1000 [--no-simulate]`.

The snapshot is that of a small cluster of the sandbox, copied under other names as often as there are to be nodes; each
node runs 15 pods. The change is a label of the NodePool, so that every node drifts; a tenth of the nodes may go at
once. Seconds are those of the CPU; the plan without a change is a part of them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import timedelta
from typing import Any, Final

from benchmarks.table import Row, conclude
from kerf.model.settings import Settings
from kerf.planning.changes import Change
from kerf.planning.forecast import Manner, forecast
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import captured
from kerf.sandbox.world import World
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from tests.worlds import deployment, node_class, node_pool

PODS_A_NODE: Final = 15
WORKLOADS: Final = 5
#: The largest cluster that the sandbox fills with pods itself.
_LARGEST: Final = 64
#: Seconds of the CPU for 1,000 nodes and 15,000 pods.
_TARGETED_NODES: Final = 1000
_ESTIMATE_SECONDS: Final = 10
_SIMULATION_SECONDS: Final = 180
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
#: Kinds and facts of a snapshot of which there is one for each node or pod.
_COPIED: Final = frozenset({"NodeClaim", "Node", "CSINode", "Pod", "instances", "launch_marks"})


def pool(**given: Any) -> dict[str, Any]:
    """The NodePool; eight cores are enough for 15 pods of half a core."""
    rows = [("karpenter.k8s.aws/instance-category", "m"), ("karpenter.k8s.aws/instance-cpu", "8")]
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in rows]
    disruption = {"consolidateAfter": "Never", "budgets": [{"nodes": "10%"}]}
    return node_pool("general", {"disruption": disruption, "requirements": requirements, **given})


def snapshot(nodes: int) -> Captured:
    """A cluster of so many nodes at rest, as a file of `kerf snapshot` has it."""
    first = next(number for number in range(min(nodes, _LARGEST), 0, -1) if nodes % number == 0)
    return read(list(_copied(lines(_small(first), b"key"), nodes // first)))


def _small(nodes: int) -> Captured:
    world = World(seed=1)
    loop = Controller(world.ports, settings=Settings(cluster_name="sandbox"), inline=True)
    world.apply(node_class())
    world.apply(pool())
    for number in range(WORKLOADS):
        replicas = nodes * PODS_A_NODE // WORKLOADS
        world.apply(deployment(f"d{number}", {"replicas": replicas, "cpu": "500m", "memory": "1Gi"}))
    world.run(loop, timedelta(minutes=10))
    return captured(loop.state, world.clock.now())


def _copied(found: Iterable[bytes], copies: int) -> Iterator[bytes]:
    """The lines of a file with the nodes and pods as often as there are copies."""
    rows = [json.loads(line) for line in found]
    kept = {one["metadata"]["uid"] for row in rows if row.get("kind") not in _COPIED for one in row.get("items", ())}
    for row in rows:
        key = "items" if "items" in row else "value"
        if row.get("kind", row.get("name")) in _COPIED and row[key]:
            parts = [json.loads(_renamed(json.dumps(row[key]), number, kept)) for number in range(copies)]
            row[key] = _joined(parts)
        yield json.dumps(row).encode()


def _joined(parts: Sequence[Any]) -> Any:
    """Lists or maps as one."""
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return {name: value for part in parts for name, value in part.items()}


def _renamed(text: str, number: int, kept: Set[str]) -> str:
    """The same objects under other names, instance IDs and UIDs but for the `kept` ones; the first copy keeps all."""
    if not number:
        return text
    text = _UID.sub(lambda uid: uid[0] if uid[0] in kept else f"{number:08x}{uid[0][8:]}", text)
    text = re.sub(r"\bip-10-0-", f"ip-10-{number}-", text)
    text = re.sub(r"\bi-[0-9a-f]{3}(?=[0-9a-f]{14}\b)", f"i-{number:03x}", text)
    text = re.sub(r"\bgeneral-(?=[0-9a-f]{8}\b)", f"general-{number}-", text)
    return re.sub(r'(?<=["/])d(\d+)(?=["-])', rf"d\g<1>c{number}", text)


# --- measuring ----------------------------------------------------------------------------------------------------
def rows(nodes: Sequence[int], *, simulate: bool) -> list[Row]:
    """The figures of plans for clusters of so many nodes."""
    found = []
    change = Change((pool(labels={"team": "a"}),))
    for number in nodes:
        print(f"planning {number:,} nodes …", file=sys.stderr, flush=True)
        cluster = snapshot(number)
        for simulated in (False, True) if simulate else (False,):
            found.append(_row(cluster, number, change, simulate=simulated))
            print(f"  {found[-1].what}: {found[-1].measured}", file=sys.stderr, flush=True)
    return found


def _row(cluster: Captured, nodes: int, change: Change, *, simulate: bool) -> Row:
    began = time.process_time()
    found = forecast(cluster, change, Manner(simulate=simulate))
    seconds = time.process_time() - began
    limit = _SIMULATION_SECONDS if simulate else _ESTIMATE_SECONDS
    target = f"<= {limit} s" if nodes == _TARGETED_NODES else ""
    moved = f"{len(found.planned.departures):,} nodes go, {len(found.planned.moves):,} evictions"
    lasts = f", {round(found.planned.duration.total_seconds())} s simulated" if simulate else ""
    what = f"{nodes:,} nodes, {len(cluster.snapshot.pods):,} pods, {'simulated' if simulate else 'not simulated'}"
    return Row(what, f"{seconds:.1f} s; {moved}{lasts}", target, met=not target or seconds <= limit)


def main(arguments: Sequence[str]) -> int:
    """Print the figures; 1 when a target was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--nodes", default="64,250,1000", help="numbers of nodes, by commas")
    parser.add_argument("--no-simulate", action="store_true", help="only plans without the roll-out")
    asked = parser.parse_args(arguments)
    return conclude(rows([int(text) for text in asked.nodes.split(",")], simulate=not asked.no_simulate))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
