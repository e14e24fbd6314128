"""A world with a difference, made smaller for as long as the difference stays: fewer objects, then fewer fields.

What is left out keeps a manifest valid: entries of lists, and fields that the API lets one leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

from tests.differential.draft import Json

#: A place in a world: keys and list positions from its root.
Path = tuple[str | int, ...]

#: Lists of which nothing need be there.
_LISTS: Final = frozenset(
    [
        "pods",
        "nodes",
        "nodePools",
        "nodeClaims",
        "csiNodes",
        "containerStatuses",
        "daemonSets",
        "instanceTypes",
        "offerings",
        "namespaces",
        "persistentVolumes",
        "persistentVolumeClaims",
        "storageClasses",
        "initContainers",
        "ports",
        "tolerations",
        "taints",
        "startupTaints",
        "topologySpreadConstraints",
        "volumes",
        "allowedTopologies",
        "requirements",
        "matchLabelKeys",
    ]
)
#: Lists that keep one entry.
_SOME: Final = frozenset(
    [
        "nodeSelectorTerms",
        "matchExpressions",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ]
)
#: Fields that may be left out.
_FIELDS: Final = frozenset(
    [
        "affinity",
        "nodeAffinity",
        "podAffinity",
        "podAntiAffinity",
        "nodeSelector",
        "tolerations",
        "topologySpreadConstraints",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "overhead",
        "priority",
        "nominatedNodeName",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "allocatedResources",
        "unschedulable",
        "initContainers",
        "ports",
        "minDomains",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "matchLabelKeys",
        "mismatchLabelKeys",
        "namespaces",
        "namespaceSelector",
        "volumes",
        "limits",
        "minValues",
        "taints",
        "startupTaints",
        "preferencePolicy",
        "minValuesPolicy",
    ]
)
#: Maps whose entries may be left out.
_MAPS: Final = frozenset(("nodeSelector", "limits", "requests"))


def shrunk(world: Json, stays: Callable[[Json], bool], most: int = 2000) -> Json:
    """The smallest world that is found with at most so many trials. What `stays` raises counts as no."""
    left = most
    changed = True
    while changed and left > 0:
        changed = False
        for path in sorted(_removable(world), key=_order):
            if not _there(world, path):
                continue
            smaller = without(world, path)
            left -= 1
            if left > 0 and _holds(stays, smaller):
                world, changed = smaller, True
    return world


def _holds(stays: Callable[[Json], bool], world: Json) -> bool:
    try:
        return stays(world)
    except Exception:
        return False


def _order(path: Path) -> tuple[int, tuple[str, ...]]:
    """Whole objects before their parts, and of a list the last first, so that the other paths stay true."""
    return len(path), tuple(f"{999 - key:03}" if isinstance(key, int) else key for key in path)


def _removable(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, one in value.items():
            if key in _FIELDS or _is_own(path, key) or (path and path[-1] in _MAPS):
                yield (*path, key)
            yield from _removable(one, (*path, key))
    elif isinstance(value, list):
        name = path[-1] if path else ""
        for number, one in enumerate(value):
            if name in _LISTS or (name in _SOME and len(value) > 1):
                yield (*path, number)
            yield from _removable(one, (*path, number))


def _is_own(path: Path, key: str) -> bool:
    """The resources of a whole pod, the weight of a NodePool: elsewhere what is called so must stay."""
    return key in ("resources", "weight") and path[-1:] == ("spec",)


def _there(world: Json, path: Path) -> bool:
    """Whether the path still leads somewhere, and what is there may go: other things have gone meanwhile."""
    parent: Any = None
    value: Any = world
    for key in path:
        parent = value
        if isinstance(value, list):
            if not isinstance(key, int) or key >= len(value):
                return False
        elif not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return len(path) < 2 or path[-2] not in _SOME or not isinstance(parent, list) or len(parent) > 1


def without(world: Json, path: Path) -> Json:
    """A copy that lacks what is at the path."""
    made = deepcopy(world)
    parent: Any = made
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return made
