"""Topology constraints as the kube-scheduler reads them, where a simpler reading goes wrong, on small worlds."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.scheduling.solve import Solution
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_spread import WEB, running, web, zones_of_pool

RACK = "example.com/rack"


def _near(*apps: str, key: str = labels.ZONE) -> dict[str, Any]:
    """One required affinity term for each of these apps."""
    terms = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} for app in apps]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


# --- required affinity terms are one constraint ---------------------------------------------------------------------
def _follower(**spec: Any) -> list[Any]:
    both = [{"labelSelector": {"matchExpressions": [{"key": k, "operator": "Exists"}]}} for k in ("one", "two")]
    terms = [{"topologyKey": labels.ZONE, **one} for one in both]
    return w.replicas(
        1, "web", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}, **spec
    )


def test_two_terms_that_two_pods_meet_one_each_are_met_by_none() -> None:
    world = [w.pool(), *running("z1", 1, labels={"one": ""}), *running("z2", 1, labels={"two": ""}, name="n2")]
    assert len(w.solved(*world, _follower()).unplaced) == 1


def test_two_terms_that_one_pod_meets_lead_to_its_zone() -> None:
    world = [w.pool(), *running("z2", 1, labels={"one": "", "two": ""})]
    (node,) = w.solved(*world, _follower()).new_nodes
    assert node.requirements[labels.ZONE].values == {"z2"}


def test_the_first_pod_that_meets_all_its_terms_needs_no_company() -> None:
    world = [w.pool(), *running("z1", 1, labels={"one": ""})]
    assert not w.solved(*world, _follower(labels={"one": "", "two": ""})).unplaced
    assert len(w.solved(*world, _follower(labels={"one": ""})).unplaced) == 1


@pytest.mark.parametrize(
    "facts", [{"limits": {"cpu": "0"}}, {"requirements": zones_of_pool("z1")}], ids=["limits", "zone"]
)
def test_pods_that_found_an_affinity_are_put_where_some_fit_when_no_node_can_be_made(facts: dict[str, Any]) -> None:
    """A new node would hold both. In zone z1 a pod keeps it away; limits or the NodePool allow it in no other zone."""
    near = {**_near("web", key=labels.HOSTNAME), **w.between("podAntiAffinity", labels.ZONE, "db")}
    there = (w.node("a", "z2", cpu="3"), w.node("b", "z1", cpu="1"), w.pod("db", "1", node="b", labels={"app": "db"}))
    solution = w.solved(w.pool(**facts), *there, w.replicas(2, "web", "2", labels={"app": "web"}, affinity=near))
    assert solution.placed == {"default/web-0": "node/a"}


def test_the_first_pods_that_meet_terms_over_hosts_and_zones_need_no_company() -> None:
    """They are planned in a zone before they have a host: they are no company for each other there yet."""
    terms = [
        {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}} for key in (labels.HOSTNAME, labels.ZONE)
    ]
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    for count in (1, 3):
        solution = w.solved(w.pool(), w.replicas(count, "web", labels={"app": "web"}, affinity=near))
        assert [len(node.pods) for node in solution.new_nodes] == [count]


# --- which domains a spread is measured over ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("other", "spec"),
    [
        ({"labels": {"team": "other"}}, {"nodeSelector": {"team": "ab"}}),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, {}),
        ({"limits": {"cpu": "0"}}, {}),
        ({"capacity": "spot"}, {"nodeSelector": {labels.CAPACITY_TYPE: "on-demand"}}),
        ({"arch": "arm64"}, {"nodeSelector": {labels.ARCH: "amd64"}}),
    ],
    ids=["selector", "taint", "limits", "capacity type", "architecture"],
)
def test_a_zone_of_a_node_pool_that_pods_cannot_use_is_no_domain(other: dict[str, Any], spec: dict[str, Any]) -> None:
    rows = zones_of_pool("z3")
    rows += (
        [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": [other.pop("capacity")]}]
        if "capacity" in other
        else []
    )
    rows += [{"key": labels.ARCH, "operator": "In", "values": [other.pop("arch")]}] if "arch" in other else []
    pools = [
        w.pool("ab", labels={"team": "ab"}, requirements=zones_of_pool("z1", "z2")),
        w.pool("c", requirements=rows, **other),
    ]
    assert w.counts(w.solved(*pools, web(4, **spec))) == [2, 2]


def test_a_zone_whose_types_cannot_hold_the_pod_is_no_domain() -> None:
    large = w.instance_type("large", 16, 64, markets=[("z1", "spot"), ("z2", "spot")])
    small = w.instance_type("small", 2, 4, markets=[(z, "spot") for z in ("z1", "z2", "z3")])
    solution = w.solved(
        w.pool(),
        w.replicas(4, "web", "4", labels=WEB, topologySpreadConstraints=[w.spread()]),
        catalogue=(large, small),
    )
    assert not solution.unplaced


@pytest.mark.parametrize("cpu", ["1000", "100m"])
def test_pods_that_get_no_node_bring_no_domain(cpu: str) -> None:
    """One asks for more than any type has, the other fits on a node that is there."""
    ab = w.pool("ab", labels={"team": "ab"}, requirements=zones_of_pool("z1", "z2"))
    pools = [ab, w.pool("other", labels={"team": "other"}), w.node("there", "z1", cpu="1", labels={"team": "other"})]
    pods = web(4, w.spread(nodeAffinityPolicy="Ignore"), nodeSelector={"team": "ab"})
    assert w.counts(w.solved(*pools, pods)) == [2, 2]
    assert not [key for key in w.solved(*pools, pods, w.pod("other", cpu)).unplaced if "web" in key]


@pytest.mark.parametrize("taints", [[], [{"key": "k", "effect": "PreferNoSchedule"}]], ids=["none", "a preference"])
def test_a_domain_that_another_pod_s_new_node_brings_counts(taints: list[Any]) -> None:
    """The pods are kept to z1 by affinity; a node in z2 of another pod makes z2 an empty domain."""
    world = [w.pool(), w.pool("soft", taints=taints), *running("z1", 1, labels={"app": "db"})]
    pods = web(3, affinity=_near("db"))
    assert not w.solved(*world, pods).unplaced
    assert len(w.solved(*world, pods, w.pod("far", nodeSelector={labels.ZONE: "z2"})).unplaced) == 2


def test_the_order_of_a_plan_holds_for_domains_that_later_pods_bring() -> None:
    """Two pods may go to z1 only; the second is bound after the pod that makes z2 a domain, and fills it."""
    every = [w.spread(nodeAffinityPolicy="Ignore")]
    bound: dict[str, Any] = {"labels": WEB, "topologySpreadConstraints": every}
    held = w.replicas(2, "held", "200m", nodeSelector={labels.ZONE: "z1"}, **bound)
    order = w.solved(w.pool(requirements=zones_of_pool("z1", "z2")), held, w.pod("free", **bound)).order
    assert order.index("default/free") < order.index("default/held-1")


def test_a_full_and_a_cordoned_node_are_domains() -> None:
    cordoned = w.node("cordoned", "z3")
    world = [
        w.pool(requirements=zones_of_pool("z1")),
        w.node("full", "z2", cpu="50m"),
        replace(cordoned, spec=replace(cordoned.spec, unschedulable=True)),
    ]
    assert len(w.solved(*world, web(3)).unplaced) == 2


def test_nodes_that_lack_one_of_the_keys_count_for_none() -> None:
    """A node without a rack is in no domain of the zone spread either, nor are its pods."""
    pool = w.pool(labels={RACK: "r1"}, requirements=zones_of_pool("z1", "z2"))
    both = [w.spread(), w.spread(RACK)]
    other = running("z3", 0, name="managed")
    assert not w.solved(pool, other, web(4, *both)).unplaced
    assert len(w.solved(pool, other, web(4, w.spread())).unplaced) == 2


def test_a_zone_that_affinity_keeps_the_pods_out_of_is_no_domain() -> None:
    world = [w.pool(), *running("z1", 1, labels={"app": "db"})]
    assert not w.solved(*world, web(3, affinity=_near("db"))).unplaced


def test_a_capacity_type_that_is_not_sold_where_affinity_keeps_the_pods_is_no_domain() -> None:
    """Pods are kept to z3 by affinity, where only on-demand is sold."""
    world = [w.pool(), *running("z3", 1, labels={"app": "db"})]
    assert not w.solved(*world, web(3, w.spread(labels.CAPACITY_TYPE), affinity=_near("db"))).unplaced


def test_hosts_are_measured_among_themselves_when_no_node_can_be_made() -> None:
    nodes = [w.node(f"n{n}", "z1", cpu="8") for n in range(2)]
    old = [p for n in range(2) for p in w.replicas(1, f"old{n}", "1m", "1Mi", node=f"n{n}", labels=WEB)]
    pods = web(2, w.spread(labels.HOSTNAME))
    assert not w.solved(w.pool(limits={"cpu": "0"}), nodes, old, pods).unplaced
    assert len(w.solved(w.pool(), nodes, old, pods).new_nodes) == 2


# --- DaemonSet pods on new nodes ------------------------------------------------------------------------------------
AGENT = {"app": "agent"}


def _apart(app: str, key: str = labels.HOSTNAME) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize("key", [labels.HOSTNAME, labels.ZONE])
def test_no_node_is_made_for_a_pod_that_keeps_away_from_a_daemon_set_on_it(key: str) -> None:
    agent = w.daemon_set("agent", labels=AGENT)
    solution = w.solved(w.pool(), agent, w.replicas(2, "web", affinity=_apart("agent", key)))
    assert not solution.new_nodes
    assert "DaemonSet default/agent" in solution.unplaced["default/web-0"].pools["default"]
    assert w.solved(w.pool(), agent, w.replicas(2, "web", affinity=_apart("other", key))).new_nodes


@pytest.mark.parametrize("key", [labels.HOSTNAME, labels.ZONE])
def test_no_node_is_made_for_a_pod_that_a_daemon_set_on_it_keeps_away_from(key: str) -> None:
    agent = w.daemon_set("agent", labels=AGENT, affinity=_apart("web", key))
    assert not w.solved(w.pool(), agent, w.replicas(2, "web", labels=WEB)).new_nodes
    assert w.solved(w.pool(), agent, w.replicas(2, "other")).new_nodes


def test_a_node_pool_whose_nodes_the_daemon_set_does_not_tolerate_takes_these_pods() -> None:
    agent = w.daemon_set("agent", labels=AGENT)
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    pods = w.replicas(2, "web", affinity=_apart("agent"), tolerations=[{"key": "dedicated", "operator": "Exists"}])
    solution = w.solved(w.pool("general", weight=10), w.pool("dedicated", taints=[taint]), agent, pods)
    assert {node.pool for node in solution.new_nodes} == {"dedicated"}
    assert not solution.unplaced


@pytest.mark.parametrize("key", [labels.HOSTNAME, labels.ZONE])
def test_affinity_to_the_pods_of_a_daemon_set_is_served(key: str) -> None:
    agent = w.daemon_set("agent", labels=AGENT)
    solution = w.solved(w.pool(), agent, w.replicas(3, "web", affinity=_near("agent", key=key)))
    assert not solution.unplaced
    assert sum(len(node.pods) for node in solution.new_nodes) == 3
    assert w.solved(w.pool(), w.replicas(3, "web", affinity=_near("agent", key=key))).unplaced


def test_pods_of_a_daemon_set_take_their_part_of_a_spread_over_hosts() -> None:
    chosen = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "agent"]}]}
    every = w.spread(labels.HOSTNAME, skew=2, labelSelector=chosen)
    agent, bare = (
        w.daemon_set("agent", labels=AGENT),
        w.node("bare", cpu="50m", taints=[{"key": "k", "effect": "NoSchedule"}]),
    )
    assert len(w.solved(w.pool(), agent, web(4, every)).new_nodes) == 2
    assert len(w.solved(w.pool(), agent, bare, web(4, every)).new_nodes) == 4


# --- alternatives and preferences -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "spec", [{"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}, {}], ids=["taint", "affinity"]
)
def test_a_term_that_was_given_up_is_tried_without_preferences(spec: dict[str, Any]) -> None:
    affinity = w.node_affinity([(labels.ZONE, "In", ["z1"])], [(labels.ZONE, "In", ["z9"])])
    term = {"topologyKey": labels.ZONE, "labelSelector": {"matchLabels": {"app": "none"}}}
    affinity |= {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]}
    }
    assert w.solved(w.pool(**spec), w.pod("p", affinity=affinity)).new_nodes


# --- labels of some NodePools only ----------------------------------------------------------------------------------
def test_a_plan_that_counts_on_nodes_without_a_label_gets_none_with_it() -> None:
    """The pod on rack r1 keeps `web` away; so does `web` itself. A NodePool without racks is at its limits."""
    bare, racked = w.pool("bare", limits={"cpu": "0"}, weight=10), w.pool("racked", labels={RACK: "r1"})
    node = w.node("n", cpu="50m", labels={RACK: "r1"})
    keeper = w.replicas(1, "keeper", "1m", "1Mi", node="n", labels={"app": "keeper"}, affinity=_apart("web", RACK))
    solution = w.solved(bare, racked, node, keeper, w.replicas(1, "web", labels=WEB))
    assert not solution.new_nodes
    assert [made.pool for made in w.solved(w.pool("bare"), racked, node, keeper, web(1)).new_nodes] == ["bare"]


# --- many domains ---------------------------------------------------------------------------------------------------
def test_domains_of_two_keys_with_forty_values_each_are_all_within_reach() -> None:
    values = [f"v{n:02}" for n in range(40)]
    rows = [{"key": f"example.com/{key}", "operator": "In", "values": values} for key in ("row", "rack")]
    both = [w.spread("example.com/row"), w.spread("example.com/rack")]
    solution = w.solved(w.pool(requirements=rows), web(40, *both))
    assert not solution.unplaced
    assert len(solution.new_nodes) == 40


def test_zones_and_many_instance_types_are_all_within_reach() -> None:
    catalogue = tuple(w.instance_type(f"t{n:03}", 2, 4, price=1000 + n) for n in range(400))
    both = [w.spread(labels.ZONE), w.spread(labels.INSTANCE_TYPE)]
    solution = w.solved(w.pool(), web(380, *both), catalogue=catalogue)
    assert not solution.unplaced


# --- older spellings of labels ----------------------------------------------------------------------------------
OLDER = "failure-domain.beta.kubernetes.io/zone"


def zones_of(found: Solution) -> list[tuple[str, ...]]:
    """Of each new node, the zones that it may be in; none when it is not bound to any."""
    rows = [node.requirements.get(labels.ZONE) for node in found.new_nodes]
    return [tuple(sorted(row.values)) if row is not None else () for row in rows]


@pytest.mark.parametrize(
    "key", [OLDER, labels.ZONE, "topology.ebs.csi.aws.com/zone"], ids=["beta", "present", "driver"]
)
def test_pods_are_kept_apart_by_whichever_name_of_the_zone(key: str) -> None:
    """Nodes have all of them: cloud controllers and drivers still set the others."""
    rule: dict[str, Any] = {"labels": {"app": "web"}, "affinity": w.between("podAntiAffinity", key)}
    found = w.solved(w.pool(), w.replicas(2, "web", "1", **rule))
    assert found.unplaced == {}
    zones = zones_of(found)
    assert len(zones) == 2
    assert zones[0]
    assert set(zones[0]).isdisjoint(zones[1])
    there = w.pod("old", node="n", **rule)
    newcomer = w.pod("new", labels={"app": "web"})
    assert w.solved(w.pool(), w.node("n"), there, newcomer).placed == {}


@pytest.mark.parametrize("key", [OLDER, labels.ZONE], ids=["beta", "present"])
def test_pods_are_spread_and_kept_together_by_whichever_name_of_the_zone(key: str) -> None:
    apart = w.replicas(2, "web", "1", labels={"app": "web"}, topologySpreadConstraints=[w.spread(key)])
    found = w.solved(w.pool(), apart)
    assert found.unplaced == {}
    assert len(set(zones_of(found))) == 2
    together = w.replicas(2, "web", "3", labels={"app": "web"}, affinity=w.between("podAffinity", key))
    found = w.solved(w.pool(), together)
    assert found.unplaced == {}
    assert len(set(zones_of(found))) == 1


# --- names of nodes ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("operator", "new"), [("NotIn", 1), ("In", 0)])
def test_a_pod_that_avoids_a_node_by_name_gets_another_one(operator: str, new: int) -> None:
    """No new node has the name of one that is there; which name it has is not known."""
    row = {"key": labels.HOSTNAME, "operator": operator, "values": ["n"]}
    term = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    full = w.node("n", cpu="1")
    found = w.solved(w.pool(), full, w.pod("p", "2", affinity=affinity))
    assert (len(found.new_nodes), len(found.unplaced)) == (new, 1 - new)
    assert w.solved(w.pool(), w.node("n", cpu="8"), w.pod("p", affinity=affinity)).placed == (
        {"default/p": "node/n"} if operator == "In" else {}
    )
