"""The price of an answer, and the bound below it: worked out by hand where that is possible, never above an answer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kerf.model.aws.instance_type import Catalogue
from kerf.scheduling.solve import solve
from kerf_api import labels
from tests.laws.test_scheduling_laws import a_world
from tests.referee.cost import cost, lp_bound
from tests.unit.scheduling import worlds as w

DOLLAR = 1_000_000
#: 4 cores each, less 100m: the one with much memory at a dollar, the one with little at half of it.
ROOMY = w.instance_type("roomy", 4, 16, pods=50, price=DOLLAR)
TIGHT = w.instance_type("tight", 4, 4, pods=50, price=DOLLAR // 2)


def bound(catalogue: Catalogue, *objects: Any) -> float:
    snapshot = w.world(w.pool(), *objects, catalogue=catalogue)
    return lp_bound(snapshot, list(snapshot.pods.pending.values()))


def test_one_class_on_its_best_type() -> None:
    """39 pods of 100m fill 3.9 cores: 78 pods fill two of the cheap nodes, 10 a quarter of one and a bit."""
    assert bound((ROOMY, TIGHT), w.replicas(78, "p", "100m", "1Mi")) == pytest.approx(2 * 0.5 * DOLLAR)
    assert bound((ROOMY, TIGHT), w.replicas(10, "p", "100m", "1Mi")) == pytest.approx(0.5 * DOLLAR * 10 / 39)


def test_two_classes_on_two_types() -> None:
    """Two small pods fill a tight node in cores (3900m) and memory (4086 MiB), two large ones a roomy one (16374 MiB).

    So four small and two large ones need two tight nodes and a roomy one: two dollars.
    """
    small, large = w.replicas(4, "small", "1950m", "2043Mi"), w.replicas(2, "large", "1950m", "8187Mi")
    assert bound((ROOMY, TIGHT), small) == pytest.approx(1.0 * DOLLAR)
    assert bound((ROOMY, TIGHT), large) == pytest.approx(1.0 * DOLLAR)
    assert bound((ROOMY, TIGHT), small, large) == pytest.approx(2.0 * DOLLAR)
    assert bound((ROOMY,), small, large) == pytest.approx(3.0 * DOLLAR), "cores run out: two pods on each node"


def test_room_that_one_class_leaves_is_used_by_another() -> None:
    """Two thin pods take all cores of a tight node (3900m) and 2 of its 4086 MiB; the thick ones take 20m and 4080 MiB.

    Together they need 3920m, 20m more than a node has, and 4082 MiB, which it has.
    """
    thin, thick = w.replicas(2, "thin", "1950m", "1Mi"), w.replicas(20, "thick", "1m", "204Mi")
    assert bound((TIGHT,), thin) == pytest.approx(0.5 * DOLLAR)
    assert bound((TIGHT,), thin, thick) == pytest.approx(0.5 * DOLLAR * 3920 / 3900)


def test_a_mixture_is_not_split_into_its_resources() -> None:
    """Cores of one type and memory of another hold no pod: what is bought for memory has its cores with it."""
    lean = w.instance_type("lean", 10, 1, pods=50, price=DOLLAR)
    fat = w.instance_type("fat", 1, 10, pods=50, price=DOLLAR)
    pods = w.replicas(4, "p", "900m", "1000Mi")
    assert bound((lean, fat), pods) == pytest.approx(4 * DOLLAR * 1000 / 1014, rel=1e-6)


def test_the_number_of_pods_is_a_resource() -> None:
    few = w.instance_type("few", 4, 16, pods=5, price=DOLLAR)
    assert bound((few,), w.replicas(15, "p", "1m", "1Mi")) == pytest.approx(3 * DOLLAR)


def test_labels_taints_and_stock_close_offerings() -> None:
    here = w.instance_type("here", 4, 16, price=DOLLAR, markets=(("z1", "on-demand"),))
    there = w.instance_type("there", 4, 16, price=3 * DOLLAR, markets=(("z2", "on-demand"),))
    pods = w.replicas(3, "p", "1300m")
    assert bound((here, there), pods) == pytest.approx(DOLLAR)
    assert bound((here, there), w.replicas(3, "p", "1300m", nodeSelector={labels.ZONE: "z2"})) == pytest.approx(
        3 * DOLLAR
    )
    either = w.node_affinity([(labels.ZONE, "In", ["z2"])], [(labels.INSTANCE_TYPE, "In", ["here"])])
    assert bound((here, there), w.replicas(3, "p", "1300m", affinity=either)) == pytest.approx(DOLLAR)
    assert bound((here, there), w.replicas(3, "p", "1300m", nodeSelector={labels.ZONE: "z9"})) == 0.0
    tainted = w.world(w.pool(taints=[{"key": "k", "effect": "NoSchedule"}]), *pods, catalogue=(here, there))
    assert lp_bound(tainted, pods) == 0.0


def test_daemon_sets_leave_less_room() -> None:
    assert bound((TIGHT,), w.replicas(39, "p", "100m", "1Mi")) == pytest.approx(0.5 * DOLLAR)
    with_agent = bound((TIGHT,), w.replicas(39, "p", "100m", "1Mi"), w.daemon_set("agent", "1300m"))
    assert with_agent == pytest.approx(0.5 * DOLLAR * 39 / 26)


def test_a_label_that_nothing_settles_closes_no_offering() -> None:
    either = w.pool(requirements=[{"key": "team", "operator": "In", "values": ["red", "blue"]}])
    pods = [w.pod("r", "1", nodeSelector={"team": "red"}), w.pod("b", "1", nodeSelector={"team": "blue"})]
    snapshot = w.world(either, *pods, catalogue=(TIGHT,))
    assert lp_bound(snapshot, pods) == pytest.approx(0.5 * DOLLAR * 2000 / 3900)


@pytest.mark.parametrize("seed", range(25))
def test_no_answer_is_cheaper_than_its_bound(seed: int) -> None:
    snapshot = a_world(Random(seed))
    pods = list(snapshot.pods.pending.values())
    solution = solve(snapshot, pods)
    assert cost(snapshot, solution) == solution.price
    bought = {key for node in solution.new_nodes for key in node.pods}
    assert lp_bound(snapshot, [pod for pod in pods if pod.key in bought]) <= solution.price * (1 + 1e-6)
