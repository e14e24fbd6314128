"""Each edit does to a manifest what its words say, and nothing where there is nothing to edit."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.edits import (
    AddLabel,
    AddValue,
    DropExpression,
    DropPort,
    DropRow,
    DropSelector,
    DropSpread,
    DropTerm,
    LowerMinValues,
    LowerRequest,
    PodEdit,
    PoolEdit,
    RaiseLimits,
    RemoveTaint,
    Tolerate,
)
from kerf_api import labels
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w

TAINT = Taint(key="dedicated", value="ml", effect="NoSchedule")
GIB = 1 << 30


def rows(pool: NodePool) -> list[tuple[str, str, tuple[str, ...], int | None]]:
    return [(e.key, e.operator, e.values, e.min_values) for e in pool.spec.template.spec.requirements]


def pool(*entries: tuple[str, str, list[str]], **spec: Any) -> NodePool:
    made = [{"key": k, "operator": o, "values": v} for k, o, v in entries]
    return w.pool(requirements=made, **spec)


# --- pods -------------------------------------------------------------------------------------------------------
def test_tolerate() -> None:
    assert pods.tolerates(Tolerate(TAINT).made(w.pod("p")), TAINT)
    assert str(Tolerate(TAINT)) == "tolerate the taint dedicated=ml:NoSchedule"


def test_drop_from_the_selector_by_any_spelling() -> None:
    pod = w.pod("p", nodeSelector={"beta.kubernetes.io/arch": "arm64", "team": "red"})
    assert DropSelector(labels.ARCH).made(pod).spec.node_selector == {"team": "red"}


def test_drop_an_expression_from_every_term() -> None:
    pod = w.pod("p", affinity=w.node_affinity([("a", "Exists", []), ("b", "Exists", [])], [("b", "Exists", [])]))
    without = DropExpression("a").made(pod).spec.affinity
    assert without is not None
    assert without.node_affinity is not None
    assert without.node_affinity.required is not None
    assert [[e.key for e in t.match_expressions] for t in without.node_affinity.required.node_selector_terms] == [
        ["b"],
        ["b"],
    ]


def test_a_term_of_which_nothing_is_left_asks_for_nothing() -> None:
    """For Kubernetes an empty term fits no node, so it is not left there; with it go its alternatives."""
    pod = w.pod("p", affinity=w.node_affinity([("a", "Exists", []), ("b", "Exists", [])], [("b", "Exists", [])]))
    without = DropExpression("b").made(pod).spec.affinity
    assert without is not None
    assert without.node_affinity is not None
    assert without.node_affinity.required is None


def test_lower_what_containers_and_overhead_ask_for_together() -> None:
    pod = w.pod("p", "3", "4Gi", overhead={"cpu": "500m"})
    edit = LowerRequest("cpu", 3500, 2000)
    lowered = pods.requests(edit.made(pod))
    assert (lowered["cpu"], lowered["memory"], lowered["pods"]) == (2000, 4 * GIB, 1)
    assert str(edit) == "lower its request for cpu from 3500m to 2"


def test_lower_a_request_that_comes_of_a_limit() -> None:
    container = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pod = w.pod("p", containers=[container])
    edit = LowerRequest("nvidia.com/gpu", 2, 0)
    assert pods.requests(edit.made(pod))["nvidia.com/gpu"] == 0
    assert str(edit) == "remove its request for nvidia.com/gpu (2)"


def test_less_than_the_overhead_cannot_be_asked_for() -> None:
    pod = w.pod("p", "3", overhead={"cpu": "500m"})
    assert LowerRequest("cpu", 3500, 400).made(pod) is pod


def test_drop_a_hard_spread_and_keep_the_soft_one() -> None:
    soft = w.spread(whenUnsatisfiable="ScheduleAnyway")
    pod = w.pod("p", topologySpreadConstraints=[w.spread(), soft, w.spread(labels.HOSTNAME)])
    left = DropSpread(labels.ZONE).made(pod).spec.topology_spread_constraints
    assert [(s.topology_key, s.when_unsatisfiable) for s in left] == [
        (labels.ZONE, "ScheduleAnyway"),
        (labels.HOSTNAME, "DoNotSchedule"),
    ]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_drop_a_term_between_pods(kind: str) -> None:
    pod = w.pod("p", affinity=w.between(kind, labels.ZONE))
    affinity = pod.spec.affinity
    assert affinity is not None
    between = affinity.pod_anti_affinity or affinity.pod_affinity
    assert between is not None
    edit = DropTerm(kind == "podAntiAffinity", between.required[0])
    after = edit.made(pod).spec.affinity
    assert after is not None
    kept = after.pod_anti_affinity or after.pod_affinity
    assert kept is not None
    assert kept.required == ()
    assert DropTerm(kind == "podAffinity", between.required[0]).made(pod) is pod


def test_drop_a_host_port() -> None:
    pod = w.pod("p", ports=[{"hostPort": 80}, {"hostPort": 81}])
    (container,) = DropPort(("0.0.0.0", 80, "TCP")).made(pod).spec.containers
    assert [port.host_port for port in container.ports] == [81]


@pytest.mark.parametrize(
    "edit",
    [
        DropSelector("team"),
        DropExpression("team"),
        LowerRequest("cpu", 2000, 1000),
        DropSpread(labels.ZONE),
        DropPort(("0.0.0.0", 80, "TCP")),
    ],
)
def test_nothing_to_edit_leaves_the_pod_as_it_is(edit: PodEdit) -> None:
    pod: Pod = w.pod("p")
    assert edit.made(pod) is pod


# --- pools ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("In", ["z1"]), ("In", ("z1", "z3"))),
        (("NotIn", ["z2", "z3"]), ("NotIn", ("z2",))),
        (("NotIn", ["z3"]), ("Exists", ())),
    ],
)
def test_allow_a_value(before: tuple[str, list[str]], after: tuple[str, tuple[str, ...]]) -> None:
    edited = AddValue("default", labels.ZONE, "z3").made(pool((labels.ZONE, *before)))
    assert rows(edited) == [(labels.ZONE, *after, None)]


def test_drop_a_requirement() -> None:
    edited = DropRow("default", labels.ARCH).made(pool(("beta.kubernetes.io/arch", "In", ["arm64"])))
    assert rows(edited) == []


def test_a_label_for_nodes() -> None:
    edit = AddLabel("default", "team", "red")
    assert edit.made(pool(labels={"a": "b"})).spec.template.metadata.labels == {"a": "b", "team": "red"}
    assert str(edit) == "NodePool default: give its nodes the label team=red"


def test_remove_a_taint() -> None:
    tainted = pool(
        taints=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}, {"key": "k", "effect": "NoExecute"}]
    )
    left = RemoveTaint("default", TAINT).made(tainted).spec.template.spec.taints
    assert [taint.key for taint in left] == ["k"]


def test_raise_limits() -> None:
    edit = RaiseLimits("default", (("cpu", 8000, 12000), ("memory", 8 * GIB, 10 * GIB)))
    limits = edit.made(pool(limits={"cpu": "8", "memory": "8Gi", "nodes": "3"})).limits
    assert dict(limits or {}) == {"cpu": 12000, "memory": 10 * GIB, "nodes": 3}
    assert str(edit) == "NodePool default: raise limits.cpu from 8 to 12 and limits.memory from 8Gi to 10Gi"


@pytest.mark.parametrize(
    ("least", "kept", "words"), [(2, 2, "lower minValues from 3 to 2"), (1, None, "remove minValues")]
)
def test_lower_min_values(least: int, kept: int | None, words: str) -> None:
    before = w.pool(requirements=[{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 3}])
    edit = LowerMinValues("default", labels.INSTANCE_TYPE, 3, least)
    assert rows(edit.made(before)) == [(labels.INSTANCE_TYPE, "Exists", (), kept)]
    assert words in str(edit)


@pytest.mark.parametrize(
    "edit",
    [AddValue("default", labels.ZONE, "z1"), DropRow("default", "team"), LowerMinValues("default", "team", 3, 2)],
)
def test_nothing_to_edit_leaves_the_pool_as_it_is(edit: PoolEdit) -> None:
    before = pool((labels.ZONE, "In", ["z1"]))
    assert edit.made(before) is before
