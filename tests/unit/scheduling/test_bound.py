"""The bound that a solution carries: the referee's, reckoned another way; never above the price; told or not known."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from benchmarks import scheduling, workloads
from kerf.model.aws.instance_type import Catalogue
from kerf.model.plan import Purchase
from kerf.model.snapshot import Snapshot
from kerf.scheduling.solve import Solution, SolveOptions, solve
from kerf_api import labels
from tests.laws.test_scheduling_laws import a_world
from tests.referee.cost import lp_bound
from tests.unit.scheduling import worlds as w

SECOND = timedelta(seconds=1)
DOLLAR = 1_000_000


def solved(snapshot: Snapshot, improve: timedelta = SECOND) -> Solution:
    return solve(snapshot, list(snapshot.pods.pending.values()), SolveOptions(improve=improve))


def judged(snapshot: Snapshot, solution: Solution) -> float:
    """The referee's bound for the pods that the solution buys nodes for; a reserved one is paid for already."""
    bought = {key for node in solution.new_nodes if node.capacity_types != (labels.RESERVED,) for key in node.pods}
    return lp_bound(snapshot, [pod for key, pod in snapshot.pods.pending.items() if key in bought])


def lower(snapshot: Snapshot) -> bool:
    """Whether the referee's bound may be lower.

    It leaves out daemon sets that may keep away from a label value which only a pod settles, and may use capacity
    reservations without end.
    """
    unsettled = any("team" in pool.requirements() for pool in snapshot.node_pools.values())
    sold = {o.capacity_type for types in snapshot.catalogues.values() for one in types for o in one.offerings}
    return (bool(snapshot.daemon_sets) and unsettled) or labels.RESERVED in sold


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_referees_and_never_above_the_price(seed: int) -> None:
    snapshot = a_world(Random(seed))
    solution = solved(snapshot)
    assert solution.bound is not None
    assert solution.bound <= solution.price
    theirs = judged(snapshot, solution)
    if lower(snapshot):
        assert theirs <= solution.bound + 1
    else:
        assert solution.bound == pytest.approx(theirs, rel=1e-6, abs=1)


@pytest.mark.parametrize(
    ("kind", "catalogue"), [("services", "families"), ("plain", "families"), ("mixed", "synthetic")]
)
@pytest.mark.parametrize("capacity_type", [None, labels.ON_DEMAND])
def test_it_is_the_referees_on_real_types(kind: str, catalogue: str, capacity_type: str | None) -> None:
    pods = scheduling.read_pods(msgspec.json.encode(workloads.workload(kind, 150)))
    types = scheduling.read_catalogue(msgspec.json.encode(workloads.CATALOGUES[catalogue]()))
    snapshot = scheduling.snapshot_of(pods, types, capacity_type)
    solution = solved(snapshot)
    assert solution.bound == pytest.approx(judged(snapshot, solution), rel=1e-6)
    assert solution.purchase is not None
    assert 1 <= (solution.purchase.cost_ratio or 0) < 1.5


def test_a_mixture_is_not_split_into_its_resources() -> None:
    """Cores of one type and memory of another hold no pod: what is bought for memory has its cores with it."""
    lean = w.instance_type("lean", 10, 1, pods=50, price=DOLLAR)
    fat = w.instance_type("fat", 1, 10, pods=50, price=DOLLAR)
    solution = solved(w.world(w.pool(), w.replicas(4, "p", "900m", "1000Mi"), catalogue=(lean, fat)))
    assert solution.bound == pytest.approx(4 * DOLLAR * 1000 / 1014, rel=1e-6)


def test_pods_on_nodes_that_are_there_are_not_in_it() -> None:
    snapshot = w.world(w.pool(), w.node("n", cpu="8", memory="8Gi"), w.pod("p"))
    solution = solved(snapshot)
    assert (solution.bound, solution.price, solution.purchase) == (0, 0, None)


def test_without_work_for_a_cheaper_answer_it_is_not_known() -> None:
    solution = solved(w.world(w.pool(), w.pod("p")), timedelta())
    assert solution.bound is None
    assert solution.purchase == Purchase(nodes=1, pods=1, price=solution.price, bound=None)
    assert solution.purchase.cost_ratio is None


def test_what_is_reserved_is_paid_for() -> None:
    """One node is on a reservation: it and its pods are in neither the least nor what that is of."""
    reserved = w.instance_type("kept", 8, 8, price=1, markets=(("z1", labels.RESERVED),))
    bought = w.instance_type("sold", 4, 4, price=DOLLAR, markets=(("z1", labels.ON_DEMAND),))
    there, elsewhere = ({labels.CAPACITY_TYPE: name} for name in (labels.RESERVED, labels.ON_DEMAND))
    pods = [w.pod("r", "1", nodeSelector=there), *w.replicas(3, "p", "1300m", nodeSelector=elsewhere)]
    solution = solved(w.world(w.pool(), pods, catalogue=(reserved, bought)))
    assert solution.unplaced == {}
    assert solution.bound == DOLLAR
    assert solved(w.world(w.pool(), pods[:1], catalogue=(reserved, bought))).bound == 0


def many_sorts(count: int) -> Catalogue:
    """Types of which none outdoes another: the more cores, the less memory, at one price."""
    return tuple(w.instance_type(f"t-{i}", 4 + i, 4 + count - i, price=DOLLAR) for i in range(count))


def test_a_program_that_is_too_large_for_the_pass_is_not_solved() -> None:
    """The same pods with more types; more pods allow more work."""
    few, many = (w.world(w.pool(), w.pod("p"), catalogue=many_sorts(count)) for count in (20, 3200))
    assert solved(few).bound is not None
    assert solved(many).bound is None
    pods: Any = w.replicas(100, "p")
    assert solved(w.world(w.pool(), pods, catalogue=many_sorts(3200))).bound is not None


def test_the_cheapest_pool_counts_whatever_its_weight() -> None:
    """A heavier pool is bought from although it is dearer: that is what the ratio tells."""
    dear = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
    pools = w.pool("heavy", weight=10, requirements=[dear]), w.pool("light")
    markets = (("z1", "spot"), ("z1", "on-demand"))
    cheap = w.instance_type("c", 4, 4, price=DOLLAR // 2, markets=markets[:1])
    full = w.instance_type("d", 4, 4, price=DOLLAR, markets=markets[1:])
    snapshot = w.world(*pools, w.replicas(3, "p", "1300m", "10Mi"), catalogue=(cheap, full))
    solution = solved(snapshot)
    assert (solution.price, solution.bound) == (DOLLAR, DOLLAR // 2)
    assert solution.purchase is not None
    assert solution.purchase.cost_ratio == 2.0
