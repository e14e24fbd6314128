"""Domains of spreads: those that spreads share are those that each of them would find by itself.

Pods differ in one thing or in few: namespace, labels, selector, policies, tolerations, the nodes that they ask for.
Nodes have taints and racks or none, and some have not joined yet.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.kubernetes.objects import Node, Pod
from kerf.pods.topology_constraints import SPREAD, TopologyGroup
from kerf.scheduling.answers.solution import Solution
from kerf.scheduling.topology.solve_counts import Topology
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.scheduling import worlds as w

RACK = "example.com/rack"
KEYS = (labels.ZONE, RACK, labels.CAPACITY_TYPE)
#: So many worlds are one example.
_WORLDS = 5
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
CLASS = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}


def _spread(dice: Random, key: str) -> dict[str, Any]:
    found = w.spread(key, app=dice.choice(("a", "a", "b")))
    for field, values in (
        ("matchLabelKeys", (["version"],)),
        ("nodeTaintsPolicy", ("Honor", "Ignore")),
        ("nodeAffinityPolicy", ("Honor", "Ignore")),
        ("minDomains", (2, 3)),
    ):
        if dice.random() < 0.4:
            found[field] = dice.choice(values)
    return found


def _pod(dice: Random, name: str, spreads: list[dict[str, Any]], node: str = "") -> Pod:
    spec: dict[str, Any] = {"labels": {"app": dice.choice(("a", "a", "b")), "version": dice.choice(("1", "2"))}}
    if dice.random() < 0.3:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if dice.random() < 0.4:
        spec["nodeSelector"] = dice.choice(({labels.ZONE: "z1"}, {RACK: "r1"}, {labels.CAPACITY_TYPE: "spot"}))
    chosen = {one["topologyKey"]: one for one in dice.choices(spreads, k=dice.choice((1, 1, 2)))}
    spec["topologySpreadConstraints"] = list(chosen.values())
    return w.pod(name, "300m", node=node, namespace=dice.choice(("default", "default", "other")), **spec)


def _labels(dice: Random) -> dict[str, str]:
    own = {labels.CAPACITY_TYPE: dice.choice(("spot", "on-demand"))}
    return own | ({RACK: dice.choice(("r1", "r2"))} if dice.random() < 0.6 else {})


def _node(dice: Random, name: str) -> Node:
    taints = [TAINT] if dice.random() < 0.4 else []
    return w.node(name, dice.choice(w.ZONES), cpu=dice.choice(("1", "4")), labels=_labels(dice), taints=taints)


def _claim(dice: Random, name: str) -> NodeClaim:
    """Of a node that has not joined."""
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "9"}
    own = {labels.NODEPOOL: "default", labels.ZONE: dice.choice(w.ZONES), **_labels(dice)}
    spec = {"nodeClassRef": CLASS, "requirements": [], "taints": [TAINT] if dice.random() < 0.4 else []}
    status = {"providerID": f"aws:///z1/i-{name}", "capacity": amounts, "allocatable": amounts}
    return decode(NodeClaim, {"metadata": {"name": name, "labels": own}, "spec": spec, "status": status})


def _world(dice: Random) -> list[Any]:
    key, other = dice.sample(KEYS, k=2)
    spreads = [*(_spread(dice, key) for _ in range(4)), _spread(dice, other)]
    nodes = [_node(dice, f"n{number}") for number in range(3)]
    bound = [_pod(dice, f"bound-{number}", spreads, f"n{number % 3}") for number in range(3)]
    claims = [_claim(dice, f"c{number}") for number in range(2)]
    taints = [TAINT] if dice.random() < 0.3 else []
    return [w.pool(taints=taints), *nodes, *claims, *bound, *(_pod(dice, f"p{n}", spreads) for n in range(6))]


def _told(found: Solution) -> Any:
    nodes = [(node.zones, node.pods) for node in found.new_nodes]
    return found.placed, found.order, nodes, {key: str(why) for key, why in found.unplaced.items()}


@given(st.integers(0, 1 << 32))
def test_spreads_that_share_domains_count_as_if_each_had_its_own(seed: int) -> None:
    opened = Topology._open

    def own(self: Topology, identity: object, fresh: TopologyGroup) -> TopologyGroup:
        if fresh.kind == SPREAD:
            fresh.alike = identity
        return opened(self, identity, fresh)

    worlds = [_world(Random(f"{seed} {number}")) for number in range(_WORLDS)]
    shared = [w.solved(*world) for world in worlds]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Topology, "_open", own)
        assert [_told(found) for found in shared] == [_told(w.solved(*world)) for world in worlds]
