"""The examples of docs/solver.md, made by the solver; `python -m tests.unit.docs.solver_examples` writes them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from math import ceil
from random import Random
from typing import Final

from benchmarks.document import rewrite
from benchmarks.table import markdown
from kerf.model.kubernetes.objects import Pod
from kerf.pods.requirements import relaxations_of
from kerf.scheduling.solve import NewNode, Solution, SolveOptions, solve
from kerf_api import labels
from tests.sources import ROOT
from tests.unit.scheduling import worlds as w

PAGE: Final = ROOT / "docs/solver.md"
#: Types with their price by the hour in millionths of a dollar.
TYPES: Final = (
    w.instance_type("large", 2, 8, price=96_000, pods=29),
    w.instance_type("xlarge", 4, 16, price=192_000, pods=58),
    w.instance_type("2xlarge", 8, 32, price=384_000, pods=58),
    w.instance_type("c.2xlarge", 8, 16, price=340_000, pods=58),
    w.instance_type("r.2xlarge", 8, 64, price=504_000, pods=58),
)
ZONES: Final = ("z1", "z2", "z3")
RUNNING: Final = {"z1": 3, "z2": 1, "z3": 0}


def parts() -> dict[str, str]:
    """The tables of the page, by the name of their marker."""
    return {"spread": spread(), "relaxations": relaxations(), "sizes": sizes(), "search": search()}


def table(rows: Iterable[Iterable[object]]) -> str:
    return markdown([[str(cell) for cell in row] for row in rows])


# --- a spread over zones ----------------------------------------------------------------------------------------
def spread_solution() -> Solution:
    """Five pods with a spread of maxSkew 1, where three run in z1 and one in z2 on nodes that are full."""
    nodes = [w.node(f"node-{zone}", zone, cpu="1", memory="1Gi", pods=number) for zone, number in RUNNING.items()]
    running = [
        w.pod(f"web-{zone}-{i}", node=f"node-{zone}", labels={"app": "web"})
        for zone in ZONES
        for i in range(RUNNING[zone])
    ]
    spec = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread()]}
    return w.solved(w.pool(), nodes, running, w.replicas(5, "new", "700m", **spec), catalogue=TYPES)


def spread() -> str:
    found = spread_solution()
    zone_of = {key: node.zones[0] for node in found.new_nodes for key in node.pods}
    counts = dict(RUNNING)
    rows: list[tuple[object, ...]] = [("pod", *ZONES, "zones that accept one more", "placed in")]
    for key in found.order:
        admitted = [zone for zone in ZONES if counts[zone] + 1 - min(counts.values()) <= 1]
        rows.append((key.partition("/")[2], *counts.values(), ", ".join(admitted), zone_of[key]))
        counts[zone_of[key]] += 1
    rows.append(("after all", *counts.values(), "", ""))
    return table(rows)


# --- preferences that are given up ------------------------------------------------------------------------------
def wishing_pod() -> Pod:
    """Two alternatives of zones, a preferred architecture, a spread that may be broken."""
    terms = [{"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": [z]}]} for z in ("z1", "z2")]
    arm = {"matchExpressions": [{"key": labels.ARCH, "operator": "In", "values": ["arm64"]}]}
    node_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": arm}],
    }
    soft = w.spread(whenUnsatisfiable="ScheduleAnyway")
    return w.pod("wishing", affinity={"nodeAffinity": node_affinity}, topologySpreadConstraints=[soft])


def relaxations() -> str:
    rows: list[tuple[object, ...]] = [("attempt", "zone", "architecture", "spread")]
    for number, demand in enumerate(relaxations_of(wishing_pod(), respect_preferences=True, soft_taints=False), 1):
        zone, arch = (demand.requirements.get(key) for key in (labels.ZONE, labels.ARCH))
        said = ("any" if one is None else " or ".join(sorted(one.values)) for one in (zone, arch))
        rows.append((str(number), *said, "yes" if demand.spreads else "no"))
    return table(rows)


# --- sizes ------------------------------------------------------------------------------------------------------
#: Equal pods, so that everybody can reckon how many fit on a node.
EQUAL: Final = 25
CPU_MILLIS, MEMORY_GIB = 1300, 3


def sizes_solution() -> Solution:
    return w.solved(w.pool(), w.replicas(EQUAL, "equal", f"{CPU_MILLIS}m", f"{MEMORY_GIB}Gi"), catalogue=TYPES)


def fitting(place: int) -> int:
    """How many of the equal pods a node of a type holds."""
    room = TYPES[place].allocatable
    return int(min(room["cpu"] // CPU_MILLIS, room["memory"] // (MEMORY_GIB << 30), room["pods"]))


def sizes() -> str:
    rows: list[tuple[object, ...]] = [("nodes", "pods on each", "dollars an hour")]
    for place, type_ in enumerate(TYPES):
        number = ceil(EQUAL / fitting(place))
        rows.append((f"{number} x {type_.name}", fitting(place), dollars(number * type_.offerings[0].price)))
    found = sizes_solution()
    chosen = Counter((node.instance_types[0], len(node.pods)) for node in found.new_nodes)
    text = ", ".join(f"{number} x {name}" for (name, _), number in sorted(chosen.items(), key=_many_first))
    each = ", ".join(str(pods) for (_, pods), _ in sorted(chosen.items(), key=_many_first))
    rows.append((f"**{text}**", f"**{each}**", f"**{dollars(found.price)}**"))
    return table(rows)


def _many_first(entry: tuple[tuple[str, int], int]) -> tuple[int, str]:
    (name, pods), _ = entry
    return -pods, name


def dollars(millionths: int) -> str:
    return f"{millionths / 1e6:.3f}"


# --- the search -------------------------------------------------------------------------------------------------
def mixed_pods() -> list[Pod]:
    drawn, cpus, mebibytes = Random(0), (300, 500, 700, 900, 1100, 1300, 1700, 2300), (500, 900, 1500, 2500, 3500, 6000)
    return [w.pod(f"pod-{i}", f"{drawn.choice(cpus)}m", f"{drawn.choice(mebibytes)}Mi") for i in range(60)]


def searched(seconds: int) -> Solution:
    """The answer for sixty pods of many sizes, after a search of so many seconds of work."""
    snapshot = w.world(w.pool(), mixed_pods(), catalogue=TYPES)
    return solve(snapshot, [*snapshot.pods.pending.values()], SolveOptions(improve=timedelta(seconds=seconds)))


def search() -> str:
    rows: list[tuple[object, ...]] = [("answer", "nodes", "dollars an hour")]
    first, last = searched(0), searched(1)
    for name, found in (("first", first), ("after the search", last)):
        rows.append((f"{name}: {_named(found.new_nodes)}", len(found.new_nodes), dollars(found.price)))
    rows.append(("lower bound", "", dollars(last.bound or 0)))
    return table(rows)


def _named(nodes: tuple[NewNode, ...]) -> str:
    chosen = Counter(node.instance_types[0] for node in nodes)
    return ", ".join(f"{number} x {name}" for name, number in sorted(chosen.items()))


def main() -> int:
    rewrite(PAGE, parts())
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
