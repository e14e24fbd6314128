"""Few pods are solved on other courses, too, and the first of those who must be together minds the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.model.snapshot import Snapshot
from kerf.scheduling.placing.affinity_seed import Company
from kerf.scheduling.solve import Solution, SolveOptions, solve
from kerf_api import labels
from tests.referee import violations
from tests.unit.scheduling import worlds as w

TYPE = w.instance_type("four", 4, 8, pods=20)


def answer(*objects: Any, seconds: float = 0.2, **facts: Any) -> tuple[Snapshot, Solution]:
    snapshot = w.world(*objects, **{"catalogue": (TYPE,), **facts})
    pods = list(snapshot.pods.pending.values())
    found = solve(snapshot, pods, SolveOptions(improve=timedelta(seconds=seconds)))
    assert violations(snapshot, pods, found) == []
    return snapshot, found


def test_a_pod_for_any_nodepool_joins_the_node_that_another_needs() -> None:
    blue = w.pool("a", labels={"team": "blue"})
    pods = [w.pod("blue", nodeSelector={"team": "blue"}), w.pod("any")]
    _, plain = answer(blue, w.pool("b"), pods, seconds=0)
    _, found = answer(blue, w.pool("b"), pods)
    assert [node.pool for node in plain.new_nodes] == ["b", "a"]
    assert [node.pool for node in found.new_nodes] == ["a"]


def test_without_a_nodepool_nobody_looks_for_another_course() -> None:
    _, found = answer(w.node("full", cpu="1"), w.pod("p", "2"))
    assert list(found.unplaced) == ["default/p"]


def test_the_heavier_nodepool_comes_first_all_the_same() -> None:
    blue = w.pool("a", labels={"team": "blue"})
    pods = [w.pod("blue", nodeSelector={"team": "blue"}), w.pod("any")]
    _, found = answer(blue, w.pool("b", weight=5), pods)
    assert sorted(node.pool for node in found.new_nodes) == ["a", "b"]


@pytest.mark.parametrize("blue", ["a", "b"])
@pytest.mark.parametrize("red", ["a", "b", "c"])
def test_the_nodepools_of_one_weight_are_turned_whatever_is_right_for_those_of_another(blue: str, red: str) -> None:
    """Two are heavy and three are light, which makes six orders; in one of them each pod finds its company."""
    pools = [
        w.pool(f"{tier}-{name}", weight=weight, labels={"tier": tier, **({"team": team} if name == wanted else {})})
        for tier, names, weight, team, wanted in (("heavy", "ab", 5, "blue", blue), ("light", "abc", 0, "red", red))
        for name in names
    ]
    pods = [w.pod(team, nodeSelector={"team": team}) for team in ("blue", "red")]
    others = [w.pod(tier, nodeSelector={"tier": tier}) for tier in ("heavy", "light")]
    _, found = answer(pools, pods, others)
    assert sorted(node.pool for node in found.new_nodes) == [f"heavy-{blue}", f"light-{red}"]


def test_a_pod_that_must_be_near_another_leaves_room_for_those_it_is_near() -> None:
    """It could be beside any of the three, and the first two fill a node."""
    near = w.between("podAffinity", labels.HOSTNAME, "db")
    near["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"] = {
        "matchLabels": {"app": "db"}
    }
    large = [w.pod(f"large-{i}", "1900m", labels={"app": "db"}, nodeSelector={labels.ZONE: "z1"}) for i in (1, 2)]
    small = w.pod("small", "100m", labels={"app": "db"}, nodeSelector={labels.ZONE: "z2"})
    _, found = answer(w.pool(), large, small, w.pod("follower", "1", affinity=near))
    assert sorted(len(node.pods) for node in found.new_nodes) == [2, 2]


def test_who_founds_a_host_goes_where_the_others_have_room() -> None:
    """The node that is there has room for one of them, a new one for all."""
    own = {"labels": {"app": "web"}, "affinity": w.between("podAffinity", labels.HOSTNAME, "web")}
    _, found = answer(w.pool(), w.node("small", cpu="1"), w.replicas(3, "web", "900m", **own), seconds=0)
    assert found.placed == {}
    assert [len(node.pods) for node in found.new_nodes] == [3]


def test_who_founds_a_host_stays_on_a_node_that_has_room_for_all() -> None:
    own = {"labels": {"app": "web"}, "affinity": w.between("podAffinity", labels.HOSTNAME, "web")}
    nodes = [w.node("a-small", cpu="1"), w.node("large", cpu="4")]
    _, found = answer(w.pool(), nodes, w.replicas(3, "web", "900m", **own), seconds=0)
    assert set(found.placed.values()) == {"node/large"}
    assert found.new_nodes == ()


def test_who_founds_a_zone_goes_where_the_others_can_have_nodes() -> None:
    """In the zone of the node that is there nothing is for sale."""
    own = {"labels": {"app": "web"}, "affinity": w.between("podAffinity", labels.ZONE, "web")}
    sold = w.instance_type("four", 4, 8, pods=20, markets=[("z2", "on-demand")])
    _, found = answer(
        w.pool(), w.node("small", "z1", cpu="1"), w.replicas(3, "web", "900m", **own), seconds=0, catalogue=(sold,)
    )
    assert found.placed == {}
    assert sum(len(node.pods) for node in found.new_nodes) == 3


def test_when_nodes_are_short_larger_ones_serve_more() -> None:
    """Two small nodes are the best buy, but there may be one."""
    catalogue = (w.instance_type("two", 2, 4, price=100_000), w.instance_type("four", 4, 8, price=300_000))
    pool = w.pool(limits={"nodes": "1"})
    _, found = answer(pool, w.replicas(4, "web", "900m"), catalogue=catalogue)
    assert found.unplaced == {}
    assert [node.instance_types for node in found.new_nodes] == [("four",)]


def test_no_node_is_made_for_a_pod_before_those_it_must_be_near_have_places_on_nodes_that_are_there() -> None:
    """The first pod of `db` gets a new node in zone z2, the second one the node that is there, with room for `web`."""
    spread: dict[str, Any] = {"labels": {"app": "db"}, "topologySpreadConstraints": [w.spread(app="db")]}
    away = w.pod("away", nodeSelector={labels.ZONE: "z2"}, **spread)
    near = w.replicas(2, "web", "1500m", affinity=w.between("podAffinity", labels.HOSTNAME, "db"))
    here = w.pod("here", labels={"app": "db"})
    _, found = answer(w.pool(), w.node("n"), away, near, here, seconds=0)
    assert found.placed == dict.fromkeys(("default/here", "default/web-0", "default/web-1"), "node/n")
    assert [node.pods for node in found.new_nodes] == [("default/away",)]


def test_on_an_empty_cluster_no_pod_waits_for_places_on_nodes_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are none; waiting would only have its pods come after those that can share a node with them."""
    monkeypatch.setattr(Company, "comes_later", lambda *_: pytest.fail("asked without need"))
    near = w.replicas(2, "web", "1500m", affinity=w.between("podAffinity", labels.HOSTNAME, "db"))
    _, found = answer(w.pool(), near, w.replicas(2, "db", "1", labels={"app": "db"}), seconds=0)
    assert found.unplaced == {}
