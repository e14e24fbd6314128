"""Manifests for worlds, sandboxes or real control planes, from short forms: a node class, NodePools, workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def node_class(
    name: str = "default", *, role: str = "KerfNodeRole-sandbox", cluster: str = "sandbox"
) -> dict[str, Any]:
    """An EC2NodeClass that selects what is tagged as the cluster's; by default what every sandbox has."""
    selector = [{"tags": {"karpenter.sh/discovery": cluster}}]
    spec = {
        "role": role,
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    kind = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def node_pool(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A NodePool from its short form: `requirements`, `taints`, `labels`, …, `disruption`, `limits`, `weight`,
    `replicas`."""
    wide = [{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}]
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [*(given.get("requirements") or wide), *given.get("also", [])],
        **{k: given[k] for k in ("taints", "startupTaints", "expireAfter", "terminationGracePeriod") if k in given},
    }
    template = {"metadata": {"labels": given.get("labels", {})}, "spec": spec}
    rest = {k: given[k] for k in ("disruption", "limits", "weight", "replicas") if k in given}
    kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    return {**kind, "metadata": {"name": name}, "spec": {"template": template, **rest}}


def deployment(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A Deployment from its short form: `replicas`, `cpu`, `memory`, `annotations`, `alone` (one on a node at most),
    and anything of a pod spec."""
    return _workload("Deployment", name, given, replicas=given.get("replicas", 1))


def stateful_set(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A StatefulSet from the same short form; each pod has a volume of the class `gp3`."""
    spec = {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"], "resources": {}}
    claims = [{"metadata": {"name": "data"}, "spec": spec}]
    more = {"serviceName": name, "volumeClaimTemplates": claims}
    return _workload("StatefulSet", name, given, replicas=given.get("replicas", 1), **more)


def daemon_set(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A DaemonSet from the same short form, without `replicas`."""
    return _workload("DaemonSet", name, {"cpu": "50m", "memory": "32Mi", **given})


def storage_class() -> dict[str, Any]:
    """The class `gp3`: EBS volumes, in the zone of the node to which the scheduler binds the first pod."""
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3"}}
    return {**kind, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}


_OWN_WORDS = ("replicas", "cpu", "memory", "annotations", "alone")


def _workload(kind: str, name: str, given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    requests = {"cpu": str(given.get("cpu", "500m")), "memory": given.get("memory", "512Mi")}
    app = {"app": name}
    pod: dict[str, Any] = {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}]}
    pod |= {k: v for k, v in given.items() if k not in _OWN_WORDS}
    if given.get("alone"):
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": app}}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": app, "annotations": given.get("annotations", {})}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**more, "selector": {"matchLabels": app}, "template": template},
    }
