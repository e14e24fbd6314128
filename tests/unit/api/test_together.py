"""What manifests have to do with each other: told at the one that has to change, and only where it can be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kerf_api import labels
from kerf_api.lint import together

from .manifests import BASES, CAPACITYBUFFER, EC2NODECLASS, NODEPOOL, placed
from .table.rows import requirement

AWS = labels.AWS_GROUP


def named(kind: str, name: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
    made = placed(BASES[kind], "metadata.name", name)
    for path, value in (fields or {}).items():
        made = placed(made, path, value)
    return made


def told(*manifests: Any) -> list[tuple[int, str, str]]:
    return [(i, problem.rule, problem.path) for i, found in enumerate(together(manifests)) for problem in found]


# --- twice ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", sorted(BASES))
def test_two_objects_of_one_name_are_told_each_and_nothing_else_is(kind: str) -> None:
    one, two = named(kind, "same"), named(kind, "same", {"metadata.labels": {"a": "b"}})
    found = [row for row in told(one, two) if row[1] != "KERF-SET-302"]
    assert found == [(0, "KERF-SET-308", "metadata.name"), (1, "KERF-SET-308", "metadata.name")]


def test_the_number_and_the_other_places_are_named() -> None:
    first, *_ = together([named("NodePool", "same")] * 3)[0]
    assert "is defined 3 times; the one" in first.message
    assert "is defined twice; the one" in together([NODEPOOL, NODEPOOL])[0][0].message
    places = [f"{name}.yaml:1" for name in "abcdef"]
    first, *_ = together([named("NodePool", "same")] * 6, places=places)[0]
    assert "is defined 6 times: also at b.yaml:1 and c.yaml:1 and d.yaml:1 and 2 others;" in first.message


def test_a_pool_and_its_double_are_not_alike_nor_in_each_others_shadow() -> None:
    free = named("NodePool", "default", {"spec.limits": None, "spec.weight": 50})
    assert {rule for _, rule, _ in told(NODEPOOL, free)} == {"KERF-SET-308"}
    found = told(NODEPOOL, NODEPOOL, named("NodePool", "other"))
    assert {rule for index, rule, _ in found if index == 2} == {"KERF-SET-304"}


@pytest.mark.parametrize(
    "other",
    [
        named("NodeOverlay", "default"),
        placed(NODEPOOL, "apiVersion", "karpenter.sh/v1beta1"),
        placed(NODEPOOL, "metadata", {"generateName": "default"}),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "default"}},
    ],
)
def test_what_only_looks_the_same_is_not_twice(other: dict[str, Any]) -> None:
    assert "KERF-SET-308" not in {rule for index, rule, _ in told(NODEPOOL, other) if index == 0}


def test_a_namespace_tells_buffers_apart_and_no_pools() -> None:
    for kind, apart in (("CapacityBuffer", True), ("NodePool", False), ("NodeOverlay", False)):
        pair = (named(kind, "same", {"metadata.namespace": space}) for space in ("a", "b"))
        assert ("KERF-SET-308" in {rule for _, rule, _ in told(*pair)}) is not apart


# --- overlays ---------------------------------------------------------------------------------------------------
def overlay(name: str, *requirements: dict[str, Any], weight: int | None = None, **fields: Any) -> dict[str, Any]:
    spec = {"requirements": [*requirements], **(fields or {"priceAdjustment": "-10%"})}
    return named("NodeOverlay", name, {"spec": spec if weight is None else {**spec, "weight": weight}})


FAMILY = f"{AWS}/instance-family"
M7I, M7G = requirement(FAMILY, values=("m7i",)), requirement(FAMILY, values=("m7g",))
ARM = requirement(labels.ARCH, values=("arm64",))
SPOT, DEMAND = (requirement(labels.CAPACITY_TYPE, values=(value,)) for value in (labels.SPOT, labels.ON_DEMAND))
EAST, WEST = (requirement(labels.ZONE, values=(value,)) for value in ("us-east-1a", "us-east-1b"))
FUSE: dict[str, Any] = {"capacity": {"example.com/fuse": 1}}
LOSES = [(0, "KERF-SET-309", "spec.weight")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (overlay("a"), overlay("b")),
        (overlay("a", M7I), overlay("b", SPOT)),
        (overlay("a", M7I, weight=5), overlay("b", M7I, weight=5, price="0.05")),
        (overlay("a", M7I), overlay("b", requirement(FAMILY, "NotIn", ("m7g",)))),
        (overlay("a", requirement("team", values=("x",))), overlay("b", requirement("other", values=("y",)))),
        (overlay("a", requirement("team", "NotIn", ("x",))), overlay("b", requirement("team", "DoesNotExist", None))),
        (overlay("a", requirement("beta.kubernetes.io/arch", values=("arm64",))), overlay("b", ARM)),
        (overlay("a", **FUSE), overlay("b", **FUSE)),
        # capacity is a type's, whatever offering of it is meant
        (overlay("a", SPOT, **FUSE), overlay("b", DEMAND, **FUSE)),
        (overlay("a", EAST, **FUSE), overlay("b", WEST, **FUSE)),
        (overlay("a", SPOT, priceAdjustment="+1%", **FUSE), overlay("b", DEMAND, priceAdjustment="+1%", **FUSE)),
    ],
)
def test_of_two_equal_overlays_the_first_name_is_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert told(first, second) == LOSES
    assert [(1 - index, rule, path) for index, rule, path in told(second, first)] == LOSES


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (overlay("a", weight=1), overlay("b")),
        (overlay("a", weight=1), overlay("b", weight=2)),
        (overlay("a", M7I), overlay("b", M7G)),
        (overlay("a", M7I), overlay("b", ARM)),
        (overlay("a", SPOT), overlay("b", DEMAND)),
        (overlay("a", EAST), overlay("b", WEST)),
        (overlay("a", requirement("team", values=("x",))), overlay("b", requirement("team", values=("y",)))),
        (overlay("a", requirement("team", "Exists", None)), overlay("b", requirement("team", "DoesNotExist", None))),
        (overlay("a", requirement("n", "Gt", ("5",))), overlay("b", requirement("n", "Lt", ("5",)))),
        (overlay("a"), overlay("b", **FUSE)),
        (overlay("a", M7I, **FUSE), overlay("b", M7G, **FUSE)),
        (overlay("a", **FUSE), overlay("b", capacity={"example.com/other": 1})),
        (
            overlay("a", requirement(labels.NODEPOOL, values=("x",))),
            overlay("b", requirement(labels.NODEPOOL, "NotIn", ("x",))),
        ),
    ],
)
def test_overlays_that_leave_each_other_alone(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert told(first, second) == []


def test_an_overlay_that_is_refused_is_told_once_and_by_whom() -> None:
    first, *others = together([overlay(name, M7I) for name in "abc"])
    assert [problem.rule for problem in first] == ["KERF-SET-309"]
    assert "NodeOverlay c has the same weight and sets the price of m7i.12xlarge and" in first[0].message
    assert [len(problems) for problems in others] == [1, 0]


def test_an_overlay_for_a_pool_that_is_not_there() -> None:
    lost = overlay("a", requirement(labels.NODEPOOL, values=("default", "defualt")))
    ((_, (problem,)), *_) = enumerate(together([lost, NODEPOOL, EC2NODECLASS]))
    assert (problem.rule, problem.path) == ("KERF-SET-310", "spec.requirements[0].values[1]")
    assert problem.hint == "did you mean default?"
    assert told(lost) == []
    assert told(overlay("a", requirement(labels.NODEPOOL, "NotIn", ("gone",))), NODEPOOL, EC2NODECLASS) == []
    fixed = placed(placed(NODEPOOL, "spec.replicas", 3), "metadata.name", "defualt")
    assert told(lost, NODEPOOL, fixed, EC2NODECLASS) == []


# --- buffers ----------------------------------------------------------------------------------------------------
def workload(name: str, kind: str = "Deployment", space: str | None = None, **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "500m"}}}], **pod}
    body = {"template": {"spec": spec}} if kind == "PodTemplate" else {"spec": {"template": {"spec": spec}}}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": space} if space else {}),
    } | body


def limited(**limits: Any) -> dict[str, Any]:
    return placed(CAPACITYBUFFER, "spec.limits", limits)


BY_TEMPLATE = placed(CAPACITYBUFFER, "spec", {"podTemplateRef": {"name": "web"}, "replicas": 3})


@pytest.mark.parametrize(
    ("buffer", "beside", "path"),
    [
        (CAPACITYBUFFER, workload("wbe"), "spec.scalableRef.name"),
        (BY_TEMPLATE, workload("wbe", "PodTemplate"), "spec.podTemplateRef.name"),
        (
            placed(CAPACITYBUFFER, "spec.scalableRef.kind", "StatefulSet"),
            workload("db", "StatefulSet"),
            "spec.scalableRef.name",
        ),
    ],
)
def test_a_buffer_for_what_is_not_there(buffer: dict[str, Any], beside: dict[str, Any], path: str) -> None:
    assert told(buffer, beside) == [(0, "KERF-SET-311", path)]


@pytest.mark.parametrize(
    ("buffer", "beside"),
    [
        (CAPACITYBUFFER, [workload("web")]),
        (CAPACITYBUFFER, [workload("web", space="default")]),
        (CAPACITYBUFFER, [workload("other", space="elsewhere")]),
        (CAPACITYBUFFER, [workload("db", "StatefulSet"), workload("web", "PodTemplate")]),
        (CAPACITYBUFFER, [NODEPOOL, EC2NODECLASS]),
        (BY_TEMPLATE, [workload("web", "PodTemplate")]),
        (BY_TEMPLATE, [workload("other")]),
        (placed(CAPACITYBUFFER, "spec", {}), [workload("other")]),
        (placed(CAPACITYBUFFER, "metadata.namespace", ["a"]), [workload("web")]),
    ],
)
def test_buffers_of_which_nothing_can_be_said(buffer: dict[str, Any], beside: list[dict[str, Any]]) -> None:
    assert [row for row in told(buffer, *beside) if row[0] == 0] == []


TWO = [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}, {"name": "b", "resources": {"limits": {"cpu": "1"}}}]
FIRST = [{"name": "first", "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}]


@pytest.mark.parametrize(
    ("buffer", "beside", "rule", "path"),
    [
        (limited(cpu="499m"), workload("web"), "KERF-SET-312", "spec.limits.cpu"),
        (limited(cpu="1499m"), workload("web", containers=TWO), "KERF-SET-312", "spec.limits.cpu"),
        (limited(cpu="3999m"), workload("web", initContainers=FIRST), "KERF-SET-312", "spec.limits.cpu"),
        (limited(cpu=1), workload("web", resources={"requests": {"cpu": 2}}), "KERF-SET-312", "spec.limits.cpu"),
        (limited(memory="1Gi"), workload("web"), "KERF-SET-313", "spec.limits"),
        (limited(pods=5), workload("web"), "KERF-SET-313", "spec.limits"),
        (limited(cpu=5), workload("web", containers=[{"name": "app"}]), "KERF-SET-313", "spec.limits"),
    ],
)
def test_limits_that_do_not_fit_the_pods(buffer: dict[str, Any], beside: dict[str, Any], rule: str, path: str) -> None:
    assert told(buffer, beside) == [(0, rule, path)]


@pytest.mark.parametrize(
    ("buffer", "beside"),
    [
        (limited(cpu="500m"), workload("web")),
        (limited(cpu="1500m"), workload("web", containers=TWO)),
        (limited(cpu="4"), workload("web", initContainers=FIRST)),
        (limited(cpu="1", memory="1Gi"), workload("web")),
        (limited(memory="1Gi"), workload("web", initContainers=FIRST)),
        (limited(cpu=0), workload("web")),  # told of the buffer alone
        (limited(), workload("web")),
        (limited(cpu="x"), workload("web")),
        (limited(cpu="1"), workload("web", containers="x")),
    ],
)
def test_limits_that_hold_a_pod(buffer: dict[str, Any], beside: dict[str, Any]) -> None:
    assert [row for row in told(buffer, beside) if row[1] == "KERF-SET-312"] == []
    if beside == workload("web"):
        assert told(buffer, beside) == []


# --- annotations of pods ----------------------------------------------------------------------------------------
def annotated(value: Any, kind: str = "Deployment") -> dict[str, Any]:
    annotations = {"annotations": {labels.DO_NOT_DISRUPT: value}}
    pod = {"metadata": annotations, "spec": {"containers": []}}
    job = {"spec": {"template": pod}}
    body: dict[str, dict[str, Any]] = {
        "Pod": pod,
        "PodTemplate": {"template": pod},
        "CronJob": {"spec": {"jobTemplate": job}},
    }
    return {"kind": kind, **body.get(kind, job)}


@pytest.mark.parametrize("value", ["true", "false", "24h", "1h30m", "1.5h", "300ms", True, 5, None])
def test_a_wish_to_be_left_alone_that_is_heeded_or_none(value: Any) -> None:
    assert told(annotated(value)) == []


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("1d", "did you mean 24h?"),
        ("True", 'write "true"'),
        ("yes", 'write "true"'),
        ("0s", 'write "true"'),
        ("-1h", 'write "true"'),
        ("Never", 'write "true"'),
        ("", 'write "true"'),
        ("9" * 100_000 + "h", 'write "true"'),
    ],
)
def test_a_wish_to_be_left_alone_that_is_not_heeded(value: str, hint: str) -> None:
    for kind, start in (("Pod", ""), ("PodTemplate", "template."), ("StatefulSet", "spec.template.")):
        ((problem,),) = together([annotated(value, kind)])
        assert (problem.rule, problem.severity, problem.hint) == ("KERF-SET-314", "warning", hint)
        assert problem.path == f"{start}metadata.annotations[{labels.DO_NOT_DISRUPT}]"
    assert len(told(annotated(value, "CronJob"))) == 1
