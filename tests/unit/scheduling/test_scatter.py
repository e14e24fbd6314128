"""Where pods may end up when only the kube-scheduler places them: on the emptiest node, small ones first or large, or
by their names."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kerf.model.kubernetes.storage import PersistentVolume, PersistentVolumeClaim
from kerf.scheduling.placing.as_kube_scheduler import (
    KubeSchedulerOrder,
    KubeSchedulerOrderByName,
    KubeSchedulerOrderLargeFirst,
    Line,
)
from kerf.scheduling.solve import Solution, SolveOptions, solve
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.referee_plants import volume, volume_claim

A, B = w.node("a", cpu="1"), w.node("b", cpu="2")


def scattered(*objects: Any, by: type[KubeSchedulerOrder] = KubeSchedulerOrder) -> Solution:
    snapshot = w.world(*objects)
    return solve(snapshot, list(snapshot.pods.pending.values()), SolveOptions(scattered=by))


def test_the_emptiest_node_is_taken_first_though_another_pod_will_miss_the_room() -> None:
    pods = [w.pod("roaming", "900m"), w.pod("tied", "1500m", nodeSelector={labels.HOSTNAME: "b"})]
    planned = w.solved(w.pool(), A, B, pods)
    assert planned.placed == {"default/roaming": "node/a", "default/tied": "node/b"}
    found = scattered(w.pool(), A, B, pods)
    assert found.placed == {"default/roaming": "node/b"}
    assert "default/tied" in found.unplaced


def test_a_share_counts_and_not_an_amount() -> None:
    busy = w.pod("there", "1500m", node="c")
    assert scattered(A, w.node("c", cpu="3"), busy, w.pod("p", "100m")).placed == {"default/p": "node/a"}


def test_pods_that_fit_in_any_order_all_have_a_place() -> None:
    tied = w.pod("tied", "1500m", nodeSelector={labels.HOSTNAME: "b"})
    assert not scattered(A, B, w.replicas(2, "small", "200m"), tied).unplaced


@pytest.mark.parametrize(("priority", "first"), [(0, "small"), (9, "large")])
def test_a_higher_priority_comes_first_else_the_smaller_pod(priority: int, first: str) -> None:
    pods = [w.pod("small", "500m"), w.pod("large", "1800m", priority=priority)]
    assert list(scattered(B, pods).placed) == [f"default/{first}"]


def test_large_pods_may_come_first_as_well() -> None:
    pods = [w.pod("small", "500m"), w.pod("large", "1800m")]
    assert list(scattered(B, pods, by=KubeSchedulerOrderLargeFirst).placed) == ["default/large"]


@pytest.mark.parametrize(
    ("by", "placed"),
    [(KubeSchedulerOrder, "bc"), (KubeSchedulerOrderLargeFirst, "ac"), (KubeSchedulerOrderByName, "ab")],
)
def test_or_pods_may_come_as_they_are_evicted_by_name(by: type[KubeSchedulerOrder], placed: str) -> None:
    """Which is neither by size: what comes between the small and the large takes another one's room."""
    pods = [w.pod("b", "500m"), w.pod("a", "1"), w.pod("c", "800m")]
    assert set(scattered(B, pods, by=by).placed) == {f"default/{name}" for name in placed}


def test_urgent_pods_come_first_by_name_too() -> None:
    pods = [w.pod("b", "500m"), w.pod("a", "1"), w.pod("c", "800m", priority=9)]
    assert set(scattered(B, pods, by=KubeSchedulerOrderByName).placed) == {"default/a", "default/c"}


def test_pods_with_volumes_come_last() -> None:
    one: tuple[PersistentVolumeClaim, PersistentVolume] = (volume_claim("c", "v"), volume("v", labels.ZONE, "z1"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    pods = [w.pod("attached", "100m", volumes=volumes), w.pod("large", "1950m")]
    assert list(scattered(B, *one, pods).placed) == ["default/large"]


def test_a_node_that_has_not_joined_takes_none() -> None:
    before = w.world(w.pool(), w.pod("first"))
    (claim,) = w.claims(before, solve(before, list(before.pods.pending.values())))
    world = (w.pool(), w.launched(claim, before), w.pod("p"))
    assert w.solved(*world).placed
    assert scattered(*world).new_nodes


def test_a_wish_is_no_reason_for_a_new_node() -> None:
    wish = {"weight": 1, "preference": {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z2"]}]}}
    wishing = w.pod("p", affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}})
    assert w.solved(w.pool(), A, wishing).new_nodes
    assert scattered(w.pool(), A, wishing).placed == {"default/p": "node/a"}


def test_a_line_that_is_kept_up_is_the_one_that_would_be_made_anew() -> None:
    """Whatever fills and whatever is passed over, the first good place is that of all there are."""
    dice, free = Random(7), dict.fromkeys(range(12), 40)
    line = Line(list(free), list(free.values()))
    for _ in range(200):
        bad = {place for place in free if dice.random() < 0.4}
        expected = min((place for place in free if place not in bad), key=lambda p: (-free[p], p), default=None)
        found = line.first(frozenset(free).difference(bad).__contains__)
        assert found == expected
        if found is not None:
            free[found] -= dice.randrange(6)
            line.change(found, free[found] if free[found] > 0 else None)
            free = {place: left for place, left in free.items() if left > 0}
        line.change(99, 50)
    assert not free
