"""On which nodes pods count for a spread: every label and taint that it asks about tells nodes apart, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes.selectors import selector_of
from kerf.pods.requirements import asked_labels
from kerf.pods.topology_constraints import SPREAD, TopologyGroup
from kerf.scheduling.facts.bound_pods import BoundPods
from kerf.scheduling.topology.counts import Tallies
from kerf_api import labels
from kerf_api.v1.meta import Taint
from tests.unit.scheduling import worlds as w

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
EITHER = w.node_affinity([("cpus", "Gt", ["4"])], [("team", "In", ["red"])])
SICK = Taint(key="sick", effect="NoSchedule")


def counted(
    pod: Any,
    nodes: list[Any],
    coming: dict[str, tuple[Taint, ...]] | None = None,
    *,
    honors_affinity: bool = True,
    honors_taints: bool = True,
) -> set[str]:
    """The nodes whose pods count when this pod is spread over racks; it asks about labels and taints."""
    asks = (honors_affinity, honors_taints)
    group = TopologyGroup(SPREAD, "rack", frozenset({"default"}), selector_of(None, {}, ()), pod, *asks)
    census = BoundPods({}, (), (), {}, {node.name: node for node in nodes}, {})
    return set(Tallies(census, nodes, coming or {}).offered("it", group)[1])


def racked(name: str, **more: Any) -> Any:
    return w.node(name, labels={"rack": name, **more.pop("labels", {})}, **more)


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        ({"nodeSelector": {"team": "red"}}, {"team": "red"}, {"team": "blue"}),
        ({"nodeSelector": {"team": "red"}}, {"team": "red", "more": "x"}, {}),
        ({"affinity": w.node_affinity([("team", "NotIn", ["red"])])}, {}, {"team": "red"}),
        ({"affinity": EITHER}, {"team": "red"}, {"cpus": "3"}),
        ({"nodeSelector": {labels.HOSTNAME: "good"}}, {}, {}),
        ({"nodeSelector": {labels.ZONE: "z1"}}, {}, {OLD_ZONE: "z2"}),
        ({"nodeSelector": {OLD_ZONE: "z1"}}, {OLD_ZONE: "z1"}, {labels.ZONE: "z2"}),
    ],
)
def test_each_label_that_is_asked_for_tells_nodes_apart(
    spec: dict[str, Any], good: dict[str, str], bad: dict[str, str]
) -> None:
    (pod,) = w.replicas(1, "web", **spec)
    nodes = [racked("good", labels=good), racked("bad", labels=bad)]
    assert counted(pod, nodes) == {"good"}
    assert counted(pod, nodes[::-1]) == {"good"}
    assert counted(pod, nodes, honors_affinity=False) == {"good", "bad"}


def test_taints_tell_nodes_apart_and_those_that_will_vanish_do_not() -> None:
    (pod,) = w.replicas(1, "web")
    nodes = [racked("well"), racked("sick", taints=[{"key": "sick", "effect": "NoSchedule"}])]
    assert counted(pod, nodes) == {"well"}
    assert counted(pod, nodes, {"sick": ()}) == {"well", "sick"}
    assert counted(pod, nodes, {"well": (SICK,)}) == set()
    assert counted(pod, nodes, honors_taints=False) == {"well", "sick"}


def test_who_asks_for_nothing_is_told_no_nodes_apart_by() -> None:
    (pod,) = w.replicas(1, "web")
    assert asked_labels(pod) == frozenset()
    (picky,) = w.replicas(
        1, "web", nodeSelector={"team": "red"}, affinity=w.node_affinity([(labels.ZONE, "Exists", [])])
    )
    assert asked_labels(picky) >= {"team", labels.ZONE, OLD_ZONE}
    assert labels.ARCH not in asked_labels(picky)
