"""Karpenter's Deployment and ServiceAccount as tests of `kerf migrate check` have them, and its answers by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Manifest = dict[str, Any]
ENVIRONMENT: Final = {
    "KUBERNETES_MIN_VERSION": "1.19.0-0",
    "KARPENTER_SERVICE": "karpenter",
    "CLUSTER_NAME": "adoption",
    "CLUSTER_ENDPOINT": "https://adoption.example.internal",
    "INTERRUPTION_QUEUE": "adoption",
    "FEATURE_GATES": "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,StaticCapacity=false",
    "BATCH_MAX_DURATION": "10s",
    "MEMORY_LIMIT": "1073741824",
    "AMI_REFRESH_INTERVAL": "1m",
    "SUBNET_REFRESH_INTERVAL": "1m",
    "AWS_REGION": "us-west-2",
}


def karpenter(environment: Mapping[str, str] = ENVIRONMENT, **container: Any) -> Manifest:
    """Its Deployment, as the chart of 1.14.1 has it."""
    rows: list[Manifest] = [{"name": name, "value": text} for name, text in environment.items()]
    rows.append({"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}})
    image = "public.ecr.aws/karpenter/controller:1.14.1@sha256:0123"
    own = {"name": "controller", "image": image, "env": rows, **container}
    pod = {"serviceAccountName": "karpenter", "containers": [own]}
    metadata = {"name": "karpenter", "namespace": "kube-system"}
    spec = {"replicas": 2, "template": {"spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def account(**annotations: str) -> Manifest:
    metadata = {"name": "karpenter", "namespace": "kube-system", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def one(objects: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    return next(o for o in objects if o["kind"] == kind and name in ("", o["metadata"]["name"]))


def lines(text: str, *words: str) -> list[str]:
    """The lines that hold all of these words."""
    return [line for line in text.splitlines() if all(word in line for word in words)]
