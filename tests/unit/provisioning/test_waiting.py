"""Pods that terminate are there until they are gone; a node is bought because of one only if that takes long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.boundary import solve_apart
from kerf.provisioning.provision import provision
from kerf.provisioning.why import why
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from tests.referee.judge import violations
from tests.unit.scheduling import worlds as w

SECOND = timedelta(seconds=1)
LONG, SOON, STUCK = 3600, 30, -61
WEB = {"app": "web"}
APART: dict[str, Any] = {"labels": WEB, "affinity": w.between("podAntiAffinity", labels.HOSTNAME)}


def ending(pod: Pod, seconds: float) -> Pod:
    """The pod while it terminates, with so many seconds of its grace left."""
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=w.NOW + seconds * SECOND))


def solution(*objects: Any) -> Solution:
    """Of all pending pods, judged by the referee."""
    snapshot = w.world(w.pool(), *objects)
    asked = list(snapshot.pods.pending.values())
    found = solve_apart(snapshot, asked)
    assert violations(snapshot, asked, found) == []
    return found


def plan(*objects: Any) -> Plan:
    batch = Batch(w.NOW - 2 * SECOND, w.NOW - 2 * SECOND)
    return provision(w.world(w.pool(), *objects, batch=batch))


#: Worlds in which the pod `p` has room on the node `n` when `old` is gone from it.
WORLDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cpu": ({"cpu": "3"}, {"cpu": "3"}),
    "a host port": ({"ports": [{"hostPort": 80}]}, {"ports": [{"hostPort": 80}]}),
    "its anti-affinity": ({"labels": WEB}, APART),
    "anti-affinity of the other": (APART, {"labels": WEB}),
}


@pytest.mark.parametrize("left", [LONG, SOON, STUCK])
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_a_node_is_bought_because_of_a_pod_that_terminates_only_if_that_takes_long(world: str, left: int) -> None:
    before, after = WORLDS[world]
    done = solution(w.node("n"), ending(w.pod("old", node="n", **before), left), w.pod("p", **after))
    assert not done.placed
    assert len(done.new_nodes) == (left != SOON)
    assert [why.code for why in done.unplaced.values()] == ["WaitsForTerminatingPods"] * (left == SOON)


def test_a_place_that_is_free_now_comes_first() -> None:
    world = (w.node("n"), ending(w.pod("old", "3", node="n"), SOON))
    assert solution(*world, w.node("m"), w.pod("p", "3")).placed == {"default/p": "node/m"}
    done = solution(*world, w.node("m"), w.replicas(3, "p", "3"))
    assert (list(done.placed.values()), len(done.unplaced), len(done.new_nodes)) == (["node/m"], 1, 1)


PORT: dict[str, Any] = {"ports": [{"hostPort": 80}]}


def test_a_pod_that_waits_waits_for_another_place_than_the_pods_that_are_placed_now() -> None:
    """Without the terminating pod, `p-0` would be first on node `a` and leave node `b` to `p-1`."""
    there = (w.node("a"), w.node("b"), ending(w.pod("old", node="a", **PORT), SOON))
    done = solution(*there, w.replicas(2, "p", "3", **PORT))
    assert done.placed == {"default/p-0": "node/b"}
    assert {key: why.target for key, why in done.unplaced.items()} == {"default/p-1": "node/a"}


def test_no_node_is_bought_where_a_pod_that_is_placed_now_keeps_its_pods_away() -> None:
    """Without the terminating pod, `web` would be in zone z1, and `far` could be in zone z2."""
    apart = w.between("podAntiAffinity", labels.ZONE)
    tainted = w.node("b", "z2", taints=[{"key": "t", "effect": "NoSchedule"}])
    there = (w.node("a"), tainted, ending(w.pod("old", node="a", **PORT), SOON))
    web = w.pod("web", "3", labels=WEB, tolerations=[{"key": "t", "operator": "Exists"}], **PORT)
    done = solution(*there, web, w.pod("far", affinity=apart, nodeSelector={labels.ZONE: "z2"}))
    assert done.placed == {"default/web": "node/b"}
    assert not done.new_nodes


def test_the_successors_of_pods_that_keep_apart() -> None:
    """Of three replicas on three nodes two are deleted, and their successors come at once."""
    for left, nodes in ((LONG, 2), (SOON, 0)):
        there = [w.pod(f"old-{n}", node=n, **APART) for n in "abc"]
        world = (*(w.node(n) for n in "abc"), there[0], *(ending(pod, left) for pod in there[1:]))
        assert len(solution(*world, w.replicas(2, "new", **APART)).new_nodes) == nodes


def test_a_new_node_may_be_where_a_pod_is_about_to_leave() -> None:
    apart: dict[str, Any] = {"labels": WEB, "affinity": w.between("podAntiAffinity", labels.ZONE)}
    there = [w.pod(f"old-{n}", node=f"n{n}", **apart) for n in (1, 2, 3)]
    nodes = [w.node(f"n{n}", f"z{n}", taints=[{"key": "t", "effect": "NoSchedule"}]) for n in (1, 2, 3)]
    world = (*nodes, *there[:2], ending(there[2], SOON), w.pod("p", **apart))
    (new,) = solution(*world).new_nodes
    assert new.zones == ("z3",)
    assert solution(*nodes, *there[:2], ending(there[2], LONG), w.pod("p", **apart)).unplaced


def test_a_pod_that_terminates_is_company_and_counts_for_no_spread() -> None:
    near = w.pod("p", affinity=w.between("podAffinity", labels.HOSTNAME))
    assert solution(w.node("n"), ending(w.pod("old", node="n", labels=WEB), LONG), near).placed
    spread: dict[str, Any] = {"labels": WEB, "topologySpreadConstraints": [w.spread(key=labels.HOSTNAME)]}
    going = [ending(w.pod(f"old-{i}", node="n", labels=WEB), LONG) for i in range(3)]
    assert solution(w.node("n"), *going, w.pod("p", **spread)).placed == {"default/p": "node/n"}


NEAR: dict[str, Any] = {"affinity": w.between("podAffinity", labels.ZONE)}


def test_no_node_is_bought_beside_a_pod_that_is_gone_by_then() -> None:
    """One pod has a place beside a pod that terminates. For the other, a node would come too late."""
    for left, bought in ((LONG, ["default/near-1", "default/other"]), (SOON, ["default/other"])):
        there = (w.node("n", cpu="1"), ending(w.pod("old", node="n", labels=WEB), left))
        near = w.replicas(2, "near", "800m", **NEAR)
        done = solution(*there, near, w.pod("other", "2"))
        assert done.placed == {"default/near-0": "node/n"}
        assert sorted(key for node in done.new_nodes for key in node.pods) == bought
        assert sorted(done.order) == ["default/near-0", *bought]


def test_a_pod_that_is_bound_at_once_is_company_for_new_nodes() -> None:
    """`first` is placed beside `old`, and counts for `next` when `old` is gone."""
    there = (w.node("n", cpu="1"), ending(w.pod("old", node="n", labels=WEB), SOON))
    first = w.pod("first", "800m", labels={"app": "db"}, **NEAR)
    following = w.pod("next", "800m", affinity=w.between("podAffinity", labels.ZONE, "db"))
    done = solution(*there, first, following)
    assert done.placed == {"default/first": "node/n"}
    assert [(node.pods, node.zones) for node in done.new_nodes] == [(("default/next",), ("z1",))]


def test_a_pod_that_is_placed_beside_a_pod_on_a_new_node_is_not_bound_at_once() -> None:
    """While `old` is there, `web-1` gets a node in zone z2, and then `web-2` a place in zone z3. Without `old`, `web-1`
    waits for a place in zone z1: zone z2 is empty, and zone z3 takes no second pod."""
    zones = {"z1": "a", "z2": "b", "z3": "c"}
    cordoned = [{"key": "t", "effect": "NoSchedule"}]
    nodes = [w.node("a", cpu="2"), w.node("b", "z2", taints=cordoned), w.node("c", "z3", cpu="2")]
    there = [w.pod(f"there-{zone}", "0", node=zones[zone], labels=WEB) for zone in ("z1", "z3")]
    old = ending(w.pod("old", "1500m", node="a"), SOON)
    web = w.replicas(3, "web", "900m", labels=WEB, topologySpreadConstraints=[w.spread(skew=2)])
    done = solution(nodes, there, old, web)
    assert done.placed == {"default/web-0": "node/c"}
    assert [node.pods for node in done.new_nodes] == [("default/web-2",)]
    assert [why.target for why in done.unplaced.values()] == ["node/a"]


def test_a_pod_that_waits_is_company_for_new_nodes() -> None:
    there = (w.node("n", "z2", cpu="2"), ending(w.pod("old", "1800m", node="n"), SOON))
    done = solution(*there, w.pod("web", "1800m", labels=WEB), w.pod("near", "3", **NEAR))
    assert [(why.code, why.target) for why in done.unplaced.values()] == [("WaitsForTerminatingPods", "node/n")]
    assert [node.zones for node in done.new_nodes] == [("z2",)]


def test_the_refusal_says_who_goes_when_and_no_event_does() -> None:
    world = (w.node("n"), ending(w.pod("old", "3", node="n"), SOON), w.pod("p", "3"))
    found = plan(*world)
    assert not [action for action in found.actions if isinstance(action, CreateNodeClaim)]
    assert not found.events
    (refusal,) = found.refusals
    text = (
        "waits for a place on node n: pods that terminate there are deleted by 12:00:30 UTC, before a new node is ready"
    )
    assert refusal.reason.text == f"{text} (default/old)"
    answer = why(w.world(w.pool(), *world), "default/p")
    assert (answer.code, answer.text) == ("Refused", refusal.reason.text)
