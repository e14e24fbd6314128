"""Predicates on pods, exactly as the disruption and provisioning rules use them. Source: disruption reference §1.3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from kerf.model.kubernetes.objects import Container, ContainerStatus, Pod, Quantities, Requested
from kerf_api import durations, labels
from kerf_api.resources import Resources, total
from kerf_api.v1.meta import OwnerReference, Taint

DISRUPTED = Taint(key=labels.DISRUPTED_TAINT, effect="NoSchedule")
#: The condition of a pod whose resize its node has not granted.
RESIZE_PENDING = "PodResizePending"
STUCK_AFTER = timedelta(minutes=1)
_CRITICAL = ("system-cluster-critical", "system-node-critical")


def terminal(pod: Pod) -> bool:
    return pod.status.phase in ("Failed", "Succeeded")


def terminating(pod: Pod) -> bool:
    return pod.metadata.deleting


def ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def active(pod: Pod) -> bool:
    return not terminal(pod) and not terminating(pod)


def admitted(pod: Pod) -> bool:
    """Whether the kubelet of its node has accepted a pod: it gives it statuses of its containers then."""
    return pod.status.phase not in ("", "Pending") or _has_containers(pod)


def rejected(pod: Pod) -> bool:
    """Whether the kubelet did not accept a pod that was bound to its node: it failed without ever having containers."""
    return pod.status.phase == "Failed" and not _has_containers(pod)


def _has_containers(pod: Pod) -> bool:
    return bool(pod.status.container_statuses or pod.status.init_container_statuses)


def named(pod: Pod) -> str:
    """The pod for a person, with whose it is: `pod default/web-5d9c7-x2x4k of Deployment web`."""
    owner = workload(pod)
    return f"pod {pod.key} of {owner[0]} {owner[1]}" if owner is not None else f"pod {pod.key}"


def controller(pod: Pod) -> OwnerReference | None:
    """The controller that makes the pod again when it is removed; None when nothing does. Other owners are of no
    help."""
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


#: The labels with the hash of a pod template, which ends the name of a ReplicaSet, by the kind that owns that.
#: Source: Kubernetes, Deployments; Argo Rollouts.
TEMPLATE_HASHES: Final = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash"}


def workload(pod: Pod) -> tuple[str, str] | None:
    """Kind and name of what controls the pod; of a Deployment's or Argo Rollout's that, not its ReplicaSet.
    None: nothing does."""
    owner = controller(pod)
    if owner is None:
        return None
    for kind, label in TEMPLATE_HASHES.items() if owner.kind == "ReplicaSet" else ():
        template = pod.metadata.labels.get(label, "")
        if template and owner.name.endswith(f"-{template}"):
            return kind, owner.name.removesuffix(f"-{template}")
    return owner.kind, owner.name


def _owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    return any(o.api_version == api_version and o.kind == kind for o in pod.metadata.owner_references)


def of_daemon_set(pod: Pod) -> bool:
    return _owned_by(pod, "apps/v1", "DaemonSet")


def of_node(pod: Pod) -> bool:
    """A static (mirror) pod."""
    return _owned_by(pod, "v1", "Node")


def of_stateful_set(pod: Pod) -> bool:
    return _owned_by(pod, "apps/v1", "StatefulSet")


def virtual(pod: Pod) -> bool:
    """One that a CapacityBuffer keeps room for: it exists nowhere but in simulations, and its key is its UID."""
    return labels.BUFFER_FAKE_POD in pod.metadata.annotations and pod.metadata.uid == pod.key


def critical(pod: Pod) -> bool:
    return pod.spec.priority_class_name in _CRITICAL


def tolerates(pod: Pod, taint: Taint) -> bool:
    return any(t.tolerates(taint) for t in pod.spec.tolerations)


def tolerates_disruption(pod: Pod) -> bool:
    return tolerates(pod, DISRUPTED)


def provisionable(pod: Pod, nodes: Mapping[str, object] | None = None) -> bool:
    """Pending, refused by the kube-scheduler, not expected on a node, and no daemon or static pod.

    `nodes` are the Nodes that exist, by name (None: they may all exist). A nomination outlives its node: of a pod
    with preemptionPolicy Never the kube-scheduler never clears it.
    """
    refused = any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in pod.status.conditions)
    expected = pod.status.nominated_node_name
    placed = pod.spec.node_name or (expected and (nodes is None or expected in nodes))
    return refused and not placed and active(pod) and not of_daemon_set(pod) and not of_node(pod)


def unanswered(pod: Pod) -> bool:
    """Whether the scheduler of a pod has neither bound nor refused it; no scheduler takes a gated one."""
    judged = bool(pod.spec.node_name or pod.spec.scheduling_gates or pod.status.nominated_node_name)
    return not judged and active(pod) and all(c.type != "PodScheduled" for c in pod.status.conditions)


def waiting_since(pod: Pod) -> datetime | None:
    """Since when the kube-scheduler has no node for the pod; its creation where the pod does not say."""
    known = [c.last_transition_time for c in pod.status.conditions if c.type == "PodScheduled"]
    return next(iter(known), None) or pod.metadata.creation_timestamp


def expected_on(pod: Pod) -> str:
    """The node on which the kube-scheduler keeps room for a pod that is not bound; empty when there is none."""
    return pod.status.nominated_node_name if not pod.spec.node_name and not terminal(pod) else ""


def place(pod: Pod) -> str:
    """The node that a pod is bound to or, else, expected on."""
    return pod.spec.node_name or expected_on(pod)


def reschedulable(pod: Pod) -> bool:
    """Will want a place elsewhere when its node is removed."""
    alive = active(pod) or (terminating(pod) and of_stateful_set(pod))
    return alive and not of_daemon_set(pod) and not of_node(pod)


def moving(on_node: Iterable[Pod]) -> tuple[str, ...]:
    """Those that will want a place elsewhere when their node is removed (`namespace/name`), sorted."""
    return tuple(sorted(pod.key for pod in on_node if reschedulable(pod)))


def protected(pod: Pod, now: datetime) -> bool:
    """do-not-disrupt holds: `true`, or a positive Go duration that has not passed since the pod started."""
    value = pod.metadata.annotations.get(labels.DO_NOT_DISRUPT)
    if value is None or value == "true":
        return value is not None
    lasts = durations.parse_go(value)
    return lasts is not None and (pod.status.start_time is None or now - pod.status.start_time < lasts)


def protection_ends(pod: Pod) -> tuple[datetime, ...]:
    """When a do-not-disrupt that lasts for some time is over; nothing for any other."""
    lasts = durations.parse_go(pod.metadata.annotations.get(labels.DO_NOT_DISRUPT, ""))
    return () if lasts is None or pod.status.start_time is None else (pod.status.start_time + lasts,)


def next_protection_end(some: Iterable[Pod], now: datetime) -> datetime | None:
    """When the next of these protections is over; None without one."""
    return min((end for pod in some for end in protection_ends(pod) if end > now), default=None)


def evictable(pod: Pod, now: datetime) -> bool:
    return active(pod) and not tolerates_disruption(pod) and not of_node(pod) and not protected(pod, now)


def stuck_terminating(pod: Pod, now: datetime) -> bool:
    """Past its deletion time (which includes the grace period) by a minute."""
    return pod.metadata.deletion_timestamp is not None and now - pod.metadata.deletion_timestamp > STUCK_AFTER


def drainable(pod: Pod, now: datetime) -> bool:
    return not tolerates_disruption(pod) and not stuck_terminating(pod, now) and not of_node(pod)


def waits_for_eviction(pod: Pod, now: datetime) -> bool:
    """Holds up a drain; protected pods do too."""
    return drainable(pod, now) and not terminal(pod)


def must_be_spread(pod: Pod) -> bool:
    """Whether it has a hard topology spread constraint of its own."""
    return any(one.when_unsatisfiable == "DoNotSchedule" for one in pod.spec.topology_spread_constraints)


def claims_devices(pod: Pod) -> bool:
    """Whether it, or a container of it, asks for devices by claim (dynamic resource allocation)."""
    if pod.spec.resource_claims:
        return True
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers:
            if container.resources.claims:
                return True
    return False


# --- requests ---------------------------------------------------------------------------------------------------
def resize_infeasible(pod: Pod) -> bool:
    """Whether its node can never grant the resize that its spec asks for."""
    return next((c.reason == "Infeasible" for c in pod.status.conditions if c.type == RESIZE_PENDING), False)


def reported(pod: Pod) -> tuple[object, ...]:
    """The parts of its status that its requests depend on; none before it is bound, or while the status is silent."""
    status = pod.status
    if not pod.spec.node_name or not (status.container_statuses or status.init_container_statuses or status.resources):
        return ()
    return (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        resize_infeasible(pod),
    )


def requests(pod: Pod) -> Resources:
    """What the pod takes of a node, one of `pods` included.

    Containers and sidecars add up; a plain init container needs its own share beside the sidecars started before it;
    the larger phase counts; pod-level requests override; overhead comes on top. While a bound pod is resized, the most
    of what its spec asks for and its status reports counts; without the spec when the node can never grant it.
    Source: Kubernetes' resource rules, PodRequests of component-helpers.
    """
    resizes = bool(reported(pod))
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses) if resizes else ()
    by_name, infeasible = {status.name: status for status in statuses}, resizes and resize_infeasible(pod)
    sidecars, peak = Resources(), Resources()
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = sidecars + _needs(container, by_name.get(container.name), infeasible)
            peak = peak.maximum(sidecars)
        else:
            peak = peak.maximum(sidecars + _needs(container))
    running = sidecars + total(_needs(c, by_name.get(c.name), infeasible) for c in pod.spec.containers)
    result = running.maximum(peak)
    if pod.spec.resources is not None:
        result = Resources({**result, **_pod_level(pod, result, infeasible)})
    return result + Resources.parse(pod.spec.overhead) + Resources({"pods": 1})


def _needs(container: Container, status: ContainerStatus | None = None, infeasible: bool = False) -> Resources:
    limits = Resources.parse(container.resources.limits)
    own = Resources({**limits, **Resources.parse(container.resources.requests)})
    if status is None or status.resources is None:
        return own
    return _effective(own, status.resources, status.allocated_resources, infeasible)


def _pod_level(pod: Pod, containers: Resources, infeasible: bool) -> Resources:
    """Its own requests. The API server sets those that only a limit is given for, but not in templates."""
    assert pod.spec.resources is not None
    limits = Resources.parse(pod.spec.resources.limits)
    own = Resources.parse(pod.spec.resources.requests)
    alone = {name: limit for name, limit in limits.items() if not containers[name] or name.startswith("hugepages-")}
    own = Resources({**alone, **own})
    if pod.status.resources is None or not pod.spec.node_name:
        return own
    found = _effective(own, pod.status.resources, pod.status.allocated_resources, infeasible)
    return Resources({name: found[name] for name in own})


def _effective(spec: Resources, actual: Requested, allocated: Quantities, infeasible: bool) -> Resources:
    there = Resources.parse(actual.requests).maximum(Resources.parse(allocated))
    return there if infeasible else there.maximum(spec)
