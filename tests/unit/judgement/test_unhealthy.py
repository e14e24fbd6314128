"""When a node that was well once is a trouble, and how it is worded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.judgement.troubles import Trouble
from kerf.judgement.unhealthy import unhealthy
from kerf.model.kubernetes.objects import Node
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.worlds import NOW, stamp

MINUTE = timedelta(minutes=1)
READY = {"Ready": ("True", 60.0)}


def node(name: str, conditions: dict[str, tuple[str, float]]) -> Node:
    rows = [
        {"type": kind, "status": status, "lastTransitionTime": stamp(NOW - ago * MINUTE)}
        for kind, (status, ago) in conditions.items()
    ]
    return decode(Node, {"metadata": {"name": name, "uid": name}, "status": {"conditions": rows}})


def claim(name: str, initialized: str = "True", **meta: Any) -> NodeClaim:
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "c"}
    status = {"nodeName": name, "conditions": [{"type": "Initialized", "status": initialized}]}
    return decode(
        NodeClaim, {"metadata": {"name": f"p-{name}", **meta}, "spec": {"nodeClassRef": ref}, "status": status}
    )


def found(*nodes: Node, repaired: bool | None = False, claims: tuple[NodeClaim, ...] | None = None) -> list[Trouble]:
    own = tuple(claim(one.name) for one in nodes) if claims is None else claims
    return list(unhealthy(own, nodes, NOW, repaired=repaired))


def test_a_silent_kubelet_is_a_trouble_with_what_a_person_can_do() -> None:
    reported = Trouble(
        "NotReady",
        "node/a",
        "is unhealthy: Ready is Unknown",
        "restart or delete the node; with the feature gate NodeRepair Kerf replaces such nodes",
        NOW - 7 * MINUTE,
    )
    assert found(node("a", {"Ready": ("Unknown", 7)}), node("b", READY)) == [reported]


def test_a_new_condition_does_not_hide_one_of_long_ago() -> None:
    """Though its toleration ends first."""
    rows = found(node("a", {"Ready": ("False", 20), "AcceleratedHardwareReady": ("False", 1)}))
    assert [one.text for one in rows] == ["is unhealthy: Ready is False"]


def test_nodes_with_one_condition_are_one_trouble() -> None:
    sick = [node(name, {"Ready": ("Unknown", ago)}) for name, ago in (("a", 7), ("b", 9), ("c", 8))]
    trouble, other = found(*sick, node("d", {**READY, "StorageReady": ("False", 20)}))
    assert (trouble.object, trouble.text, trouble.times) == (
        "node/b",
        "is unhealthy: Ready is Unknown (and 2 more: a, c)",
        3,
    )
    assert (other.object, other.text) == ("node/d", "is unhealthy: StorageReady is False")


@pytest.mark.parametrize(
    ("minutes", "repaired", "is_one"),
    [(4, False, False), (5, False, True), (5, None, True), (29, True, False), (30, True, True)],
)
def test_it_has_time_to_become_well_and_node_repair_to_replace_it(
    minutes: float, repaired: bool | None, is_one: bool
) -> None:
    rows = found(node("a", {"Ready": ("False", minutes)}), repaired=repaired)
    assert [one.object for one in rows] == ["node/a"] * is_one
    assert all((one.fix == "kerf why node a shows the cause") is (repaired is not False) for one in rows)


@pytest.mark.parametrize(
    "claims",
    [(), (claim("a", "Unknown"),), (claim("a", deletionTimestamp=stamp(NOW)),)],
    ids=["of another", "never initialized", "goes"],
)
def test_other_nodes_are_no_trouble_of_this_kind(claims: tuple[NodeClaim, ...]) -> None:
    """Those that do not come up, and those that do not go, are reported as such."""
    assert found(node("a", {"Ready": ("Unknown", 60)}), claims=claims) == []
