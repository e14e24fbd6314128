"""Running pods whose anti-affinity selects very many pods: their terms cost other pods next to nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory
from kerf.pods.topology_constraints import TopologyGroup, term_group
from kerf.scheduling.facts import nodes
from kerf.scheduling.solve import context_of, solve
from kerf.scheduling.topology import counts
from kerf.scheduling.topology.counts import BoundCounts, Tallies
from tests.unit.scheduling import worlds as w


def apart(number: int, on: str = "") -> list[Pod]:
    """Pods that keep away from all others, each with a selector of its own."""

    def term(i: int) -> dict[str, Any]:
        rows = [{"key": "app", "operator": "NotIn", "values": [f"none{i}"]}]
        return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": rows}}

    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    return [
        w.pod(
            f"apart{i}",
            labels={"app": f"a{i}"},
            affinity={"podAntiAffinity": {rule: [term(i)]}},
            node=on,
        )
        for i in range(number)
    ]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[TopologyGroup]:
    """The groups whose pods were counted."""
    found: list[TopologyGroup] = []
    original = Tallies._tally

    def tally(self: Tallies, group: TopologyGroup) -> BoundCounts:
        found.append(group)
        return original(self, group)

    monkeypatch.setattr(Tallies, "_tally", tally)
    return found


def test_the_pods_that_a_term_selects_are_counted_for_its_owners_alone(counted: list[TopologyGroup]) -> None:
    node = w.node("there")
    others = w.replicas(3, "web")
    found = solve(w.world(w.pool(), [node, *apart(20, "there"), *others]), others)
    assert not counted
    assert "there" not in found.placed.values()
    assert len(found.new_nodes) == 1


def test_an_owner_keeps_away_from_the_pods_that_its_term_selects(counted: list[TopologyGroup]) -> None:
    node = w.node("there")
    (own,) = apart(1)
    found = solve(w.world(w.pool(), [node, *w.replicas(3, "web", node="there"), *apart(20, "there")[1:], own]), [own])
    assert len(counted) == 1
    assert not found.placed
    assert [new.pods for new in found.new_nodes] == [(own.key,)]


def test_terms_are_read_again_only_when_a_pod_of_their_node_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(pod: Pod, *given: Any) -> Any:
        read.append(pod.metadata.name)
        return term_group(pod, *given)

    monkeypatch.setattr(nodes, "term_group", noted)
    monkeypatch.setattr(counts, "term_group", noted)
    snapshot = w.world(w.pool(), w.node("there"), *apart(5, "there"))
    memory = Memory()
    context_of(snapshot, memory.turn(snapshot))
    assert len(read) == 5
    context_of(snapshot, memory.turn(snapshot)).tallies.beside([w.node("more")])
    assert len(read) == 5
