"""The workloads of a scenario as manifests, and their replicas over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf.simulating.scenario import Replicas, Workload
from kerf_api.lint.reading.stored import stored

#: The requests of a workload without containers of its own.
_CPU: Final = "500m"
_MEMORY: Final = "512Mi"


def manifests(workload: Workload) -> Iterator[dict[str, Any]]:
    """The namespace, the Deployment, and the PodDisruptionBudget if there is one."""
    meta, app = {"name": workload.name, "namespace": workload.namespace}, {"app": workload.name}
    if workload.namespace != "default":
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workload.namespace}}
    template = {
        "metadata": {"labels": app, "annotations": workload.annotations},
        "spec": {**workload.pod, "containers": containers(workload)},
    }
    template = stored(template)
    spec = {"replicas": workload.replicas, "selector": {"matchLabels": app}, "template": template}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    if workload.pod_disruption_budget:
        budget = {"selector": {"matchLabels": app}, **stored(workload.pod_disruption_budget)}
        yield {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget}


def containers(workload: Workload) -> list[Any]:
    """The containers of a pod: those of `pod`, the first one with the workload's requests, or one named main."""
    first, *others = workload.pod.get("containers") or [
        {"name": "main", "image": "main", "resources": {"requests": {"cpu": _CPU, "memory": _MEMORY}}}
    ]
    if own := requests(workload):
        resources = first.get("resources") or {}
        first = {**first, "resources": {**resources, "requests": {**(resources.get("requests") or {}), **own}}}
    return [first, *others]


def requests(workload: Workload) -> dict[str, str]:
    """The requests that a workload states beside its containers."""
    given = (("cpu", workload.cpu), ("memory", workload.memory))
    return {resource: str(amount) for resource, amount in given if amount is not None}


def rows(workload: Workload, files: Mapping[str, tuple[Replicas, ...]]) -> tuple[Replicas, ...]:
    """The changes of the replicas, those of its CSV file included."""
    return (*files.get(workload.replicas_file, ()), *workload.over_time)
