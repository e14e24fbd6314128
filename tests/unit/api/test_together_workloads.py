"""Which pods no NodePool of the files can host, and which PodDisruptionBudgets hold nodes for ever."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.lint import together

from .manifests import ABSENT, NODEPOOL, placed

OPEN = placed(placed(NODEPOOL, "spec.template.spec.taints", []), "spec.template.spec.requirements", [])
TAINTED = placed(placed(NODEPOOL, "metadata.name", "batch"), "spec.template.spec.requirements", [])
GRACELESS = placed(OPEN, "spec.template.spec.terminationGracePeriod", ABSENT)
TOLERATES = {"key": "example.com/batch", "operator": "Exists"}


def deployment(**spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "app", "image": "app"}], **spec}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    named = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named, "spec": {"template": template}}


def budget(**spec: Any) -> dict[str, Any]:
    named = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": named, "spec": spec}


def sized(cpu: str) -> dict[str, Any]:
    return deployment(containers=[{"name": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}])


def affine(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return deployment(affinity={"nodeAffinity": required})


def wanting(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def told(rule: str, *manifests: dict[str, Any]) -> list[str]:
    return [f"{p.path}: {p.message}" for problems in together(manifests) for p in problems if p.rule == rule]


@pytest.mark.parametrize(
    ("workload", "path", "why"),
    [
        (deployment(nodeSelector={"team": "a"}), "nodeSelector", "default: label team; batch: taint example.com/batch"),
        (
            deployment(nodeSelector={"kubernetes.io/arch": "riscv64"}),
            "nodeSelector",
            "no instance type has these labels",
        ),
        (deployment(nodeSelector={"karpenter.sh/nodepool": "othr"}), "nodeSelector", "label karpenter.sh/nodepool"),
        (sized("2000"), "containers[0].resources.requests", "no instance type that it allows has so much cpu"),
        (affine(wanting("team", "a"), wanting("team", "b")), "nodeSelector", "label team"),
    ],
)
def test_pods_without_a_place(workload: dict[str, Any], path: str, why: str) -> None:
    pools = [OPEN, TAINTED] if "batch" in why else [TAINTED, OPEN]
    (found,) = told("KERF-SET-315", *pools, workload)
    assert why in found


@pytest.mark.parametrize(
    "workload",
    [
        deployment(),
        sized("90"),
        deployment(nodeSelector={"topology.kubernetes.io/zone": "us-east-1a"}),
        deployment(nodeSelector={"beta.kubernetes.io/arch": "arm64"}),
        affine(wanting("team", "a"), wanting("karpenter.sh/nodepool", "default")),
        deployment(nodeSelector={"eks.amazonaws.com/nodegroup": "system", "team": "x"}),
        deployment(nodeName="ip-10-0-0-1", nodeSelector={"team": "x"}),
        deployment(schedulerName="mine", nodeSelector={"team": "x"}),
        {**deployment(nodeSelector={"team": "x"}), "kind": "DaemonSet"},
        affine({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}),
        affine({"matchExpressions": [{"key": "team", "operator": "Near", "values": ["x"]}]}),
    ],
)
def test_pods_that_may_have_a_place_or_are_meant_for_other_nodes(workload: dict[str, Any]) -> None:
    assert told("KERF-SET-315", OPEN, workload) == []


def test_a_toleration_opens_the_pool_that_is_left() -> None:
    assert told("KERF-SET-315", TAINTED, deployment()) != []
    assert told("KERF-SET-315", TAINTED, deployment(tolerations=[TOLERATES])) == []


def test_a_static_pool_hosts_pods_too_and_without_pools_nothing_is_said() -> None:
    static = placed(placed(OPEN, "spec.replicas", 3), "spec.template.metadata.labels[team]", "x")
    assert told("KERF-SET-315", static, deployment(nodeSelector={"team": "x"})) == []
    assert told("KERF-SET-315", deployment(nodeSelector={"team": "x"})) == []


WEB = {"selector": {"matchLabels": {"app": "web"}}}


@pytest.mark.parametrize(
    ("spec", "replicas", "field"),
    [
        ({"maxUnavailable": 0}, None, "spec.maxUnavailable"),
        ({"maxUnavailable": "0%"}, None, "spec.maxUnavailable"),
        ({"minAvailable": "100%"}, None, "spec.minAvailable"),
        ({"minAvailable": 3, **WEB}, 3, "spec.minAvailable"),
        ({"minAvailable": 2, **WEB}, 3, ""),
        ({"minAvailable": 3, **WEB}, None, ""),
        ({"minAvailable": 3, "selector": {"matchLabels": {"app": "other"}}}, 3, ""),
        ({"minAvailable": 3, **WEB}, 0, ""),
        ({"maxUnavailable": 1}, 1, ""),
        ({"maxUnavailable": False}, 1, ""),
        ({}, 1, ""),
    ],
)
def test_a_budget_that_lets_no_pod_go(spec: dict[str, Any], replicas: int | None, field: str) -> None:
    web = deployment() if replicas is None else placed(deployment(), "spec.replicas", replicas)
    found = told("KERF-SET-316", GRACELESS, web, budget(**spec))
    assert [row.split(":")[0] for row in found] == [field] * bool(field)
    assert told("KERF-SET-316", OPEN, web, budget(**spec)) == []
