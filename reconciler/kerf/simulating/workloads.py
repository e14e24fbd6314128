"""The workloads of a scenario as manifests, and their replicas over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.simulating.scenario import Replicas, Workload


def manifests(workload: Workload) -> Iterator[dict[str, Any]]:
    """The namespace, the Deployment, and the PodDisruptionBudget if there is one."""
    meta, app = {"name": workload.name, "namespace": workload.namespace}, {"app": workload.name}
    if workload.namespace != "default":
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workload.namespace}}
    requests = {"cpu": str(workload.cpu), "memory": str(workload.memory)}
    containers = [{"name": "main", "image": "main", "resources": {"requests": requests}}]
    template = {
        "metadata": {"labels": app, "annotations": workload.annotations},
        "spec": {"containers": containers, **workload.pod},
    }
    spec = {"replicas": workload.replicas, "selector": {"matchLabels": app}, "template": template}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    if workload.pod_disruption_budget:
        budget = {"selector": {"matchLabels": app}, **workload.pod_disruption_budget}
        yield {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget}


def rows(workload: Workload, files: Mapping[str, tuple[Replicas, ...]]) -> tuple[Replicas, ...]:
    """The changes of the replicas, those of its CSV file included."""
    return (*files.get(workload.replicas_file, ()), *workload.over_time)
