"""The tags of what we launch, and those that a user may not set. Source: AWS provider reference §0 and §2.10."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass

_CLUSTER_TAG = re.compile(r"kubernetes\.io/cluster/[0-9A-Za-z][A-Za-z0-9\-_]*")
_RESTRICTED = frozenset({labels.TAG_NODEPOOL, labels.TAG_EKS_CLUSTER, labels.TAG_NODECLASS, labels.TAG_NODECLAIM})


def restricted(keys: Iterable[str]) -> list[str]:
    """Those tag keys that are ours to set, sorted."""
    return sorted(key for key in keys if key in _RESTRICTED or _CLUSTER_TAG.fullmatch(key))


def launch(node_class: EC2NodeClass, pool_name: str, cluster_name: str) -> dict[str, str]:
    """The tags of an instance and everything that is made with it, keys sorted; ours win over the user's."""
    own = {
        labels.cluster_tag(cluster_name): "owned",
        labels.TAG_NODEPOOL: pool_name,
        labels.TAG_EKS_CLUSTER: cluster_name,
        labels.TAG_NODECLASS: node_class.name,
    }
    return dict(sorted({**node_class.spec.tags, **own}.items()))


def profile(node_class: EC2NodeClass, cluster_name: str, region: str) -> dict[str, str]:
    """The tags of a node class's instance profile, keys sorted."""
    own = {
        labels.cluster_tag(cluster_name): "owned",
        labels.TAG_EKS_CLUSTER: cluster_name,
        labels.TAG_NODECLASS: node_class.name,
        labels.REGION: region,
    }
    return dict(sorted({**node_class.spec.tags, **own}.items()))
