"""Plans beside what happened: `python -m tests.simulation.plan_table` writes the table of docs/plan.md.

python -m tests.simulation.plan_table            # all cases
python -m tests.simulation.plan_table label zone # some of them, printed only
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from kerf.model.aws.cloud import CapacityReservation
from kerf.model.settings import Settings
from kerf.planning.changes import Change
from kerf.planning.lives import Life
from kerf.planning.outcomes import Departure, Outcome
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import captured
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.world import World
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from tests.simulation.plan_cases import CASES, EXPLAINED, RESERVED, Case
from tests.simulation.scripts import TYPES
from tests.simulation.trouble import lives
from tests.sources import ROOT

SETTINGS = Settings(cluster_name="sandbox")
#: The seed of the world, and that of the world in the plan.
SEED, PLANNED_SEED = 11, 99
PAGE = ROOT / "docs/plan.md"
#: Nodes whose starts are nearer to each other have no order: boots take different times.
APART_SECONDS = 15
BEGIN, END = "<!-- table of plans -->\n", "<!-- end of the table -->\n"


@dataclass(frozen=True)
class Played:
    """A plan and what happened: nodes of the snapshot that went, with the seconds until they were deleted, dollars per
    hour, pods, and seconds until the last change."""

    planned_starts: Mapping[str, float]
    starts: Mapping[str, float]
    planned_cost: float
    cost: float
    planned_waiting: int
    waiting: int
    planned_moves: int
    moves: int
    planned_seconds: float
    seconds: float

    @property
    def planned(self) -> frozenset[str]:
        return frozenset(self.planned_starts)

    @property
    def gone(self) -> frozenset[str]:
        return frozenset(self.starts)

    @property
    def order(self) -> float:
        """Of the pairs of nodes that the plan deletes well after each other, the share that went in this order."""
        both, planned, seen = self.planned & self.gone, self.planned_starts, self.starts
        pairs = [(a, b) for a in both for b in both if planned[a] + APART_SECONDS < planned[b]]
        return sum(seen[a] < seen[b] for a, b in pairs) / len(pairs) if pairs else 1.0

    @property
    def precision(self) -> float:
        return len(self.planned & self.gone) / len(self.planned) if self.planned else 1.0

    @property
    def recall(self) -> float:
        return len(self.planned & self.gone) / len(self.gone) if self.gone else 1.0

    @property
    def cost_off(self) -> float:
        """The share by which the price is wrong."""
        return abs(self.planned_cost - self.cost) / self.cost if self.cost else float(self.planned_cost > 0)

    @property
    def in_time(self) -> bool:
        """Whether the duration is right within 20 % or 15 seconds."""
        return not self.gone or abs(self.planned_seconds - self.seconds) <= max(15.0, self.seconds / 5)


def played(which: str) -> Played:
    """A case, planned from a file and then lived."""
    case = CASES[which]()
    world, loop = prepared(case)
    return _lived(world, loop, case, _planned(world, loop, case))


def prepared(case: Case) -> tuple[World, Controller]:
    """The cluster of a case before its change, at rest."""
    world = World(seed=SEED, types=TYPES)
    if case.reserved:
        zone = world.ec2.region.zones[0]
        one = CapacityReservation("cr-00000000000000001", "m5.large", zone, case.reserved, owner="123456789012")
        world.ec2.reserve(one, RESERVED)
    loop = Controller(world.ports, settings=replace(SETTINGS, gates=case.gates), inline=True)
    for manifest in case.before:
        world.apply(manifest)
    world.run(loop, timedelta(minutes=10))
    for name, replicas in case.scaled.items():
        world.scale("default", name, replicas)
    world.run(loop, timedelta(minutes=5))
    return world, loop


def saved(world: World, loop: Controller) -> Captured:
    """The cluster as a file of `kerf snapshot` has it."""
    return read(lines(captured(loop.state, world.clock.now()), b"key"))


def _planned(world: World, loop: Controller, case: Case) -> Outcome:
    return Life(saved(world, loop), Change(case.applied, case.deleted), seed=PLANNED_SEED).run(
        timedelta(hours=case.hours)
    )


def _lived(world: World, loop: Controller, case: Case, planned: Outcome) -> Played:
    began = world.clock.now()
    claims = _names(world, "NodeClaim")
    pods = {one["metadata"]["uid"] for one in world.objects("Pod")}
    last, starts = [began], dict[str, float]()

    def heard(_: Record | None, new: Record | None) -> None:
        if new is not None and new.kind.name == "NodeClaim" and new.value.metadata.deleting:
            starts.setdefault(new.key[1], (world.clock.now() - began).total_seconds())

    world.ec2.listen(lambda machine: last.append(world.clock.now()))
    world.server.listen(heard)
    for manifest in case.applied:
        world.apply(manifest)
    for kind, namespace, name in case.deleted:
        world.delete(kind, name, namespace)
    world.run(loop, timedelta(hours=case.hours))
    gone = claims - _names(world, "NodeClaim")
    return Played(
        planned_starts=planned_starts(planned.departures, began),
        starts={name: starts[name] for name in gone},
        planned_cost=planned.total / 1e6,
        cost=sum(machine.price for machine in world.ec2.instances.values() if lives(machine)) / 1e6,
        planned_waiting=len(planned.waiting),
        waiting=sum(not one["spec"].get("nodeName") for one in world.objects("Pod")),
        planned_moves=len(planned.moves),
        moves=len(pods - {one["metadata"]["uid"] for one in world.objects("Pod")}),
        planned_seconds=(planned.ended - planned.began).total_seconds() if planned.departures else 0.0,
        seconds=(max(last) - began).total_seconds(),
    )


def planned_starts(departures: Iterable[Departure], began: datetime) -> dict[str, float]:
    """The nodes that a plan deletes, with the seconds until then."""
    return {one.node.name: ((one.started or began) - began).total_seconds() for one in departures}


def _names(world: World, kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in world.objects(kind)}


# --- the table --------------------------------------------------------------------------------------------------
def table(found: Mapping[str, Played], explained: Mapping[str, str]) -> str:
    """The rows, medians and worst values, and the misses with their explanations."""
    head = ("change", "nodes planned / removed", "precision", "recall", "price, $/h", "pods without a place")
    rows = [f"| {' | '.join((*head, 'evictions', 'seconds'))} |", "|---" * (len(head) + 2) + "|"]
    for name, one in found.items():
        nodes, price = f"{len(one.planned)} / {len(one.gone)}", f"{one.planned_cost:.3f} / {one.cost:.3f}"
        waiting, moves = f"{one.planned_waiting} / {one.waiting}", f"{one.planned_moves} / {one.moves}"
        shares = f"{one.precision:.2f} | {one.recall:.2f}" if one.planned or one.gone else "- | -"
        seconds = f"{one.planned_seconds:.0f} / {one.seconds:.0f}" if one.gone else "-"
        rows.append(f"| {name} | {nodes} | {shares} | {price} | {waiting} | {moves} | {seconds} |")
    misses = [f"- {name}: {why}" for name, why in explained.items() if name in found]
    told = ["", "Misses:", "", *misses] if misses else []
    return "\n".join([*rows, "", summary(found.values()), *told]) + "\n"


def summary(found: Iterable[Played]) -> str:
    """Medians and worst values, in sentences."""
    some = list(found)
    full = [one for one in some if one.planned or one.gone]
    precision, recall = [one.precision for one in full], [one.recall for one in full]
    within, moves = sum(one.in_time for one in full), sum(one.planned_moves == one.moves for one in some)
    return (
        f"{len(some)} changes, {len(some) - len(full)} of which touch no node. Precision of the set of nodes: median "
        f"{median(precision):.2f}, worst {min(precision):.2f}; recall: median {median(recall):.2f}, worst "
        f"{min(recall):.2f}. Order of deletions: worst {min(one.order for one in full):.2f} of the pairs of nodes. "
        f"Price: worst {100 * max(one.cost_off for one in some):.1f} % off. Number of evictions equal: {moves} of "
        f"{len(some)}. Duration within 20 % or 15 seconds: {within} of {len(full)}."
    )


def written(page: Path, begin: str, end: str, text: str) -> None:
    """Put a table between two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{before}{begin}{text}{end}{rest.partition(end)[2]}", encoding="utf-8")


def main(names: Sequence[str]) -> None:
    found = {}
    for name in names or CASES:
        found[name] = played(name)
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    text = table(found, EXPLAINED)
    print(text)
    if not names:
        written(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main(sys.argv[1:])
