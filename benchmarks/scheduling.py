"""Schedule a workload on an empty cluster with one NodePool: how fast, how many nodes, at what price, and rightly?

    python -m benchmarks.scheduling --workload mixed.json --catalogue catalogue.json --capacity-type on-demand --json

`seconds` is the scheduler alone; `parse_seconds` is reading both files into values. The price of the new nodes stands
beside the least that nodes for the same pods must cost (`tests/referee/cost.py` says what that bounds). The referee of
the tests judges the answer, independently of the engine; it is slow, and `--unjudged` leaves it (and the keys
`violations` and `ratio`, the price by the bound) out.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import msgspec

from api import labels
from api.requirements import IN, Requirements, requirement
from api.resources import Resources
from api.v1.meta import decode
from api.v1.nodepool import NodePool
from benchmarks import workloads
from benchmarks.table import Row
from reconciler.model.cluster import build
from reconciler.model.instance_type import Catalogue, InstanceType, Offering
from reconciler.model.objects import Pod, PodCondition, PodStatus
from reconciler.model.settings import Settings
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.solve import solve
from tests.referee import violations
from tests.referee.cost import cost, lp_bound

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CLASS: Final = "default"
_REFUSED: Final = PodStatus(
    phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run; `violations` and `ratio` are None when nobody looked, `ratio` also when nothing is bought.

    The bound is for the pods that the answer puts on new nodes, so that cost and bound are of the same pods.
    """

    seconds: float
    parse_seconds: float
    nodes: int
    unplaced: int
    cost_usd_per_hour: float
    lp_bound_usd_per_hour: float
    ratio: float | None
    violations: int | None

    def as_json(self) -> dict[str, float]:
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None}


# --- reading ----------------------------------------------------------------------------------------------------
def read_pods(content: bytes) -> list[Pod]:
    """A workload as pending pods. The pods of a template differ by name only."""
    found: list[Pod] = []
    for row in msgspec.json.decode(content)["pods"]:
        template = decode(Pod, row["template"])
        name = template.metadata.name
        names = (name,) if row["count"] == 1 else tuple(f"{name}-{i}" for i in range(row["count"]))
        for own in names:
            meta = msgspec.structs.replace(template.metadata, name=own, uid=f"uid-{own}")
            found.append(msgspec.structs.replace(template, metadata=meta, status=_REFUSED))
    return found


def read_catalogue(content: bytes) -> Catalogue:
    """A catalogue as instance types, sorted by name."""
    return tuple(sorted((_instance_type(row) for row in msgspec.json.decode(content)), key=lambda t: t.name))


def _instance_type(row: dict[str, Any]) -> InstanceType:
    amounts = row["allocatable"]
    room = Resources({"cpu": amounts["cpu"], "memory": amounts["memory"] * 2**20, "pods": amounts["pods"]})
    offerings = tuple(
        Offering(row["name"], o["zone"], o["capacityType"], round(o["price"] * 1e6), o["available"])
        for o in row["offerings"]
    )
    known = {
        labels.INSTANCE_TYPE: {row["name"]},
        labels.ARCH: {row["arch"]},
        labels.OS: {row["os"]},
        labels.ZONE: {o.zone for o in offerings},
        labels.CAPACITY_TYPE: {o.capacity_type for o in offerings},
    }
    demands = Requirements(requirement(key, IN, sorted(values)) for key, values in known.items())
    return InstanceType(row["name"], demands, room, room, offerings)


def snapshot_of(pods: Iterable[Pod], catalogue: Catalogue, capacity_type: str | None) -> Snapshot:
    """An empty cluster with these pods pending and one NodePool that may buy all of the catalogue (or one market)."""
    bought = [capacity_type] if capacity_type else [labels.ON_DEMAND, labels.SPOT]
    pool = {
        "metadata": {"name": "default", "uid": "uid-default"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": _CLASS},
                    "requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": bought}],
                }
            }
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    settings = Settings(cluster_name="benchmark")
    return build([decode(NodePool, pool), *pods], now=_NOW, settings=settings, catalogues={_CLASS: catalogue})


# --- running ----------------------------------------------------------------------------------------------------
def run(
    workload: bytes, catalogue: bytes, capacity_type: str | None = None, *, improve: float = 0.0, judged: bool = True
) -> Outcome:
    """Read both, schedule once, judge. The collector of garbage rests meanwhile, as it does in the controller.

    `improve`: seconds of work for a cheaper answer, as the controller counts them.
    """
    began = perf_counter()
    pods = read_pods(workload)
    snapshot = snapshot_of(pods, read_catalogue(catalogue), capacity_type)
    parsed = perf_counter()
    gc.collect()
    gc.freeze()
    started = perf_counter()
    solution = solve(snapshot, pods, improve=timedelta(seconds=improve))
    ended = perf_counter()
    gc.unfreeze()
    answer: Any = solution  # frozen, whereas the referee's protocol asks for attributes that can be set
    broken = violations(snapshot, pods, answer) if judged else None
    for one in (broken or ())[:20]:
        print(one.rule, one.words, sep=": ", file=sys.stderr)
    bought = {key for node in solution.new_nodes for key in node.pods}
    least = lp_bound(snapshot, [pod for pod in pods if pod.key in bought])
    price = cost(snapshot, answer)
    return Outcome(
        seconds=round(ended - started, 4),
        parse_seconds=round(parsed - began, 4),
        nodes=len(solution.new_nodes),
        unplaced=len(solution.unplaced),
        cost_usd_per_hour=round(price / 1e6, 4),
        lp_bound_usd_per_hour=round(least / 1e6, 4),
        ratio=round(price / least, 4) if judged and least else None,
        violations=None if broken is None else len(broken),
    )


def rows() -> list[Row]:
    """The quick runs of `python -m benchmarks`: generated workloads, generated catalogues."""
    found = []
    for kind, count, types in (("mixed", 1000, "synthetic"), ("plain", 2000, "families")):
        catalogue = workloads.CATALOGUES[types]()
        inputs = (msgspec.json.encode(workloads.workload(kind, count)), msgspec.json.encode(catalogue))
        outcome = run(*inputs, capacity_type=labels.ON_DEMAND)
        what = f"schedule {count:,} {kind} pods on {len(catalogue)} types"
        told = f"{outcome.seconds:.2f} s, {outcome.nodes} nodes, {outcome.unplaced} unplaced"
        found.append(Row(what, f"{told}, ${outcome.cost_usd_per_hour:.2f}/h"))
        found.append(Row("  rules broken, as the referee sees it", str(outcome.violations), "0"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Schedule one workload and print the outcome; 1 when a rule is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling", description="Schedule a workload once.")
    parser.add_argument("--workload", type=Path, required=True, help="JSON, see benchmarks.workloads")
    parser.add_argument("--catalogue", type=Path, required=True, help="JSON, see benchmarks.workloads")
    parser.add_argument(
        "--capacity-type", choices=(labels.ON_DEMAND, labels.SPOT), help="buy only this (default: both)"
    )
    parser.add_argument("--improve", type=float, default=0.0, help="seconds of work for a cheaper answer (default: 0)")
    parser.add_argument("--unjudged", action="store_true", help="do not ask the referee")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    chosen = parser.parse_args(arguments)
    inputs = chosen.workload.read_bytes(), chosen.catalogue.read_bytes()
    outcome = run(*inputs, capacity_type=chosen.capacity_type, improve=chosen.improve, judged=not chosen.unjudged)
    found = outcome.as_json()
    print(json.dumps(found) if chosen.json else "\n".join(f"{name:<22} {value}" for name, value in found.items()))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
