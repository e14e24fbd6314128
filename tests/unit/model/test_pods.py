"""What a pod takes of a node, and what may be done with it: the rules as tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint, decode

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(**ago: float) -> str:
    """The time that long before NOW, as the API writes it."""
    return (NOW - timedelta(**ago)).isoformat()


def pod(
    *,
    owner: tuple[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    deleted: str | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod from the parts of its manifest; running, unless `status` says otherwise."""
    meta: dict[str, Any] = {"name": "a", "namespace": "default", "annotations": annotations or {}}
    if owner is not None:
        meta["ownerReferences"] = [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": "u"}]
    if deleted is not None:
        meta["deletionTimestamp"] = deleted
    return decode(Pod, {"metadata": meta, "spec": spec, "status": status or {"phase": "Running"}})


# --- what it takes ----------------------------------------------------------------------------------------------
def container(cpu: str = "", memory: str = "", limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    asked = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}
    return {"name": "c", "resources": {"requests": asked, "limits": limits or {}}, **more}


def sidecar(cpu: str) -> dict[str, Any]:
    return container(cpu, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"pods": "1"}, id="nothing is asked for"),
        pytest.param(
            {"containers": [container("100m", "1Gi"), container("1", "512Mi")]},
            {"cpu": "1100m", "memory": "1536Mi", "pods": "1"},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [container("100m", limits={"cpu": "2", "memory": "1Gi"})]},
            {"cpu": "100m", "memory": "1Gi", "pods": "1"},
            id="a limit is a request where there is no other",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
            {"cpu": "3", "pods": "1"},
            id="init containers run alone, the largest counts",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "initContainers": [container("3", "512Mi")]},
            {"cpu": "3", "memory": "1Gi", "pods": "1"},
            id="the larger phase, resource by resource",
        ),
        pytest.param(
            {"containers": [container("2")], "initContainers": [container("1")]},
            {"cpu": "2", "pods": "1"},
            id="a small init container costs nothing",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("500m"), sidecar("250m")]},
            {"cpu": "1750m", "pods": "1"},
            id="sidecars run beside the containers",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("500m"), container("2")]},
            {"cpu": "2500m", "pods": "1"},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2"), sidecar("500m")]},
            {"cpu": "2", "pods": "1"},
            id="but not beside those after it",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "resources": {"requests": {"cpu": "4"}}},
            {"cpu": "4", "memory": "1Gi", "pods": "1"},
            id="the pod's own request overrides, per resource",
        ),
        pytest.param(
            {"containers": [container("4")], "resources": {"requests": {"cpu": "2"}}},
            {"cpu": "2", "pods": "1"},
            id="even where it is smaller",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "resources": {"requests": {"cpu": "2"}},
                "overhead": {"cpu": "250m", "memory": "120Mi"},
            },
            {"cpu": "2250m", "memory": "120Mi", "pods": "1"},
            id="overhead comes on top",
        ),
        pytest.param(
            {"containers": [container(limits={"nvidia.com/gpu": "1"}), container("100m")]},
            {"nvidia.com/gpu": "1", "cpu": "100m", "pods": "1"},
            id="extended resources, given as limits",
        ),
    ],
)
def test_requests(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert pods.requests(pod(**spec)) == Resources.parse(expected)


# --- what may be done with it -----------------------------------------------------------------------------------
DAEMON_SET, STATEFUL_SET, NODE = ("apps/v1", "DaemonSet"), ("apps/v1", "StatefulSet"), ("v1", "Node")
TOLERATES_ALL: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
DO_NOT_DISRUPT: dict[str, Any] = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}

