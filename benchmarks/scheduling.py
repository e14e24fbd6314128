"""Schedule a workload on an empty cluster with one NodePool: how fast, how many nodes, at what price, and rightly?

    python -m benchmarks.scheduling --workload mixed.json --catalogue catalogue.json --capacity-type on-demand --json

`seconds` is the scheduler alone, from typed pods and types on; `parse_seconds` is reading both files into values. The
price of the new nodes stands beside the least that nodes for the same pods must cost (`tests/referee/cost.py` says what
that bounds). The referee of the tests judges the answer, independently of the engine; it is slow, and `--unjudged`
leaves it (and the key `violations`) out. Without `--json` the figures come with processor time and peak memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any, Final, TypeVar

import msgspec

from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import Pod, PodCondition, PodStatus
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.process.collecting import THRESHOLDS
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.referee import violations
from tests.referee.cost import cost, lp_bound

T = TypeVar("T")
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CLASS: Final = "default"
REFUSED: Final = PodStatus(
    phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
)


#: What `--json` prints, in order.
_TOLD: Final = (
    "seconds",
    "parse_seconds",
    "nodes",
    "unplaced",
    "cost_usd_per_hour",
    "lp_bound_usd_per_hour",
    "violations",
)


class UnusableInput(Exception):
    """A file is not there, or is no workload or catalogue; the message is one line that names it and the place."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run; `violations` is None when nobody looked, `ratio` (cost by bound) when nothing is bought.

    The bound is for the pods that the answer puts on new nodes, so that cost and bound are of the same pods. The
    processor's time is that within `seconds`; the peak is of the process when the answer was there, inputs included.
    """

    seconds: float
    cpu_seconds: float
    parse_seconds: float
    peak_mib: float
    nodes: int
    unplaced: int
    cost_usd_per_hour: float
    lp_bound_usd_per_hour: float
    ratio: float | None
    violations: int | None

    def figures(self) -> dict[str, float]:
        """All that is known, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def as_json(self) -> dict[str, float]:
        found = self.figures()
        return {name: found[name] for name in _TOLD if name in found}


# --- reading ----------------------------------------------------------------------------------------------------
class _PodRow(msgspec.Struct, frozen=True):
    count: Annotated[int, msgspec.Meta(ge=0)]
    template: Pod


class _Workload(msgspec.Struct, frozen=True):
    pods: tuple[_PodRow, ...]


class _Allocatable(msgspec.Struct, frozen=True):
    """Milli-cores, MiB, pods."""

    cpu: int
    memory: int
    pods: int


class _OfferingRow(msgspec.Struct, frozen=True):
    zone: str
    capacity_type: str = msgspec.field(name="capacityType")
    price: Annotated[float, msgspec.Meta(ge=0)]
    available: bool


class _TypeRow(msgspec.Struct, frozen=True):
    name: str
    arch: str
    os: str
    allocatable: _Allocatable
    offerings: tuple[_OfferingRow, ...]


def read_pods(content: bytes) -> list[Pod]:
    """A workload as pending pods. The pods of a template differ by name only.

    Raises msgspec.DecodeError, also when two of them have one name.
    """
    found: list[Pod] = []
    for row in msgspec.json.decode(content, type=_Workload).pods:
        meta = row.template.metadata
        names = [meta.name] if row.count == 1 else [f"{meta.name}-{i}" for i in range(row.count)]
        for name in names:
            own = msgspec.structs.replace(meta, name=name, uid=f"uid-{name}")
            found.append(msgspec.structs.replace(row.template, metadata=own, status=REFUSED))
    twice = next((key for key, number in Counter(pod.key for pod in found).items() if number > 1), None)
    if twice is not None:
        raise msgspec.ValidationError(f"there are two pods {twice}")
    return found


def read_catalogue(content: bytes) -> Catalogue:
    """A catalogue as instance types, sorted by name. Raises msgspec.DecodeError."""
    rows = msgspec.json.decode(content, type=tuple[_TypeRow, ...])
    return tuple(sorted((_instance_type(row) for row in rows), key=lambda t: t.name))


