"""The scale-down in the sandbox, on a virtual clock: what it costs, and why each pod was evicted; seed by seed.

    python -m benchmarks.scale_down.laboratory              # seeds 1 to 10
    python -m benchmarks.scale_down.laboratory --seeds 3
    python -m benchmarks.scale_down.laboratory --by karpenter-double   # a model of `kerf simulate --against`

The Deployments, the instance types and the NodePool are those of the scale-down on a real control plane. There is no
other load on the machine to disturb the result, so two versions of Kerf can be compared in pairs, seed by seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from statistics import mean
from typing import Final

from benchmarks.clusters import pod_sizes
from benchmarks.scale_down.load import DEPLOYMENTS, LEFT, PODS, catalogue
from benchmarks.table import aligned
from kerf.model.kinds import NODE, NODE_CLAIM, NODE_POOL, POD
from kerf.model.kubernetes.objects import Pod
from kerf.sandbox.api.api_server import Record
from kerf.simulating.autoscalers.models import MODELS
from kerf_api import labels
from tests.simulation.arithmetic import at_work
from tests.simulation.days import Days, Rival
from tests.simulation.load import Service
from tests.simulation.trouble import lives

#: How long the cluster runs before the scale-down, and is observed after it.
BEFORE, AFTER = timedelta(minutes=5), timedelta(minutes=15)
#: Budgets do not limit anything, and nodes are consolidatable at once, as on the real control plane.
DISRUPTION: Final = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
#: Until the scale-down only empty nodes go, so that all versions of consolidation begin with the same nodes.
AT_FIRST: Final = {**DISRUPTION, "consolidationPolicy": "WhenEmpty"}

DELETED, REPLACED, AGAIN = "node deleted", "node replaced", "evicted before"


@dataclass
class Plateau:
    """All Deployments with the same number of replicas."""

    seed: int
    replicas: int
    services: tuple[Service, ...] = field(init=False)

    def __post_init__(self) -> None:
        sizes = enumerate(pod_sizes(DEPLOYMENTS, Random(self.seed)))
        self.services = tuple(Service(f"d{n}", f"{cpu}m", f"{memory}Mi", 0, 0.0) for n, (cpu, memory) in sizes)

    def at(self, when: datetime) -> Mapping[str, int]:
        return {service.name: self.replicas for service in self.services}


@dataclass
class Causes:
    """Counts evictions since `began` by cause, and the instants of the changes of nodes; None before."""

    days: Days
    began: datetime | None = None
    evicted: Counter[str] = field(default_factory=Counter)
    commands: set[str] = field(default_factory=set)
    #: Of the last deletion of a node.
    last: datetime | None = None
    launches: int = 0

    def __post_init__(self) -> None:
        self.days.world.server.listen(self._heard)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        if self.began is None or (record := new or old) is None:
            return
        if record.kind is NODE_CLAIM:
            self._claim(old, new)
        elif record.kind is NODE and new is None:
            self.last = self.days.world.clock.now()
        elif record.kind is POD and old is not None and self.days.acting and at_work(old.value):
            self._evicted(old.value, new)

    def _claim(self, old: Record | None, new: Record | None) -> None:
        self.launches += old is None
        if new is not None and (command := new.value.metadata.annotations.get(labels.COMMAND)):
            self.commands.add(command)

    def _evicted(self, pod: Pod, new: Record | None) -> None:
        created = pod.metadata.creation_timestamp
        if new is not None and not new.value.metadata.deleting:
            return
        assert created is not None
        assert self.began is not None
        if created > self.began:
            self.evicted[AGAIN] += 1
        else:
            self.evicted[REPLACED if self._replaced(pod.spec.node_name) else DELETED] += 1

    def _replaced(self, node_name: str) -> bool:
        """Whether a NodeClaim came for that of the node."""
        claims = [one.value for one in self.days.world.server.records(NODE_CLAIM)]
        names = {one.name for one in claims if one.status.node_name == node_name}
        replaced = (one.metadata.annotations.get(labels.REPLACES, "").split(",") for one in claims)
        return any(names & {*row} for row in replaced)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one seed. Ratios are of the nodes' cost by the bound, before and after; seconds until the last node went."""

    seed: int
    nodes_before: int
    ratio_before: float
    seconds: float
    nodes: int
    ratio: float
    evictions: int
    again: int
    replaced: int
    launches: int
    commands: int

    @property
    def cells(self) -> tuple[str, ...]:
        head = f"{self.seed}", f"{self.nodes_before}", f"{self.ratio_before:.3f}", f"{self.seconds:.0f}"
        counts = self.evictions, self.evictions - self.again - self.replaced, self.replaced, self.again
        return *head, f"{self.nodes}", f"{self.ratio:.3f}", *map(str, counts), f"{self.launches}", f"{self.commands}"


HEAD: Final = (
    "seed",
    "nodes before",
    "ratio before",
    "last node, s",
    "nodes",
    "ratio",
    "evictions",
    DELETED,
    REPLACED,
    AGAIN,
    "launches",
    "commands",
)


def measure(seed: int, pods: int = PODS, rival: Rival | None = None) -> Figures:
    """Scale so many pods up, rest, scale down to the same share as ever, and rest."""
    load = Plateau(seed, pods // DEPLOYMENTS)
    days = Days(load, AT_FIRST, rival, [row["name"] for row in catalogue()])
    causes = Causes(days)
    days.world.run(days, BEFORE)
    nodes_before, ratio_before = _state(days)
    load.replicas = pods * LEFT // (PODS * DEPLOYMENTS)
    causes.began = days.world.clock.now()
    days.scale(load.at(causes.began))
    (pool,) = days.world.server.records(NODE_POOL)
    spec = {**pool.manifest["spec"], "disruption": {**DISRUPTION, "consolidationPolicy": "WhenEmptyOrUnderutilized"}}
    days.world.apply({**pool.manifest, "spec": spec})
    days.world.run(days, AFTER)
    nodes, ratio = _state(days)
    return Figures(
        seed,
        nodes_before,
        ratio_before,
        ((causes.last or causes.began) - causes.began).total_seconds(),
        nodes,
        ratio,
        causes.evicted.total(),
        causes.evicted[AGAIN],
        causes.evicted[REPLACED],
        causes.launches,
        len(causes.commands),
    )


def _state(days: Days) -> tuple[int, float]:
    """How many instances run, and what they cost by the bound."""
    prices = [machine.price for machine in days.world.ec2.instances.values() if lives(machine)]
    return len(prices), sum(prices) / days.least()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each seed, and the means."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_down.laboratory", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="so many (default %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default %(default)s)")
    parser.add_argument("--pods", type=int, default=PODS, help="before the scale-down (default %(default)s)")
    parser.add_argument("--by", choices=sorted(MODELS), help="a model of another autoscaler instead of Kerf")
    chosen = parser.parse_args(arguments)
    rival = MODELS[chosen.by].methods if chosen.by else None
    found = []
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        found.append(measure(seed, chosen.pods, rival))
        print("  ".join(found[-1].cells), file=sys.stderr, flush=True)
    rows = [HEAD, *(one.cells for one in found)]
    print(aligned(rows))
    print(f"mean ratio {mean(one.ratio for one in found):.4f}, evictions {mean(one.evictions for one in found):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
