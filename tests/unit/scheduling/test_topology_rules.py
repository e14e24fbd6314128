"""Topology constraints as the kube-scheduler reads them, where a simpler reading goes wrong, on small worlds."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
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


def test_hosts_are_measured_among_themselves_when_no_node_can_be_made() -> None:
    nodes = [w.node(f"n{n}", "z1", cpu="8") for n in range(2)]
    old = [p for n in range(2) for p in w.replicas(1, f"old{n}", "1m", "1Mi", node=f"n{n}", labels=WEB)]
    pods = web(2, w.spread(labels.HOSTNAME))
    assert not w.solved(w.pool(limits={"cpu": "0"}), nodes, old, pods).unplaced
    assert len(w.solved(w.pool(), nodes, old, pods).new_nodes) == 2
