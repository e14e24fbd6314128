"""The rules of one kubelet: admission of pods to its node, and resizes of pods in place.

Source: Kubernetes, "Resize CPU and Memory Resources assigned to Containers"; packages lifecycle and allocation of the
kubelet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.sandbox.scheduling import node_rules, pod_requests
from kerf.sandbox.scheduling.pod_requests import Amounts, Manifest

PENDING = "PodResizePending"
INFEASIBLE, DEFERRED = "Infeasible", "Deferred"
_LISTS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


def rejection(pod: Manifest, node: Manifest, others: Iterable[Manifest]) -> str:
    """Why the kubelet does not run a pod beside those that it runs already; empty if it does."""
    spec, meta, running = pod["spec"], node["metadata"], tuple(others)
    if not node_rules.selected(spec, meta["name"], meta.get("labels") or {}):
        return "NodeAffinity"
    taken = (port for other in running for port in node_rules.host_ports(other["spec"]))
    if node_rules.ports_clash(node_rules.host_ports(spec), taken):
        return "NodePorts"
    allocatable = _allocatable(node)
    if len(running) + 1 > allocatable.get("pods", 0):
        return "OutOfpods"
    missing = _missing(pod_requests.incoming(pod), allocatable, running)
    return f"OutOf{missing}" if missing else ""


def allocated(pod: Manifest) -> dict[str, Any]:
    """The part of the status that says that the containers have the resources of the spec."""
    return {
        status: [_state(one) for one in pod["spec"].get(containers) or () if _runs(containers, one)]
        for containers, status in _LISTS
        if pod["spec"].get(containers)
    }


def resized(old: Manifest, new: Manifest) -> bool:
    """Whether the spec asks for other resources than before."""
    return any(
        [one.get("resources") for one in old["spec"].get(containers) or ()]
        != [one.get("resources") for one in new["spec"].get(containers) or ()]
        for containers, _ in _LISTS
    )


def obstacle(pod: Manifest, node: Manifest, others: Iterable[Manifest]) -> str:
    """Why a resize has to wait: for ever, for other pods to be removed, or (empty) not at all."""
    wanted, allocatable = pod_requests.incoming(pod), _allocatable(node)
    if _missing(wanted, allocatable, ()):
        return INFEASIBLE
    return DEFERRED if _missing(wanted, allocatable, others) else ""


def _missing(wanted: Amounts, allocatable: Amounts, others: Iterable[Manifest]) -> str:
    """The first resource of which the others leave too little."""
    used = [pod_requests.bound(other) for other in others]
    short = (n for n, v in wanted.items() if v > allocatable.get(n, 0) - sum(one.get(n, 0) for one in used))
    return next(short, "")


def _allocatable(node: Manifest) -> Amounts:
    return pod_requests.amounts((node.get("status") or {}).get("allocatable"))


def _runs(containers: str, container: Manifest) -> bool:
    return containers == "containers" or pod_requests.restarts(container)


def _state(container: Manifest) -> dict[str, Any]:
    resources: Mapping[str, Any] = container.get("resources") or {}
    requests = {"allocatedResources": resources["requests"]} if resources.get("requests") else {}
    return {"name": container["name"], **requests, "resources": dict(resources)}
