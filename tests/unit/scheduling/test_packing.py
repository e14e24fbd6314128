"""Packing: which sizes cover a demand, what linear programs say of it, and that looking longer is never dearer."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import highspy
import msgspec
import numpy as np
import pytest

from benchmarks import workloads
from benchmarks.scheduling import read_catalogue, read_pods, snapshot_of
from kerf.model.snapshot import Snapshot
from kerf.scheduling.packing.linear import duals, most_of
from kerf.scheduling.solve import Solution, SolveOptions, solve
from kerf_api import labels
from tests.referee import violations
from tests.referee.cost import cost, lp_bound, whole_cost
from tests.sources import python_path
from tests.unit.scheduling import worlds as w


def _market(kind: str, count: int, seed: int) -> Snapshot:
    catalogue = read_catalogue(msgspec.json.encode(workloads.families()))
    pods = read_pods(msgspec.json.encode(workloads.workload(kind, count, seed)))
    return snapshot_of(pods, catalogue, labels.ON_DEMAND)


def _solved(world: Snapshot, seconds: float = 0.0) -> Solution:
    return solve(world, list(world.pods.pending.values()), SolveOptions(improve=timedelta(seconds=seconds)))


def test_duals_say_what_each_resource_is_worth() -> None:
    """One type has all of the first resource for 1, the other all of the second for 3; neither is worth more."""
    found = duals(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 3.0]))
    assert found == pytest.approx([1.0, 3.0])


def test_pods_are_meant_for_the_room_that_is_like_them() -> None:
    """Ten pods of the first resource and ten of the second; one room has only the one, the other only the other."""
    needs = np.array([[0.1, 0.0], [0.0, 0.1]])
    found = most_of(needs, np.array([10.0, 10.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert found == pytest.approx(np.array([[10.0, 0.0], [0.0, 10.0]]))


def test_a_solve_prints_nothing() -> None:
    """HiGHS 1.16 prints a banner when a solver is constructed, from native code: only another process shows it."""
    program = "import numpy as np; from kerf.scheduling.packing.linear import duals; duals(np.eye(2), np.ones(2))"
    command, env = [sys.executable, "-c", program], {"PYTHONPATH": python_path()}
    found = subprocess.run(command, env=env, capture_output=True, check=True, timeout=120)
    assert (found.stdout, found.stderr) == (b"", b"")


def test_a_solver_has_no_output_before_its_callbacks_are_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS 1.16 prints its banner then; the version of the tests may be older."""
    enabled = list[bool]()
    monkeypatch.setattr(
        highspy.Highs, "enableCallbacks", lambda self: enabled.append(self.getOptionValue("output_flag")[1])
    )
    duals(np.eye(2), np.ones(2))
    assert enabled == [False]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kind", "count"), [("plain", 60), ("plain", 400), ("services", 150)])
def test_looking_longer_is_never_dearer_and_always_right(kind: str, count: int, seed: int) -> None:
    """And never below what no answer can be."""
    world = _market(kind, count, seed)
    pods = list(world.pods.pending.values())
    quick, slow = _solved(world), _solved(world, 0.2)
    for answer in (quick, slow):
        assert not violations(world, pods, answer)
    bought = [world.pods.pending[key] for node in slow.new_nodes for key in node.pods]
    assert lp_bound(world, bought) <= cost(world, slow)
    assert whole_cost(world, slow) <= whole_cost(world, quick)
    assert quick.unplaced.keys() == slow.unplaced.keys()


def test_the_same_pods_get_the_same_answer() -> None:
    """Though it is looked for at random."""
    one, two = (_solved(_market("plain", 200, 5), 0.2) for _ in range(2))
    assert one == two


def test_large_demand_comes_near_the_bound() -> None:
    """Types for much memory and types for many cores are mixed as the pods are."""
    world = _market("plain", 2000, 1)
    answer = _solved(world, 0.4)
    assert cost(world, answer) <= 1.05 * lp_bound(world, list(world.pods.pending.values()))


