"""Names of versions before v1, and what became of them. Every module takes old names from here.

Source: the schemas of v1alpha5, v1alpha1 and v1beta1, and the migration guides of the Karpenter documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kerf_api import labels

#: The label of a Provisioner's nodes; a NodePool's have `karpenter.sh/nodepool`.
PROVISIONER_NAME: Final = f"{labels.GROUP}/provisioner-name"
#: A label that documents named and no version had.
INSTANCE_PODS: Final = f"{labels.AWS_GROUP}/instance-pods"
#: The taint of v1beta1 on nodes that are disrupted, with its value.
DISRUPTION_TAINT: Final = (f"{labels.GROUP}/disruption", "disrupting")

KINDS: Final[Mapping[str, str]] = {
    "Provisioner": "NodePool",
    "Machine": "NodeClaim",
    "AWSNodeTemplate": "EC2NodeClass",
}

#: Annotations that have another name now and mean the same.
RENAMED_ANNOTATIONS: Final[Mapping[str, str]] = {
    f"{labels.GROUP}/do-not-evict": labels.DO_NOT_DISRUPT,
    f"{labels.GROUP}/do-not-consolidate": labels.DO_NOT_DISRUPT,
}
#: Fields that v1beta1 had at another place, by kind: the path of then and that of now.
MOVED_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "NodePool": {"spec.disruption.expireAfter": "spec.template.spec.expireAfter"},
}
_TO_THE_CLASS: Final = "move it to spec.kubelet of the EC2NodeClass"
_TO_THE_GROUP: Final = f"write the group without its version: group: {labels.AWS_GROUP}"
#: Fields of v1beta1 whose meaning is in another object or in another form now, and what to do instead.
GONE_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "NodePool": {
        "spec.template.spec.kubelet": _TO_THE_CLASS,
        "spec.template.spec.nodeClassRef.apiVersion": _TO_THE_GROUP,
        "spec.template.spec.resources": "remove it; Kerf computes the resources of each node",
    },
    "NodeClaim": {"spec.kubelet": _TO_THE_CLASS, "spec.nodeClassRef.apiVersion": _TO_THE_GROUP},
}
#: Where v1.0 kept what v1beta1 had in a NodePool's `kubelet`, as JSON.
KUBELET_ANNOTATION: Final = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
#: Annotations that nothing reads any more, and what to do instead.
GONE_ANNOTATIONS: Final[Mapping[str, str]] = {
    KUBELET_ANNOTATION: _TO_THE_CLASS,
    "compatibility.karpenter.sh/v1beta1-nodeclass-reference": "remove it; nodeClassRef is sufficient",
    "compatibility.karpenter.k8s.aws/v1beta1-ubuntu": "remove it, and select images by amiSelectorTerms",
    "compatibility.karpenter.k8s.aws/kubelet-drift-hash": "remove it",
    f"{labels.GROUP}/provisioner-hash": "remove it",
    f"{labels.AWS_GROUP}/nodetemplate-hash": "remove it",
    f"{labels.GROUP}/linked": "remove it",
    f"{labels.GROUP}/emptiness-timestamp": "remove it",
}


def field_advice(kind: str, path: str) -> str:
    """Return what to do with a field of v1beta1 in an object of v1; empty for any other field."""
    place = MOVED_FIELDS.get(kind, {}).get(path)
    return f"v1beta1 had it here: move it to {place}" if place else GONE_FIELDS.get(kind, {}).get(path, "")
