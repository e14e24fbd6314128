"""Manifests for worlds in the sandbox, from short forms: a node class, NodePools, Deployments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def node_class() -> dict[str, Any]:
    """An EC2NodeClass named `default` that selects what every sandbox has."""
    selector = [{"tags": {"karpenter.sh/discovery": "sandbox"}}]
    spec = {
        "role": "KerfNodeRole-sandbox",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    kind = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}
    return {**kind, "metadata": {"name": "default"}, "spec": spec}


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
    """A Deployment from its short form: `replicas`, `cpu`, `memory`, `annotations`, and anything of a pod spec."""
    requests = {"cpu": str(given.get("cpu", "500m")), "memory": given.get("memory", "512Mi")}
    spec = {k: v for k, v in given.items() if k not in ("replicas", "cpu", "memory", "annotations")}
    app = {"app": name}
    pod = {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}], **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": given.get("replicas", 1),
            "selector": {"matchLabels": app},
            "template": {"metadata": {"labels": app, "annotations": given.get("annotations", {})}, "spec": pod},
        },
    }
