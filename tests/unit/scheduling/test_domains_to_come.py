"""Domains of a spread that are not there yet: of nodes that can be made for the pod, and of planned nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.scheduling.answers.solution import Solution
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from tests.referee.judge import violations
from tests.unit.scheduling import worlds as w

WEB = {"app": "web"}
ONE_ZONE = (w.instance_type("default", 4, 4, markets=(("z2", "spot"),)),)


def solution(*objects: Any) -> Solution:
    """Of all pending pods, judged by the referee; new nodes are in zone z2, on spot."""
    snapshot = w.world(w.pool(), *objects, catalogue=ONE_ZONE)
    asked = list(snapshot.pods.pending.values())
    found = w.solved(w.pool(), *objects, catalogue=ONE_ZONE)
    assert violations(snapshot, asked, found) == []
    return found


def test_no_domain_comes_with_a_node_that_the_anti_affinity_of_others_forbids() -> None:
    """The spread counts nodes that are not on spot for the pod `web`: without a new node, those of zone z1 alone."""
    apart = w.pod("apart", node="m", affinity=w.between("podAntiAffinity", labels.ZONE))
    there = (w.node("n"), w.pod("old", node="n", labels=WEB), w.node("m", "z2", labels={"team": "red"}), apart)
    blue = w.node_affinity([("team", "NotIn", ["red"])])
    web = w.pod("web", labels=WEB, affinity=blue, topologySpreadConstraints=[w.spread()])
    assert solution(*there, web).placed == {"default/web": "node/n"}


def test_no_domain_comes_where_the_constraints_together_leave_no_new_node() -> None:
    """Zone z2 would be the emptiest, but a node there is on spot, where there is a pod more than on demand."""
    spreads = [w.spread(), w.spread(labels.CAPACITY_TYPE)]
    there = (w.node("n"), w.node("m", cpu="100m", labels={labels.CAPACITY_TYPE: "spot"}))
    old, web = w.pod("old", node="m", labels=WEB), w.pod("web", labels=WEB, topologySpreadConstraints=spreads)
    assert solution(*there, old, web).placed == {"default/web": "node/n"}


def test_a_spread_that_does_not_count_its_own_pods_counts_the_domains_of_planned_nodes() -> None:
    """The node of `other` is in zone z2, which then has two pods of `db` less than zone z1."""
    there = (w.node("n"), w.replicas(2, "old", node="n", labels={"app": "db"}))
    spread = w.spread(app="db", nodeAffinityPolicy="Ignore")
    web = w.pod("web", nodeSelector={labels.ZONE: "z1"}, topologySpreadConstraints=[spread])
    assert solution(*there, web).placed == {"default/web": "node/n"}
    other = w.pod("other", "3", nodeSelector={labels.ZONE: "z2"})
    assert list(solution(*there, web, other).unplaced) == ["default/web"]


def test_a_domain_that_came_after_a_pod_was_placed_counts_for_it() -> None:
    """The pods of `web` have affinity to pods on hosts. Only when `db` has a planned node, zone z2 is open to them."""
    beside = w.between("podAffinity", labels.HOSTNAME)
    first, second = {**WEB, "version": "1"}, {**WEB, "version": "2"}
    there = (w.node("n", cpu="2"), w.pod("old", node="n", labels=first))
    spread = w.spread(matchLabelKeys=["version"])
    web = w.replicas(2, "web", "1500m", labels=first, affinity=beside, topologySpreadConstraints=[spread])
    found = solution(*there, web, w.pod("db", labels=second, topologySpreadConstraints=[w.spread()]))
    assert len(found.placed) == len(found.new_nodes) == 1
    assert tuple(found.placed) == found.order[-1:]  # when zone z2 has a pod


def test_a_planned_node_is_in_the_one_domain_that_its_node_claim_names() -> None:
    """The NodePool may label its node `r1` or `r2`, and the NodeClaim says `r1`; its limit leaves no node for `web`."""
    rack = "example.com/rack"
    pool = w.pool(requirements=[{"key": rack, "operator": "In", "values": ["r1", "r2"]}], limits={"cpu": "4"})
    other = w.pod("other", "3900m", nodeSelector={labels.ZONE: "z2"})
    web = w.replicas(2, "web", labels=WEB, topologySpreadConstraints=[w.spread(rack)])
    world = (pool, w.node("n", labels={rack: "r1"}), other, web)
    snapshot = w.world(*world, catalogue=ONE_ZONE)
    found = w.solved(*world, catalogue=ONE_ZONE)
    assert [claim.metadata.labels[rack] for claim in w.claims(snapshot, found)] == ["r1"]
    assert found.placed == dict.fromkeys(("default/web-0", "default/web-1"), "node/n")


RACK = "example.com/rack"


def test_a_pod_brings_no_domain_after_one_that_was_placed_without_it() -> None:
    """A node in zone z3 would be in rack r1, which has a pod too many until zone z2, with rack r3, has two of `web`.

    With that node zone z3 would be empty when the kube-scheduler comes to the first of `web`.
    """
    there = [w.node("n2", "z2", labels={RACK: "r3"}), w.node("n1", labels={RACK: "r1"})]
    taken = [w.replicas(2, "old", "1", node="n1", labels=WEB), w.pod("full", "2", node="n1")]
    pool = w.pool(requirements=[{"key": RACK, "operator": "In", "values": ["r1"]}])
    first = w.pod("first", labels=WEB, topologySpreadConstraints=[w.spread()])
    web = w.replicas(2, "web", labels=WEB, topologySpreadConstraints=[w.spread(), w.spread(RACK)])
    catalogue = (w.instance_type("default", 4, 4, markets=(("z3", "spot"),)),)
    found = w.solved(pool, *there, *taken, first, web, catalogue=catalogue)
    assert found.placed == dict.fromkeys(("default/first", "default/web-0", "default/web-1"), "node/n2")
    assert not found.new_nodes


def test_domains_of_planned_nodes_count_on_the_course_alone_that_plans_them() -> None:
    """The second pod of `db` can have a node of either NodePool. That of `blue` is a domain for the pods of `web`."""
    pools = [w.pool(team, labels={"team": team}) for team in ("blue", "red")]
    near = w.between("podAffinity", RACK)
    web = w.pod("web", labels=WEB, affinity=near, nodeSelector={"team": "blue"}, topologySpreadConstraints=[w.spread()])
    first = w.pod("first", labels=WEB, topologySpreadConstraints=[w.spread()])
    db = w.replicas(2, "db", "10m", ports=[{"containerPort": 80, "hostPort": 80}])
    node = w.node("n", labels={RACK: "r1", "team": "blue"})
    snapshot = w.world(pools, node, first, web, db, catalogue=ONE_ZONE)
    found = solve(snapshot, list(snapshot.pods.pending.values()), SolveOptions(improve=timedelta(seconds=0.02)))
    assert not found.unplaced


def test_a_planned_node_brings_the_domains_of_the_instance_types_that_it_lists() -> None:
    """The node of `other` is in zone z1, of a type that the spread of `web` does not count."""
    near = w.between("podAffinity", labels.ZONE, labelSelector={"matchLabels": {"version": "2"}})
    first = w.pod("first", labels={**WEB, "version": "2"}, nodeSelector={labels.ZONE: "z2"})
    small = {labels.INSTANCE_TYPE: "small"}
    web = w.pod("web", labels=WEB, affinity=near, nodeSelector=small, topologySpreadConstraints=[w.spread()])
    catalogue = (
        w.instance_type("small", 1, 4, markets=(("z1", "spot"), ("z2", "spot"))),
        w.instance_type("large", 4, 4, markets=(("z1", "spot"),)),
    )
    found = w.solved(w.pool(), w.pod("other", "2"), first, web, catalogue=catalogue)
    assert not found.unplaced
    assert {one.zones for one in found.new_nodes} == {("z1",), ("z2",)}


def test_no_domain_counts_that_only_an_earlier_plan_brings() -> None:
    """With `web` on the node, `other` would get one in zone z2, where `web` has no pod; so `other` goes first."""
    own = w.between("podAffinity", labels.ZONE)
    there = (w.node("n", cpu="3"), w.pod("old", "1", node="n", labels=WEB))
    web = w.replicas(2, "web", "1", labels=WEB, affinity=own, topologySpreadConstraints=[w.spread()])
    found = solution(*there, web, w.pod("other", "900m"))
    assert found.placed == dict.fromkeys(("default/other", "default/web-0"), "node/n")
    assert found.order == ("default/other", "default/web-0")
    assert list(found.unplaced) == ["default/web-1"]


def _beside_planned_hosts(*more: Any, hosts: int = 2, **spread: Any) -> tuple[Any, ...]:
    """A node with one pod of `web`, pods of it that fill new nodes, and `last`, which the rack keeps off new nodes."""
    pool = w.pool(requirements=[{"key": RACK, "operator": "In", "values": ["r1"]}])
    there = (w.node("n", cpu="2", labels={RACK: "r3"}), w.pod("old", node="n", labels=WEB))
    one_each = w.spread(labels.HOSTNAME)
    web = w.replicas(hosts, "web", "3", labels=WEB, topologySpreadConstraints=[one_each])
    last = w.pod("last", labels=WEB, topologySpreadConstraints=[{**one_each, **spread}, w.spread(RACK)])
    return (pool, *there, web, last, *more)


def test_a_pod_without_a_new_node_comes_when_the_planned_hosts_have_their_pods() -> None:
    found = solution(*_beside_planned_hosts())
    assert found.placed == {"default/last": "node/n"}
    assert len(found.new_nodes) == 2
    assert found.order[-1] == "default/last"


def test_a_pod_without_a_new_node_has_no_place_while_a_planned_host_is_without_pods() -> None:
    found = solution(*_beside_planned_hosts(w.pod("other", "3500m")))
    assert len(found.new_nodes) == 3
    assert list(found.unplaced) == ["default/last"]


def test_planned_hosts_are_domains_for_a_pod_without_a_new_node() -> None:
    """Below `minDomains` hosts the least count is 0."""
    assert not solution(*_beside_planned_hosts(minDomains=3)).unplaced
    assert list(solution(*_beside_planned_hosts(minDomains=4)).unplaced) == ["default/last"]


BOTH_MARKETS = (w.instance_type("default", 4, 4, pods=8, markets=(("z2", "spot"), ("z2", "on-demand"))),)


def _in_doubt(avoided: str, cpu: str) -> Solution:
    """The NodePool may choose either rack for the node of `other`; in one of them the spread of `web` counts it."""
    pool = w.pool(requirements=[{"key": RACK, "operator": "In", "values": ["r1", "r2"]}])
    spread, affinity = w.spread(labels.CAPACITY_TYPE), w.node_affinity([(RACK, "NotIn", [avoided])])
    web = w.replicas(4, "web", labels=WEB, affinity=affinity, topologySpreadConstraints=[spread])
    first = [w.spread(labels.HOSTNAME, app="other")]
    other = w.pod("other", cpu, labels=WEB, topologySpreadConstraints=first)
    return w.solved(pool, web, other, catalogue=BOTH_MARKETS)


def test_pods_count_on_a_planned_node_whose_labels_the_plan_settles() -> None:
    """`other` shares its node with two of `web`, so it is in rack r1: either capacity type may have a third pod."""
    found = _in_doubt("r2", "100m")
    assert not found.unplaced
    assert found.order[-1] == "default/web-3"
    assert sorted(len(node.pods) for node in found.new_nodes) == [2, 3]


def test_pods_do_not_count_on_a_planned_node_whose_labels_the_plan_settles_otherwise() -> None:
    """`other` fills its node, which gets rack r1."""
    found = _in_doubt("r1", "3900m")
    assert not found.unplaced
    assert sorted(len(node.pods) for node in found.new_nodes) == [1, 2, 2]


def test_a_domain_in_doubt_is_measured_against_itself() -> None:
    """`other` has a node in zone z2 of either type, and the spread of `web` counts one of them; so zone z2 has one pod
    more than others have at least, or the pod that comes is its first."""
    catalogue = (
        w.instance_type("small", 2, 2, markets=(("z1", "spot"), ("z2", "spot"))),
        w.instance_type("large", 4, 4, markets=(("z2", "spot"),)),
    )
    small = {labels.INSTANCE_TYPE: "small"}
    apart = w.between("podAntiAffinity", labels.ZONE, labelSelector={"matchLabels": {"version": "1"}})
    own = [w.spread(labels.HOSTNAME, app="other")]
    other = w.pod("other", "500m", labels=WEB, nodeSelector={labels.ZONE: "z2"}, topologySpreadConstraints=own)
    web: dict[str, Any] = {
        "labels": {**WEB, "version": "1"},
        "nodeSelector": small,
        "topologySpreadConstraints": [w.spread()],
    }
    pods = (other, w.pod("web-0", affinity=apart, **web), w.pod("web-1", **web))
    assert not w.solved(w.pool(), *pods, catalogue=catalogue).unplaced
