"""Consolidating half-empty clusters: how long a pass over all nodes takes, and where passes lead.

    python -m benchmarks.consolidation --pods 37500          # one pass over about 1,000 nodes with 15,000 pods
    python -m benchmarks.consolidation --pods 1500 --settle  # passes until nothing more is proposed

Between passes all moves are carried out at once: the nodes that were proposed go, what comes in their place is bought,
and the kube-scheduler binds the pods, with no regard to the plan. Pods that find no room are bought nodes for. What is
left is set against the least that nodes for these pods cost (`tests/referee/cost.py`).
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Final

from msgspec.structs import replace

from benchmarks.clusters import Shape, Yard, half_empty
from benchmarks.scheduling import peak_mib
from benchmarks.table import Row
from kerf.disruption.candidates.costs import price
from kerf.disruption.propose import propose
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory
from kerf.model.snapshot import Proposal, Snapshot
from kerf.scheduling.placing.as_kube_scheduler import KubeSchedulerOrder
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from tests.referee.cost import lp_bound

#: A cluster that still moves after so many passes never rests.
MOST_PASSES: Final = 40
#: Nodes that were bought for some pods may be taken by others; after so many rounds all have one.
MOST_ROUNDS: Final = 5


# --- one pass -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds are CPU time; `again` is that of a pass over the same cluster with what is remembered of it."""

    nodes: int
    pods: int
    seconds: float
    again: float
    moves: int
    saving_usd: float
    peak_mib: float


def one_pass(shape: Shape) -> Pass:
    snapshot, memory = half_empty(shape).snapshot(), Memory()
    gc.collect()
    gc.freeze()
    began = process_time()
    found = propose(snapshot, memory=memory)
    first, began = process_time() - began, process_time()
    propose(snapshot, memory=memory)
    again = process_time() - began
    gc.unfreeze()
    saved = sum(proposal.saving for proposal in found) / 1e6
    return Pass(len(snapshot.nodes), len(snapshot.pods), first, again, len(found), saved, peak_mib())


# --- passes until it rests ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Rest:
    """Where passes led. Ratios are of the cost by the least that it must be; `dearer` counts passes that raised it."""

    before: float
    after: float
    nodes: int
    passes: int
    evictions: int
    dearer: int


def settle(yard: Yard) -> Rest:
    """Consolidate until nothing is proposed. Raises RuntimeError when that does not come."""
    snapshot = yard.snapshot()
    least, before = bound(snapshot), cost(snapshot)
    evictions, dearer, was = 0, 0, before
    for passes in range(MOST_PASSES):
        found = propose(snapshot)
        if not found:
            return Rest(before / least, was / least, len(yard.nodes), passes, evictions, dearer)
        evictions += carry_out(yard, snapshot, going(found), passes)
        snapshot = yard.snapshot()
        now = cost(snapshot)
        dearer, was = dearer + (now > was), now
    raise RuntimeError(f"still moves after {MOST_PASSES} passes")


def going(found: Sequence[Proposal]) -> frozenset[str]:
    """The nodes that go in one pass: replacements are begun one after the other, and each is judged anew then."""
    replaced = [one for one in found if one.replacements]
    begun = [one for one in found if not one.replacements] + replaced[:1]
    return frozenset(key for one in begun for key in one.candidates)


def carry_out(yard: Yard, snapshot: Snapshot, gone: frozenset[str], number: int) -> int:
    """These nodes go, and what has to comes for them; the pods are bound anew. How many pods that evicts."""
    nodes = {yard.nodes[key][1].metadata.name for key in gone}
    moved = [pod for pod in yard.pods.values() if pod.spec.node_name in nodes]
    planned = solve(snapshot, moved, SolveOptions(exclude=gone)).new_nodes
    for key in gone:
        del yard.nodes[key]
    for pod in moved:
        yard.bind(pod.key, "")
    yard.buy(planned, f"r{number}-")
    for again in range(MOST_ROUNDS):
        if not _schedule(yard):
            return len(moved)
        yard.buy(solve(yard.snapshot(), _waiting(yard)).new_nodes, f"l{number}-{again}-")
    raise RuntimeError(f"{len(_waiting(yard))} pods have no place")


def _schedule(yard: Yard) -> int:
    """Bind what waits, as the kube-scheduler does; how many pods find no place."""
    waiting = _waiting(yard)
    placed = solve(yard.snapshot(), waiting, SolveOptions(scattered=KubeSchedulerOrder, open_new=False)).placed
    for key, target in placed.items():
        yard.bind(key, target)
    return len(waiting) - len(placed)


def _waiting(yard: Yard) -> list[Pod]:
    return [pod for pod in yard.pods.values() if not pod.spec.node_name]


def cost(snapshot: Snapshot) -> int:
    """Of all nodes, in millionths of a dollar per hour."""
    known = {type_.name: type_ for types in snapshot.catalogues.values() for type_ in types}
    rows = (node.metadata.labels for node in snapshot.nodes.values())
    return sum(price(known[row[labels.INSTANCE_TYPE]], row) for row in rows)


def bound(snapshot: Snapshot) -> float:
    """The least that nodes for all the pods cost."""
    free = [replace(pod, spec=replace(pod.spec, node_name="")) for pod in snapshot.pods.values()]
    return lp_bound(snapshot, free)


# --- figures --------------------------------------------------------------------------------------------------------
def rows() -> list[Row]:
    """A pass over about 1,000 nodes and 15,000 pods, and where passes lead."""
    done = one_pass(Shape(pods=37_500))
    what = f"consolidation: a pass over {done.nodes:,} nodes, {done.pods:,} pods"
    left = settle(half_empty(Shape(pods=1_500)))
    return [
        Row(f"{what}, CPU", f"{done.seconds:.1f} s", "≤ 5 s", done.seconds <= 5),
        Row(f"{what}, the same again", f"{done.again:.1f} s", "≤ 5 s", done.again <= 5),
        Row(
            "consolidation: 600 of 1,500 pods are left, cost by the bound",
            f"{left.after:.3f}",
            "≤ 1.05",
            left.after <= 1.05,
        ),
        Row("consolidation: the same, evictions", f"{left.evictions}", "≤ 350", left.evictions <= 350),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consolidation", description="Consolidate a cluster.")
    parser.add_argument("--pods", type=int, default=37_500, help="before most of them went (default %(default)s)")
    parser.add_argument("--share", type=float, default=0.4, help="of the pods that stay (default %(default)s)")
    parser.add_argument("--settle", action="store_true", help="pass after pass, until nothing is proposed")
    parser.add_argument("--skewed", action="store_true", help="some nodes are nearly full, others nearly empty")
    parser.add_argument("--seeds", type=int, default=1, help="so many clusters (default %(default)s)")
    chosen = parser.parse_args(arguments)
    for seed in range(1, chosen.seeds + 1):
        shape = Shape(pods=chosen.pods, share=chosen.share, skewed=chosen.skewed, seed=seed)
        found = settle(half_empty(shape)) if chosen.settle else one_pass(shape)
        print("  ".join(f"{key} {value:.4g}" for key, value in asdict(found).items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
