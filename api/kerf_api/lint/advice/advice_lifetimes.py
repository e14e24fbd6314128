"""Advice about how long nodes of a NodePool live, how many there may be, and who decides.

What is missing here is legal and common; it shows on the day when a deployment runs wild or a pod refuses to go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import labels
from kerf_api.durations import NEVER
from kerf_api.lint import nearest
from kerf_api.lint.advice.requirement_advice import Known
from kerf_api.lint.problem import Problem, at, shown
from kerf_api.lint.reading.reading import amount, mapping, part

_TEMPLATE: Final = ("spec", "template", "spec")
_LIMITS: Final = ("spec", "limits")
_MIB: Final = 2**20
#: The resources without a domain that a node, or a NodePool, can have.
_RESOURCES: Final = frozenset({"cpu", "ephemeral-storage", "memory", "nodes", "pods"})
_FAMILIES: Final = ("hugepages-", "attachable-volumes-")
#: Names that look like another resource than the one that is meant.
_MEANT: Final[Mapping[str, str]] = {
    "core": "cpu",
    "cores": "cpu",
    "disk": "ephemeral-storage",
    "gpu": "nvidia.com/gpu",
    "gpus": "nvidia.com/gpu",
    "storage": "ephemeral-storage",
    "vcpu": "cpu",
    "vcpus": "cpu",
}


def check(known: Known) -> Iterator[Problem]:
    """Advice about a NodePool's lifetimes and limits."""
    yield from _forced(known.manifest)
    yield from _strange_resources(mapping(known.manifest, *_LIMITS))
    if part(known.manifest, "spec", "replicas") is None:
        yield from _limits(known)


def _forced(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Expiration without a deadline waits forever for a pod that may not be evicted.

    Information only: this is the default of Karpenter, which most manifests repeat.
    """
    expires = part(manifest, *_TEMPLATE, "expireAfter")
    if expires == NEVER or part(manifest, *_TEMPLATE, "terminationGracePeriod") is not None:
        return
    message = f"nodes expire after {expires}, but a pod that may not be evicted blocks one forever"
    hint = "add terminationGracePeriod, 24h for example: then such a pod is deleted at the end of that time"
    yield at((*_TEMPLATE, "expireAfter"), "KERF-NP-341", "info", message, hint, expires)


def _limits(known: Known) -> Iterator[Problem]:
    limits = mapping(known.manifest, *_LIMITS)
    if not limits:
        message = "the NodePool has no limits; a runaway workload costs money until an operator notices"
        yield at(_LIMITS, "KERF-NP-342", "warning", message, 'add limits, {cpu: "1000"} for example')
        return
    for resource, key, unit in (("cpu", "instance-cpu", 1), ("memory", "instance-memory", _MIB)):
        limit = amount(limits.get(resource))
        values = known.types.values(f"{labels.AWS_GROUP}/{key}").items()
        sizes = [int(size) * unit for size, having in values if having & known.left]
        if limit == 0:
            yield at(
                (*_LIMITS, resource), "KERF-NP-344", "info", "a limit of 0 stops the NodePool: no node is launched"
            )
        elif limit is not None and sizes and not known.factless and limit < min(sizes):
            message = (
                f"the limit is below the smallest instance type that is allowed, which has {_size(min(sizes), unit)}"
            )
            hint = "the NodePool launches one node at most; raise the limit, or allow smaller types"
            yield at((*_LIMITS, resource), "KERF-NP-343", "warning", message, hint, limits[resource])


def _strange_resources(limits: Mapping[str, Any]) -> Iterator[Problem]:
    """A resource of a device has a domain; any other name is Kubernetes' own, and these are known."""
    for name, value in limits.items():
        if "/" in name or name in _RESOURCES or name.startswith(_FAMILIES):
            continue
        close = _MEANT.get(name.lower()) or nearest.name(name, _RESOURCES)
        hint = (
            f"did you mean {close}?" if close else f"there are {', '.join(sorted(_RESOURCES))}, and names with a domain"
        )
        message = f"{shown(name)} is no resource of a node, so this limits nothing"
        yield at((*_LIMITS, name), "KERF-NP-345", "warning", message, hint, value)


def _size(size: int, unit: int) -> str:
    return f"{size} vCPU{'' if size == 1 else 's'}" if unit == 1 else f"{size // _MIB} Mi"
