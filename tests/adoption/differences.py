"""What became of objects: every field that is another one than before, by its place, and the reasons for some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

#: Every field that Kerf writes on what it takes over while nothing changes, by kind; and why.
EXPLAINED: Final = {
    "EC2NodeClass": {
        "metadata.annotations.karpenter.k8s.aws/ec2nodeclass-hash": "hashed as v6 from now on",
        "metadata.annotations.karpenter.k8s.aws/ec2nodeclass-hash-version": "v5 is never compared",
    },
    "NodePool": {
        "status.conditions.BudgetsValid": "a condition of Kerf's own",
        "status.conditions.UpToDate": "a condition of Kerf's own: what a roll-out waits for",
        "status.nodes": "counted anew: nobody did since it was left",
        "status.resources": "summed up anew",
    },
    "NodeClaim": {
        "metadata.annotations.karpenter.k8s.aws/ec2nodeclass-hash": "re-stamped with the hash of its class",
        "metadata.annotations.karpenter.k8s.aws/ec2nodeclass-hash-version": "so that the two can be compared again",
        "status.lastPodEventTime": "pods were added or removed while no controller watched",
        "status.conditions.Consolidatable": "gone for as long as that is less than consolidateAfter ago",
        "status.conditions.ConsistentStateFound": "of a node that Karpenter had not come to compare",
    },
    "Node": {},
}
#: What the API server itself changes with every write.
_BOOKKEEPING: Final = frozenset({"metadata.resourceVersion", "metadata.managedFields"})


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """(object, place, value before, value after) of objects by name; None: it was not there. Conditions go by type."""
    for name in sorted({*before, *after}):
        for place, old, new in _of(before.get(name), after.get(name), ""):
            if place not in _BOOKKEEPING:
                yield name, place, old, new


def unexplained(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """Those for which there is no reason."""
    for name, place, old, new in differences(before, after):
        if not place.startswith(tuple(EXPLAINED[name.partition("/")[0]])):
            yield name, place, old, new


def _of(old: Any, new: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _of(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif place == "status.conditions":
        yield from _of(_by_type(old), _by_type(new), place)
    else:
        yield place, old, new


def _by_type(conditions: Any) -> dict[str, Any]:
    return {one["type"]: one for one in conditions or ()}
