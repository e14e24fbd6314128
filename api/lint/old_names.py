"""Names that older versions used and nobody reads any more: annotations, labels and kinds.

The API server takes them without a word, and what they asked for does not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import labels

from .problem import Problem, Steps, at, shown
from .reading import entries, mapping, part
from .workloads import pod_spec

_EVICT: Final = "karpenter.sh/do-not-evict"
_ANNOTATIONS: Final[Mapping[str, str]] = {
    _EVICT: f"write {labels.DO_NOT_DISRUPT}",
    "karpenter.sh/do-not-consolidate": f"write {labels.DO_NOT_DISRUPT}",
    "compatibility.karpenter.sh/v1beta1-kubelet-conversion": "move it to spec.kubelet of the EC2NodeClass",
    "compatibility.karpenter.sh/v1beta1-nodeclass-reference": "remove it; nodeClassRef says it all",
    "compatibility.karpenter.k8s.aws/v1beta1-ubuntu": "remove it, and select images by amiSelectorTerms",
    "compatibility.karpenter.k8s.aws/kubelet-drift-hash": "remove it",
    "karpenter.sh/provisioner-hash": "remove it",
    "karpenter.k8s.aws/nodetemplate-hash": "remove it",
}
_PROVISIONER: Final = "karpenter.sh/provisioner-name"
_KINDS: Final[Mapping[str, str]] = {
    "Provisioner": "NodePool",
    "Machine": "NodeClaim",
    "AWSNodeTemplate": "EC2NodeClass",
}


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every old name in a manifest of any kind."""
    group = str(manifest.get("apiVersion")).partition("/")[0]
    kind = str(manifest.get("kind"))
    if group in (labels.GROUP, labels.AWS_GROUP) and kind in _KINDS:
        message = f"{kind} is a kind of older versions; nothing reads it any more"
        hint = f"kerf convert makes a {_KINDS[kind]} of it"
        yield at(("kind",), "KERF-OLD-303", "warning", message, hint, kind)
    for place in (
        ("metadata",),
        ("spec", "template", "metadata"),
        ("spec", "jobTemplate", "spec", "template", "metadata"),
    ):
        yield from _annotations(manifest, place)
    spec = pod_spec(manifest)
    if spec is not None:
        yield from _selectors(manifest, tuple(map(str, spec)))


def _annotations(manifest: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Problem]:
    for key in mapping(manifest, *place, "annotations"):
        if key in _ANNOTATIONS:
            message = f"{shown(key)} is an annotation of older versions; nothing reads it any more"
            yield at((*place, "annotations", key), "KERF-OLD-301", "warning", message, _ANNOTATIONS[key], key)


def _selectors(manifest: Mapping[str, Any], spec: tuple[str, ...]) -> Iterator[Problem]:
    """Pods that ask for the label of a Provisioner stay pending for ever."""
    places: list[Steps] = []
    if _PROVISIONER in mapping(manifest, *spec, "nodeSelector"):
        places.append((*spec, "nodeSelector", _PROVISIONER))
    affinity = (*spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for steps, _ in entries(manifest, *affinity, "nodeSelectorTerms"):
        expressions = part(manifest, *affinity, "nodeSelectorTerms")[steps[-1]].get("matchExpressions")
        for index, expression in enumerate(expressions if isinstance(expressions, list) else ()):
            if isinstance(expression, dict) and expression.get("key") == _PROVISIONER:
                places.append((*steps, "matchExpressions", index, "key"))
    for place in places:
        message = f"no node has the label {_PROVISIONER} any more; pods that ask for it stay pending"
        yield at(place, "KERF-OLD-302", "warning", message, f"write {labels.NODEPOOL}", _PROVISIONER)