PODS = {
    "plain": pod(),
    "failed": pod(status={"phase": "Failed"}),
    "succeeded": pod(status={"phase": "Succeeded"}),
    "terminating": pod(deleted=at(seconds=-30)),
    "stuck": pod(deleted=at(seconds=61)),
    "just not stuck": pod(deleted=at(seconds=60)),
    "terminating, of a StatefulSet": pod(owner=STATEFUL_SET, deleted=at(seconds=-30)),
    "failed, of a StatefulSet": pod(owner=STATEFUL_SET, status={"phase": "Failed"}),
    "of a DaemonSet": pod(owner=DAEMON_SET),
    "of another project's DaemonSet": pod(owner=("apps.kruise.io/v1alpha1", "DaemonSet")),
    "of a Node": pod(owner=NODE),
    "tolerates all": pod(**TOLERATES_ALL),
    "protected": pod(**DO_NOT_DISRUPT),
    "protected and done": pod(**DO_NOT_DISRUPT, status={"phase": "Succeeded"}),
}

#: For each rule the pods for which it holds.
HOLDS: dict[str, tuple[Callable[[Pod], bool], set[str]]] = {
    "terminal": (
        pods.terminal,
        {"failed", "succeeded", "failed, of a StatefulSet", "protected and done"},
    ),
    "terminating": (
        pods.terminating,
        {"terminating", "stuck", "just not stuck", "terminating, of a StatefulSet"},
    ),
    "active": (
        pods.active,
        {"plain", "of a DaemonSet", "of another project's DaemonSet", "of a Node", "tolerates all", "protected"},
    ),
    "reschedulable": (
        pods.reschedulable,
        {"plain", "terminating, of a StatefulSet", "of another project's DaemonSet", "tolerates all", "protected"},
    ),
    "protected": (lambda p: pods.protected(p, NOW), {"protected", "protected and done"}),
    "evictable": (
        lambda p: pods.evictable(p, NOW),
        {"plain", "of a DaemonSet", "of another project's DaemonSet"},
    ),
    "stuck terminating": (lambda p: pods.stuck_terminating(p, NOW), {"stuck"}),
    "drainable": (lambda p: pods.drainable(p, NOW), set(PODS) - {"stuck", "of a Node", "tolerates all"}),
    "waits for eviction": (
        lambda p: pods.waits_for_eviction(p, NOW),
        set(PODS)
        - {"stuck", "of a Node", "tolerates all"}
        - {"failed", "succeeded", "failed, of a StatefulSet", "protected and done"},
    ),
    "of a DaemonSet": (pods.of_daemon_set, {"of a DaemonSet"}),
    "of a StatefulSet": (pods.of_stateful_set, {"terminating, of a StatefulSet", "failed, of a StatefulSet"}),
    "of a Node": (pods.of_node, {"of a Node"}),
    "tolerates disruption": (pods.tolerates_disruption, {"tolerates all"}),
}


@pytest.mark.parametrize("rule", HOLDS)
def test_rule(rule: str) -> None:
    holds, expected = HOLDS[rule]
    assert {name for name, one in PODS.items() if holds(one)} == expected


REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}], "phase": "Pending"}


