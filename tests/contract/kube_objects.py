"""Objects that the tests of the Kube port create, and how they look at them."""

from __future__ import annotations

from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import AlreadyGone, Change, Kube

from .kube_clusters import Cluster

FINALIZER = "kerf.test/holds"
ANOTHER_UID = "00000000-0000-4000-8000-000000000000"
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


# --- manifests --------------------------------------------------------------------------------------------------
def pool(name: str, **meta: Any) -> dict[str, Any]:
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    template = {"spec": {"nodeClassRef": CLASS_REF, "requirements": [requirement]}}
    spec = {"template": template}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, **meta}, "spec": spec}


def claim(name: str, **meta: Any) -> dict[str, Any]:
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    spec = {"nodeClassRef": CLASS_REF, "requirements": [requirement]}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, **meta}, "spec": spec}


def pod_template(label: str, **spec: Any) -> dict[str, Any]:
    """Pods that only fit the node of their own test."""
    containers = [{"name": "main", "image": "example.test/pause", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "metadata": {"labels": {"test": label}},
        "spec": {"nodeSelector": {"test": label}, "containers": containers, **spec},
    }


def pod(name: str, label: str, *, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    template = pod_template(label, **spec)
    meta = {"name": name, "namespace": namespace, "labels": {"app": name, "test": label}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def deployment(name: str, replicas: int) -> dict[str, Any]:
    body = {"replicas": replicas, "selector": {"matchLabels": {"test": name}}, "template": pod_template(name)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _named(name), "spec": body}


def node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    meta = {"name": name, "labels": {"test": name}}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": status}


def budget(name: str, label: str, **spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": {"test": label}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": _named(name), "spec": body}


def _named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}


# --- addresses --------------------------------------------------------------------------------------------------
def claim_ref(name: str) -> Ref:
    return Ref("NodeClaim", "", name)


def pod_ref(name: str, namespace: str = "default") -> Ref:
    return Ref("Pod", namespace, name)


def budget_ref(name: str) -> Ref:
    return Ref("PodDisruptionBudget", "default", name)


# --- looking ----------------------------------------------------------------------------------------------------
def gone(kube: Kube, ref: Ref) -> bool:
    try:
        kube.get(ref)
    except AlreadyGone:
        return True
    return False


def running(kube: Kube, ref: Ref) -> bool:
    status = kube.get(ref).status
    return status.phase == "Running" and any(c.type == "Ready" and c.status == "True" for c in status.conditions)


def start_pod(cluster: Cluster, name: str, label: str, **spec: Any) -> Ref:
    """A pod that runs and is ready."""
    ref = pod_ref(name)
    cluster.kube.create(kinds.POD, pod(name, label, **spec))
    cluster.eventually(lambda: running(cluster.kube, ref))
    return ref


def changes_of(cluster: Cluster, kind: Kind, name: str, since: str, count: int) -> list[Change]:
    """The first changes of one object, in the order in which the watch tells them; bookmarks left out."""
    watch = cluster.kube.watch(kind, since)
    seen: list[Change] = []

    def enough() -> bool:
        seen.extend(c for c in watch.read(0.2) if c.value is not None and c.value.metadata.name == name)
        return len(seen) >= count

    try:
        cluster.eventually(enough)
    finally:
        watch.close()
    return seen
