"""Small valid manifests, and a way to change one field of them by its path."""

from __future__ import annotations

import copy
from typing import Any, Final

from kerf_api.lint.rulebook.paths import steps


class _Absent:
    """The field is left out. Its text is always the same, so that every test process gives a case the same name."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()

NODE_CLASS_REF: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

NODEPOOL: Final[dict[str, Any]] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "metadata": {"labels": {}},
            "spec": {
                "nodeClassRef": NODE_CLASS_REF,
                "requirements": [{"key": "example.com/team", "operator": "In", "values": ["a"]}],
                "taints": [{"key": "example.com/batch", "effect": "NoSchedule"}],
                "terminationGracePeriod": "24h",
            },
        },
        "limits": {"nodes": "100"},
        "disruption": {"budgets": [{"nodes": "10%"}]},
    },
}
NODECLAIM: Final[dict[str, Any]] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "default-x7k2p"},
    "spec": {
        "nodeClassRef": NODE_CLASS_REF,
        "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["default"]}],
        "resources": {"requests": {"cpu": "1"}},
    },
}
EC2NODECLASS: Final[dict[str, Any]] = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "example",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"discovery": "example"}}],
        "securityGroupSelectorTerms": [{"tags": {"discovery": "example"}}],
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {"volumeSize": "20Gi"}}],
    },
}
NODEOVERLAY: Final[dict[str, Any]] = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "NodeOverlay",
    "metadata": {"name": "default"},
    "spec": {
        "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m7i"]}],
        "priceAdjustment": "-10%",
    },
}
CAPACITYBUFFER: Final[dict[str, Any]] = {
    "apiVersion": "autoscaling.x-k8s.io/v1beta1",
    "kind": "CapacityBuffer",
    "metadata": {"name": "default", "namespace": "default"},
    "spec": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "percentage": 10},
}
BASES: Final = {
    "NodePool": NODEPOOL,
    "NodeClaim": NODECLAIM,
    "EC2NodeClass": EC2NODECLASS,
    "NodeOverlay": NODEOVERLAY,
    "CapacityBuffer": CAPACITYBUFFER,
}


def changed(kind: str, path: str, value: Any) -> dict[str, Any]:
    """The kind's manifest with `value` at `path`, or without that field when the value is ABSENT."""
    return placed(BASES[kind], path, value)


def placed(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the manifest with `value` at `path`, or without that field when the value is ABSENT."""
    manifest = copy.deepcopy(base)
    *way, last = steps(path)
    place: Any = manifest
    for step in way:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ABSENT:
        place.pop(last, None)
    else:
        place[last] = copy.deepcopy(value)
    return manifest
