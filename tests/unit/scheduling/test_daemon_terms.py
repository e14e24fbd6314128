"""The node affinity of DaemonSets: its terms are alternatives, and a field names nodes that are there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduling import worlds as w

ZONES = [w.in_zones("z1"), w.in_zones("z2")]


def agent(*terms: dict[str, Any]) -> Any:
    return w.daemon_set("agent", "3", **w.any_term(*terms))


def types(*objects: Any) -> set[str]:
    """The types of new nodes for a pod of 3 CPU: beside the DaemonSet only `arm` holds it."""
    return {name for node in w.solved(w.pool(), w.pod("p", "3"), *objects).new_nodes for name in node.instance_types}


@pytest.mark.parametrize("terms", [[w.by_name("In", "n9")], [w.by_name("In", "n9"), w.by_name("In", "n8")]])
def test_a_daemon_set_of_named_nodes_takes_nothing_of_new_nodes(terms: list[dict[str, Any]]) -> None:
    assert "default" in types(agent(*terms))


@pytest.mark.parametrize("terms", [[w.by_name("NotIn", "n9")], [w.by_name("In", "n9"), *ZONES], ZONES, ZONES[::-1]])
def test_a_daemon_set_takes_its_share_of_new_nodes_by_any_term(terms: list[dict[str, Any]]) -> None:
    assert types(agent(*terms)) == {"arm"}


@pytest.mark.parametrize("name", ["n9", "other"])
def test_a_daemon_set_takes_its_share_of_the_node_that_it_names(name: str) -> None:
    placed = w.solved(w.pool(), w.node(name), agent(w.by_name("In", "n9")), w.pod("p", "3")).placed
    assert placed == ({} if name == "n9" else {"default/p": "node/other"})


@pytest.mark.parametrize("terms", [ZONES, ZONES[::-1]])
@pytest.mark.parametrize("zone", ["z1", "z2", "z3"])
def test_a_daemon_set_takes_its_share_of_existing_nodes_by_any_term(terms: list[dict[str, Any]], zone: str) -> None:
    placed = w.solved(w.pool(), w.node("n", zone), agent(*terms), w.pod("p", "3")).placed
    assert placed == ({"default/p": "node/n"} if zone == "z3" else {})


def test_the_name_that_the_controller_gives_a_pod_does_not_count() -> None:
    """The DaemonSet controller binds each pod to its own node by a field; the template asks for nothing."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}
    there = w.pod("agent-1", "3", node="n9", owner=owner, **w.any_term(w.by_name("In", "n9")))
    assert types(w.daemon_set("agent", "3"), w.node("n9"), there) == {"arm"}