@pytest.mark.parametrize(
    ("expected", "one"),
    [
        pytest.param(True, pod(status=REFUSED), id="refused by the scheduler"),
        pytest.param(False, pod(status={"phase": "Pending"}), id="not looked at yet"),
        pytest.param(
            False,
            pod(status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            id="gated",
        ),
        pytest.param(
            False,
            pod(status={"conditions": [{"type": "Ready", "status": "False", "reason": "Unschedulable"}]}),
            id="another condition with that reason",
        ),
        pytest.param(False, pod(status=REFUSED, nodeName="n"), id="bound"),
        pytest.param(False, pod(status={**REFUSED, "nominatedNodeName": "n"}), id="preempts others"),
        pytest.param(False, pod(status=REFUSED, owner=DAEMON_SET), id="of a DaemonSet"),
        pytest.param(False, pod(status=REFUSED, owner=NODE), id="of a Node"),
        pytest.param(True, pod(status=REFUSED, owner=STATEFUL_SET), id="of a StatefulSet"),
        pytest.param(False, pod(status=REFUSED, deleted=at(seconds=-5)), id="being deleted"),
        pytest.param(False, pod(status={**REFUSED, "phase": "Failed"}), id="failed"),
        pytest.param(True, pod(status=REFUSED, **TOLERATES_ALL), id="tolerates all"),
        pytest.param(True, pod(status=REFUSED, **DO_NOT_DISRUPT), id="protected"),
    ],
)
def test_provisionable(expected: bool, one: Pod) -> None:
    assert pods.provisionable(one) is expected


def test_a_nomination_counts_as_long_as_its_node_exists() -> None:
    """The kube-scheduler never clears that of a pod with preemptionPolicy Never."""
    one = pod(status={**REFUSED, "nominatedNodeName": "n"}, preemptionPolicy="Never")
    assert not pods.provisionable(one, {"n": object()})
    assert pods.provisionable(one, {"m": object()})


@pytest.mark.parametrize(
    ("value", "started", "expected"),
    [
        ("true", at(days=99), True),
        ("true", None, True),
        ("1h", at(minutes=59), True),
        ("1h", at(minutes=60), False),
        ("1h", None, True),
        ("1h30m", at(minutes=89), True),
        ("1.5h", at(minutes=91), False),
        ("300ms", at(seconds=1), False),
        ("false", at(seconds=1), False),
        ("True", at(seconds=1), False),
        ("", at(seconds=1), False),
        ("0s", None, False),
        ("-1h", None, False),
        ("1d", None, False),
        ("3600", None, False),
    ],
)
def test_protection_is_true_or_a_duration_since_the_start(value: str, started: str | None, expected: bool) -> None:
    status = {"phase": "Running"} | ({"startTime": started} if started else {})
    assert pods.protected(pod(annotations={"karpenter.sh/do-not-disrupt": value}, status=status), NOW) is expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "karpenter.sh/disrupted", "operator": "Exists"}, True),
        ({"key": "karpenter.sh/disrupted"}, True),
        ({"key": "karpenter.sh/disrupted", "operator": "Equal", "value": "x"}, False),
        ({"key": "example.com/other", "operator": "Exists"}, False),
    ],
)
def test_tolerating_the_disruption_taint(toleration: dict[str, str], expected: bool) -> None:
    assert pods.tolerates_disruption(pod(tolerations=[toleration])) is expected


def test_a_toleration_of_a_value_is_for_that_value() -> None:
    taint = Taint(key="team", value="a", effect="NoSchedule")
    assert pods.tolerates(pod(tolerations=[{"key": "team", "value": "a"}]), taint)
    assert not pods.tolerates(pod(tolerations=[{"key": "team", "value": "b"}]), taint)
    assert not pods.tolerates(pod(), taint)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("system-cluster-critical", True), ("system-node-critical", True), ("important", False), ("", False)],
)
def test_critical(name: str, expected: bool) -> None:
    assert pods.critical(pod(priorityClassName=name)) is expected


# --- whose it is ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "owner", "template", "whose"),
    [
        ("ReplicaSet", "web-5d9c7", "5d9c7", " of Deployment web"),
        ("ReplicaSet", "web-5d9c7", "", " of ReplicaSet web-5d9c7"),
        ("ReplicaSet", "5d9c7", "5d9c7", " of ReplicaSet 5d9c7"),
        ("ReplicaSet", "web-5d9c7", "rollouts=5d9c7", " of Rollout web"),
        ("ReplicaSet", "web-5d9c7", "rollouts=other", " of ReplicaSet web-5d9c7"),
        ("StatefulSet", "db", "", " of StatefulSet db"),
        ("", "", "", ""),
    ],
)
def test_a_pod_is_named_with_whose_it_is(kind: str, owner: str, template: str, whose: str) -> None:
    references = [
        {"apiVersion": "v1", "kind": "Other", "name": "no-controller", "uid": "1"},
        {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "2", "controller": True},
    ]
    meta = {"name": "a", "namespace": "default", "ownerReferences": references[: 2 if kind else 1]}
    prefix, _, value = template.rpartition("=")
    label = f"{prefix}-pod-template-hash" if prefix else "pod-template-hash"
    one = decode(Pod, {"metadata": {**meta, "labels": {label: value} if template else {}}})
    assert pods.named(one) == f"pod default/a{whose}"
