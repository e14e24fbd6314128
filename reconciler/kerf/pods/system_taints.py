"""Taints that no workload should tolerate to get a place: of system nodes, of a node's start and of its end.

Sources: Kubernetes, "Well-Known Labels, Annotations and Taints"; the documentation of Cluster Autoscaler, the AWS node
termination handler, the EBS and EFS CSI drivers and Cilium; EKS user guide, "AWS Fargate".
"""

from __future__ import annotations

from typing import Final

from kerf_api import labels
from kerf_api.v1.meta import Taint

_KEYS: Final = frozenset(
    {
        "CriticalAddonsOnly",
        "DeletionCandidateOfClusterAutoscaler",
        "ToBeDeletedByClusterAutoscaler",
        "eks.amazonaws.com/compute-type",
        "node.alpha.kubernetes.io/unreachable",
    }
)
#: Domains of taints: before the slash, with what follows.
_PREFIXES: Final = (
    "aws-node-termination-handler/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "karpenter.k8s.aws/",
    "karpenter.sh/",
    "kerf.sh/",
    "node-role.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    labels.READINESS_TAINT_PREFIX,
)
#: Agents remove such taints from a node when they are ready there.
_SUFFIXES: Final = ("/agent-not-ready", "/not-ready", "/uninitialized", "/network-unavailable")


def is_system(taint: Taint) -> bool:
    """Whether the taint keeps workloads off system nodes, or is part of a node's start or end."""
    key = taint.key
    return key in _KEYS or key.startswith(_PREFIXES) or key.endswith(_SUFFIXES)
