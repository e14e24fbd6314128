"""Work that many constraints have in common is done once: domains of spreads, and types that requirements leave."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.pods import topology_constraints
from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.placing import pod_parts, ways
from kerf.scheduling.solve import context_of, solve
from kerf.scheduling.topology.solve_counts import Topology
from kerf.scheduling.work import Work
from kerf_api import labels
from kerf_api.requirements import Requirements
from tests.unit.scheduling import worlds as w

ZONES = Requirements.of_labels({labels.ZONE: "z1"})


def _web(number: int, **more: Any) -> Pod:
    spreads = [w.spread(app=f"a{number}")]
    return w.pod(f"p{number}", labels={"app": f"a{number}"}, topologySpreadConstraints=spreads, **more)


def _steps(pods: list[Pod]) -> int:
    work = Work()
    assert not solve(w.world(w.pool(), *pods), pods, work=work).unplaced
    return work.whole


def test_spreads_that_count_the_same_nodes_look_at_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = list[object]()
    original = Topology._on_coming_nodes

    def noted(self: Topology, group: TopologyGroup) -> Any:
        looked.append(group.alike)
        return original(self, group)

    monkeypatch.setattr(Topology, "_on_coming_nodes", noted)
    alike, other = [_web(number) for number in range(5)], _web(9, nodeSelector={labels.ARCH: "amd64"})
    solve(w.world(w.pool(), *alike, other), [*alike, other])
    assert len(looked) == len(set(looked)) == 2


def test_labels_of_no_type_leave_the_types_of_the_other_requirements() -> None:
    snapshot = w.world(w.pool())
    ((template, _),) = context_of(snapshot).pools
    served = template.serve(ZONES)
    assert served is not None
    further = served & Requirements.of_labels({"example.com/team": "a"})
    shape, same = template.shape(served), template.shape(further)
    assert same.requirements == further
    assert same.types is shape.types
    assert same.room is shape.room
    zoneless = served.without(labels.ZONE)
    assert template.shape(zoneless).types is not shape.types


def test_a_node_filter_by_a_label_of_no_type_costs_no_shape_of_its_own() -> None:
    def filtered(key: str, value: str) -> list[Pod]:
        return [
            w.pod(
                f"p{number}",
                labels={"app": "web"},
                topologySpreadConstraints=[w.spread(app="web")],
                affinity=w.node_affinity([(key, "NotIn", [f"{value}{number}"])]),
            )
            for number in range(12)
        ]

    assert _steps(filtered("example.com/x", "v")) < _steps(filtered(labels.INSTANCE_TYPE, "v")) * 2 // 3


def _calls(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    """The first argument of each call of a function, as the module knows it."""
    calls, original = list[object](), getattr(module, name)

    def noted(*given: Any) -> Any:
        calls.append(given[0])
        return original(*given)

    monkeypatch.setattr(module, name, noted)
    return calls


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_relaxations_share_the_terms_that_they_keep(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The 31 relaxations of the pod have 465 terms."""
    calls = _calls(monkeypatch, topology_constraints, "selector_of")
    assert not w.solved(w.pool(), [w.pod("p", affinity=w.preferences(30, kind))]).unplaced
    assert len(calls) == 30


def test_relaxations_share_the_spreads_that_they_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[object]()
    original = Topology._spread_group

    def noted(self: Topology, pod: Pod, constraint: Any) -> Any:
        calls.append(constraint)
        return original(self, pod, constraint)

    monkeypatch.setattr(Topology, "_spread_group", noted)
    spreads = [w.spread(app=f"a{i}", whenUnsatisfiable="ScheduleAnyway") for i in range(10)]
    assert not w.solved(w.pool(), [w.pod("p", topologySpreadConstraints=spreads)]).unplaced
    assert len(calls) == 10


def test_required_affinity_terms_are_read_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts only pods that match all of them."""
    calls = _calls(monkeypatch, topology_constraints, "selector_of")
    terms = [w.between("podAffinity", app=f"a{i}")["podAffinity"] for i in range(20)]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    pod = w.pod("p", affinity={"podAffinity": {required: [term for one in terms for term in one[required]]}})
    assert w.solved(w.pool(), [pod]).unplaced
    assert len(calls) == 20


def test_constraints_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _calls(monkeypatch, pod_parts, "keys_of")
    pods = [w.pod(f"p{i}", affinity=w.between("podAntiAffinity", app=f"a{i}")) for i in range(5)]
    assert not w.solved(w.pool(), pods).unplaced
    assert len(calls) == 5


def test_relaxations_over_the_same_keys_have_the_same_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which domains new nodes can have is found out once for the ten relaxations with a spread, once without one."""
    calls = _calls(monkeypatch, ways, "routes")
    spreads = [w.spread(app=f"a{i}", whenUnsatisfiable="ScheduleAnyway") for i in range(10)]
    assert not w.solved(w.pool(), [w.pod("p", topologySpreadConstraints=spreads)]).unplaced
    assert len(calls) == 2


def test_all_nodes_are_held_against_a_group_at_once() -> None:
    """The anti-affinity of each pod counts all others: 1,600 times 600 nodes are held against a group."""
    everyone = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    places = [["default", f"other{i}"] for i in range(40)]
    apart = [w.between("podAntiAffinity", labelSelector=everyone, namespaces=some) for some in places]
    pods = [w.pod(f"p{i}", labels={"app": "a"}, affinity=one) for i, one in enumerate(apart)]
    work = Work()
    snapshot = w.world(w.pool(), *(w.node(f"n{i}") for i in range(600)), *pods)
    assert len(solve(snapshot, pods, work=work).placed) == 40
    assert work.whole < 3_000
