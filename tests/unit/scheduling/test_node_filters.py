"""Node filters of many spreads: those that cannot differ on a node are asked once, and each gets its own answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.selectors import selector_of
from kerf.pods.topology_constraints import AFFINITY, SPREAD, TopologyGroup
from kerf.scheduling.placing import routes
from kerf.scheduling.placing.planned_counting import Counting, counting, countings
from kerf.scheduling.topology.node_filters import NodeFilters
from kerf_api import labels
from kerf_api.requirements import EXISTS, GT, IN, NOT_IN, Requirements, requirement
from kerf_api.v1.meta import Taint
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_hostile_pods import counted

EXPRESSIONS = [
    ("team", "In", ["red"]),
    ("team", "NotIn", ["red"]),
    ("team", "NotIn", ["blue"]),
    ("team", "Exists", []),
    ("team", "DoesNotExist", []),
    ("cpus", "Gt", ["4"]),
    ("cpus", "NotIn", ["3"]),
    ("other", "NotIn", ["x"]),
]
SICK = Taint(key="sick", effect="NoSchedule")


@dataclass(frozen=True, eq=False)
class Planned:
    possible: Requirements
    taints: tuple[Taint, ...] = ()

    def domains(self, key: str) -> tuple[str | None, ...]:
        row = self.possible.get(key)
        return tuple(sorted(row.values)) if row is not None and row.values else (None,)


ROWS = [
    [],
    [requirement("team", IN, ("red",))],
    [requirement("team", IN, ("red", "blue"))],
    [requirement("team", NOT_IN, ("red",))],
    [requirement("team", EXISTS), requirement("cpus", IN, ("3",))],
    [requirement("cpus", GT, ("7",)), requirement("other", NOT_IN, ("y",))],
]
NODES = [
    Planned(Requirements([*rows, *zone]), taints)
    for rows, taints, zone in product(ROWS, [(), (SICK,)], [[], [requirement(labels.ZONE, IN, ("z1",))]])
]


def group(pod: Pod | None, number: int, **more: Any) -> TopologyGroup:
    """A spread over zones; `alike` tells its filter from all others."""
    kind = SPREAD if pod is not None else AFFINITY
    keys = frozenset({labels.ZONE}) if number % 2 else frozenset[str]()
    return TopologyGroup(kind, labels.ZONE, None, selector_of(None, {}, ()), pod, keys=keys, alike=number, **more)


def groups() -> list[TopologyGroup]:
    affinities = [
        *(w.node_affinity([one]) for one in EXPRESSIONS),
        *(w.node_affinity([one], [two]) for one, two in product(EXPRESSIONS[:3], EXPRESSIONS[3:])),
        w.node_affinity([("team", "In", ["red"]), ("team", "NotIn", ["red"])]),
        w.node_affinity([]),
    ]
    tolerations = [(), ({"key": "sick", "operator": "Exists"},)]
    pods = [
        w.pod("p", affinity=affinity, tolerations=[*tolerated])
        for affinity, tolerated in product(affinities, tolerations)
    ]
    found = [group(pod, 0) for pod in (*pods, None)]
    for pod in pods:
        for affinity, taints in product((False, True), repeat=2):
            found += [group(pod, len(found), honors_affinity=affinity, honors_taints=taints)]
    return found


def test_each_filter_has_its_own_answer() -> None:
    filters, every = NodeFilters(), groups()
    assert {one.admits_node(node.possible, node.taints) for node in NODES for one in every} == {False, True}
    for node in NODES:
        for one in every:
            assert filters.admit(one, node) == one.admits_node(node.possible, node.taints), (one, node)


def test_filters_that_leave_out_labels_which_the_node_has_not_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    admits_node = TopologyGroup.admits_node

    def counting(self: TopologyGroup, *given: Any) -> bool:
        nonlocal asked
        asked += 1
        return admits_node(self, *given)

    monkeypatch.setattr(TopologyGroup, "admits_node", counting)
    filters, node = NodeFilters(), Planned(Requirements([requirement(labels.ZONE, IN, ("z1",))]))
    for i in range(30):
        pod = w.pod(f"p{i}", affinity=w.node_affinity([("example.com/x", "NotIn", [f"v{i}"])]))
        assert filters.admit(group(pod, 2 * i, honors_affinity=True), node)
    assert asked == 1


def spread_pods(*expressions: tuple[str, str, list[str]]) -> list[Pod]:
    """Pods that are spread over zones together, each with an expression of its own in its node affinity."""
    more: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread()]}
    return [w.pod(f"p{i}", affinity=w.node_affinity([one]), **more) for i, one in enumerate(expressions)]


def test_a_filter_of_each_pod_is_not_asked_about_each_planned_node(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, "open_domains")
    pods = spread_pods(*(("example.com/x", "NotIn", [f"v{i}"]) for i in range(24)))
    assert not w.solved(w.pool(), pods).unplaced
    assert calls["open_domains"] < 24**2 * 2


def test_each_filter_counts_the_planned_nodes_that_it_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Counter[Counting]()

    def checked(groups: Any, template: Any, served: Any) -> Any:
        answers = countings(groups, template, served)
        assert answers == [(one, counting(one, template, served)) for one in groups]
        found.update(answer for _, answer in answers)
        return answers

    monkeypatch.setattr(routes, "countings", checked)
    w.solved(
        w.pool(),
        spread_pods(
            *EXPRESSIONS,
            *((labels.ZONE, "NotIn", [zone]) for zone in ("z1", "z2")),
            *((labels.CAPACITY_TYPE, operator, ["spot"]) for operator in ("In", "NotIn")),
            *((labels.INSTANCE_TYPE, "NotIn", [one.name]) for one in w.CATALOGUE),
        ),
    )
    assert {(bool(answer.nodes), answer.certain) for answer in found} == {(True, True), (True, False), (False, True)}
