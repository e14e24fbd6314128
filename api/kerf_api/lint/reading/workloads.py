"""What the linter needs to know of workloads that are beside NodePools: where their pods may be placed.

Pods come as themselves or as templates of Deployments and the like; they are not validated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kerf_api.lint.problem import Steps
from kerf_api.lint.reading.reading import entries, part

#: Where the pod's spec lies, by kind.
_POD_SPECS: Final[Mapping[str, Steps]] = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"),
        ("spec", "template", "spec"),
    ),
}


@dataclass(frozen=True, slots=True)
class Toleration:
    """One toleration of a pod; empty texts match anything."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Mapping[str, Any]) -> bool:
        """Whether a pod with it may go where the taint is. Source: Kubernetes, taints and tolerations."""
        if self.effect and self.effect != taint.get("effect"):
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.get("key") and (self.operator == "Exists" or self.value == (taint.get("value") or ""))


def pod_spec(manifest: Mapping[str, Any]) -> Steps | None:
    """The place of the pod's spec in a workload; None for what makes no pods."""
    place = _POD_SPECS.get(str(manifest.get("kind")))
    return place if place is not None and isinstance(part(manifest, *map(str, place)), dict) else None


def tolerations(manifest: Mapping[str, Any]) -> Iterator[Toleration]:
    """The tolerations of a workload's pods."""
    place = pod_spec(manifest)
    if place is None:
        return
    for _, entry in entries(manifest, *map(str, place), "tolerations"):
        key, operator, value, effect = (str(entry.get(n) or "") for n in ("key", "operator", "value", "effect"))
        yield Toleration(key, operator or "Equal", value, effect)