def _instance_type(row: _TypeRow) -> InstanceType:
    amounts = row.allocatable
    room = Resources({"cpu": amounts.cpu, "memory": amounts.memory * 2**20, "pods": amounts.pods})
    offerings = tuple(
        Offering(row.name, o.zone, o.capacity_type, round(o.price * 1e6), o.available) for o in row.offerings
    )
    known = {
        labels.INSTANCE_TYPE: {row.name},
        labels.ARCH: {row.arch},
        labels.OS: {row.os},
        labels.ZONE: {o.zone for o in offerings},
        labels.CAPACITY_TYPE: {o.capacity_type for o in offerings},
    }
    demands = Requirements(requirement(key, IN, sorted(values)) for key, values in known.items())
    return InstanceType(row.name, demands, room, room, offerings)


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
    workload: Path, catalogue: Path, capacity_type: str | None = None, *, improve: float = 0.0, judged: bool = True
) -> Outcome:
    """Read both, schedule once, judge. The collector of garbage has the thresholds of the controller.

    `improve`: seconds of work for a cheaper answer, as the controller counts them. Raises UnusableInput.
    """
    began = perf_counter()
    pods = _read(workload, "workload", read_pods)
    snapshot = snapshot_of(pods, _read(catalogue, "catalogue", read_catalogue), capacity_type)
    parsed = perf_counter()
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()
    started, cpu = perf_counter(), process_time()
    solution = solve(snapshot, pods, SolveOptions(improve=timedelta(seconds=improve)))
    ended, busy = perf_counter(), process_time() - cpu
    gc.unfreeze()
    peak = peak_mib()
    answer: Any = solution  # frozen, whereas the referee's protocol asks for attributes that can be set
    broken = violations(snapshot, pods, answer) if judged else None
    for one in (broken or ())[:20]:
        print(one.rule, one.words, sep=": ", file=sys.stderr)
    bought = {key for node in solution.new_nodes for key in node.pods}
    least = lp_bound(snapshot, [pod for pod in pods if pod.key in bought])
    price = cost(snapshot, answer)
    return Outcome(
        seconds=round(ended - started, 4),
        cpu_seconds=round(busy, 4),
        parse_seconds=round(parsed - began, 4),
        peak_mib=peak,
        nodes=len(solution.new_nodes),
        unplaced=len(solution.unplaced),
        cost_usd_per_hour=round(price / 1e6, 4),
        lp_bound_usd_per_hour=round(least / 1e6, 4),
        ratio=round(price / least, 4) if least else None,
        violations=None if broken is None else len(broken),
    )


def _read(path: Path, what: str, read: Callable[[bytes], T]) -> T:
    try:
        return read(path.read_bytes())
    except OSError as error:
        raise UnusableInput(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UnusableInput(
            f"{path} is no {what}: {error} (benchmarks/workloads.py says what one looks like)"
        ) from error


def peak_mib() -> float:
    """The most memory that this process ever held. Not getrusage: a child's figure there begins with its parent's."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return next((round(int(row.split()[1]) / 1024, 1) for row in rows if row.startswith("VmHWM:")), 0.0)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds (0 or more)")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Schedule one workload and print the outcome; 1 when a rule is broken, 2 when an input is of no use."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling", description="Schedule a workload once.")
    parser.add_argument("--workload", type=Path, required=True, help="JSON, see benchmarks.workloads")
    parser.add_argument("--catalogue", type=Path, required=True, help="JSON, see benchmarks.workloads")
    parser.add_argument(
        "--capacity-type", choices=(labels.ON_DEMAND, labels.SPOT), help="buy only this (default: both)"
    )
    parser.add_argument("--improve", type=_seconds, default=0.0, help="seconds for a cheaper answer (default: 0)")
    parser.add_argument("--unjudged", action="store_true", help="do not ask the referee")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    chosen = parser.parse_args(arguments)
    inputs = chosen.workload, chosen.catalogue, chosen.capacity_type
    try:
        outcome = run(*inputs, improve=chosen.improve, judged=not chosen.unjudged)
    except UnusableInput as error:
        print(error, file=sys.stderr)
        return 2
    if chosen.json:
        print(json.dumps(outcome.as_json()))
    else:
        print("\n".join(f"{name:<22} {value}" for name, value in outcome.figures().items()))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