def test_nodes_that_must_be_many_share_what_else_there_is() -> None:
    """Thirty pods keep apart, ninety may join them: three to a small node cost least, and some have to grow."""
    apart = w.replicas(
        30, "a", "500m", labels={"app": "a"}, affinity=w.between("podAntiAffinity", labels.HOSTNAME, "a")
    )
    answer = w.solved(w.pool(), *apart, *w.replicas(90, "b", "500m"))
    assert 30 <= len(answer.new_nodes) <= 40
    assert min(len(node.pods) for node in answer.new_nodes) > 1
    assert answer.price <= 17_000_000


def test_what_is_left_over_of_the_last_node_is_not_bought() -> None:
    """Six pods on nodes for four: one full, and one for the other two."""
    roomy = (w.instance_type("four", 5, 8, pods=20), w.instance_type("two", 3, 4, pods=20))
    answer = w.solved(w.pool(), *w.replicas(6, "p", "1"), catalogue=roomy)
    assert sorted(len(node.pods) for node in answer.new_nodes) in ([2, 4], [2, 2, 2])


def test_few_pods_are_covered_by_any_number_of_sizes() -> None:
    """Thirteen pods of a core: eight, four and one cost less than any two sizes that hold them."""
    sizes = tuple(w.instance_type(f"of-{n}", n + 1, 64, pods=20, price=n * 100_000) for n in (1, 4, 8))
    answer = w.solved(w.pool(), *w.replicas(13, "p", "1"), catalogue=sizes)
    assert sorted(len(node.pods) for node in answer.new_nodes) == [1, 4, 8]


@pytest.mark.parametrize("seed", range(6))
def test_pods_that_must_be_on_demand_are_not_crowded_out_by_those_that_need_not(seed: int) -> None:
    """No more is spent on on-demand nodes than for these pods alone: others would pay what spot does not ask."""
    catalogue = read_catalogue(msgspec.json.encode(workloads.families()))
    pods = read_pods(msgspec.json.encode(workloads.workload("services", 300, seed)))
    bound = [p for p in pods if labels.ON_DEMAND in p.spec.node_selector.values()]
    alone = _solved(snapshot_of(bound, catalogue, None)).price
    together = _solved(snapshot_of(pods, catalogue, None)).new_nodes
    assert sum(node.price for node in together if labels.SPOT not in node.capacity_types) <= 1.05 * alone


def test_pods_of_one_size_are_counted_and_not_poured() -> None:
    """Two cores hold one such pod, three hold two: the larger is the better buy though it costs more a core."""
    sizes = (w.instance_type("of-1", 2, 64, price=200_000), w.instance_type("of-2", 3, 64, price=310_000))
    answer = w.solved(w.pool(), *w.replicas(10, "p", "1100m"), catalogue=sizes)
    assert [node.instance_types[0] for node in answer.new_nodes] == ["of-2"] * 5


def test_who_must_share_a_host_does_so_on_one_that_leaves_enough_types() -> None:
    """minValues asks for two types, and only the larger holds three pods: two share a node, and the third waits."""
    types = (w.instance_type("four", 4, 64), w.instance_type("sixteen", 16, 64))
    pool = w.pool(requirements=[{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}])
    near = w.between("podAffinity", labels.HOSTNAME, "a")
    answer = w.solved(pool, *w.replicas(3, "a", "1500m", labels={"app": "a"}, affinity=near), catalogue=types)
    assert [len(node.pods) for node in answer.new_nodes] == [2]
    assert len(answer.unplaced) == 1


def test_who_is_more_important_has_what_limits_leave() -> None:
    """Limits leave one of two nodes; the other one would serve four pods for its price, and this one a single pod."""
    types = (w.instance_type("five", 5, 8), w.instance_type("arm", 5, 8, arch="arm64"))
    most = w.pod("most", "900m", priority=1000, nodeSelector={labels.ARCH: "arm64"})
    least = w.replicas(4, "least", "1", nodeSelector={labels.ARCH: "amd64"})
    answer = w.solved(w.pool(limits={"cpu": "5"}), *least, most, catalogue=types)
    assert sorted(answer.unplaced) == [pod.key for pod in least]
