"""Edits as data: fields of the manifest that a user edits, and no more of it than the edit changes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.edits import (
    DropExpression,
    DropPort,
    DropSelector,
    LowerRequest,
    PodEdit,
    RaiseLimits,
    Tolerate,
)
from kerf.scheduling.answers.patches import Field, differences, of_fix, of_pool, owner_ref
from kerf_api.v1.meta import OwnerReference, Taint
from tests.unit.scheduling import worlds as w

TAINT = Taint(key="dedicated", value="a", effect="NoSchedule")
POD = w.pod("p", "3", nodeSelector={"example.com/tier": "front", "rev": "1"})


def owned(pod: Pod, kind: str, name: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=name, uid="u", controller=True)
    labels = {**pod.metadata.labels, "pod-template-hash": "5d9c7"}
    return replace(pod, metadata=replace(pod.metadata, owner_references=(owner,), labels=labels))


def fields(pod: Pod, edit: PodEdit) -> list[tuple[str, Any]]:
    return [(one.path, one.value) for one in of_fix(edit, pod, {}).fields]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("a.c", 3)]),
        ({"a": {"x/y": "1"}}, {}, [('a["x/y"]', None)]),
        ({}, {"a": {"b.c": "1"}}, [('a["b.c"]', "1")]),
        ({"a": {"b": {"c": [1]}}}, {"a": {}}, [("a.b", None)]),
        ({"a": [{"k": 1}]}, {"a": [{"k": 1}, {"k": 2}]}, [("a[-]", {"k": 2})]),
        ({"a": [{"k": 1}, {"k": 2}, {"k": 3}]}, {"a": [{"k": 2}]}, [("a[2]", None), ("a[0]", None)]),
        ({"a": [{"k": 1}, {"k": 2}]}, {"a": [{"k": 3}]}, [("a", [{"k": 3}])]),
        ({"a": [{"name": "n", "k": 1}]}, {"a": [{"name": "n", "k": 2}]}, [("a[name=n].k", 2)]),
        ({"a": ["x"]}, {"a": ["x", "y"]}, [("a", ["x", "y"])]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_differences_go_as_deep_as_both_sides_do(before: Any, after: Any, found: list[tuple[str, Any]]) -> None:
    assert [(one.path, one.value) for one in differences(before, after)] == found


def test_a_pod_without_a_controller_is_edited_itself() -> None:
    patch = of_fix(DropSelector("example.com/tier"), POD, {})
    assert (patch.action, patch.kind, patch.name) == ("Edit", "Pod", "default/p")
    assert patch.text == "the pod: remove example.com/tier from its nodeSelector"
    assert patch.fields == (Field('spec.nodeSelector["example.com/tier"]'),)


@pytest.mark.parametrize(
    ("kind", "name", "owner", "prefix"),
    [
        ("ReplicaSet", "web-5d9c7", ("Deployment", "default/web"), "spec.template."),
        ("StatefulSet", "db", ("StatefulSet", "default/db"), "spec.template."),
        ("CronJob", "report", ("CronJob", "default/report"), "spec.jobTemplate.spec.template."),
        ("Workspace", "canary", ("Pod", "default/p"), ""),
    ],
)
def test_a_controller_is_edited_in_place_of_its_pods(kind: str, name: str, owner: tuple[str, str], prefix: str) -> None:
    pod = owned(POD, kind, name)
    patch = of_fix(DropSelector("rev"), pod, {})
    assert (patch.kind, patch.name) == owner
    assert patch.fields == (Field(f"{prefix}spec.nodeSelector.rev"),)
    assert owner_ref(pod, "spec.volumes").path == f"{prefix}spec.volumes"


def test_the_pod_template_of_a_rollout_is_edited_not_its_replica_set() -> None:
    pod = owned(POD, "ReplicaSet", "web-5d9c7")
    own = {"rollouts-pod-template-hash": "5d9c7"}
    patch = of_fix(DropSelector("rev"), replace(pod, metadata=replace(pod.metadata, labels=own)), {})
    assert (patch.kind, patch.name) == ("Rollout", "default/web")
    assert patch.fields == (Field("spec.template.spec.nodeSelector.rev"),)


def test_a_node_affinity_of_which_nothing_is_left_is_removed() -> None:
    pod = w.pod("p", affinity=w.node_affinity([("a", "Exists", [])]))
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    assert fields(pod, DropExpression("a")) == [(path, None)]


def test_a_toleration_is_added_after_those_of_the_template() -> None:
    value = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}
    pod = w.pod("p", tolerations=[{"key": "injected", "operator": "Exists"}])
    assert fields(pod, Tolerate(TAINT)) == [("spec.tolerations[-]", value)]


def test_a_request_is_lowered_where_it_is_written() -> None:
    pod = w.pod("p", containers=[{"name": "main", "resources": {"requests": {"cpu": "3"}}}, {"name": "side"}])
    assert fields(pod, LowerRequest("cpu", 3000, 1500)) == [
        ("spec.containers[name=main].resources.requests.cpu", "1500m")
    ]


def test_a_request_of_several_containers_is_lowered_for_the_whole_pod() -> None:
    needs = {"resources": {"requests": {"cpu": "2"}}}
    pod = w.pod("p", containers=[{"name": "a", **needs}, {"name": "b", **needs}])
    assert fields(pod, LowerRequest("cpu", 4000, 3000)) == [("spec.resources", {"requests": {"cpu": "3"}})]


def test_a_host_port_is_removed_by_its_place() -> None:
    pod = w.pod("p", containers=[{"name": "main", "ports": [{"hostPort": 80}, {"hostPort": 81}]}])
    assert fields(pod, DropPort(("0.0.0.0", 80, "TCP"))) == [("spec.containers[name=main].ports[0]", None)]


def test_an_edit_of_a_nodepool_names_it() -> None:
    before = w.pool("general", limits={"cpu": "1", "memory": "8Gi"})
    edit = RaiseLimits("general", (("cpu", 1000, 6000),))
    patch = of_pool(before, edit.made(before), str(edit))
    assert (patch.kind, patch.name, patch.fields) == ("NodePool", "general", (Field("spec.limits.cpu", "6"),))
