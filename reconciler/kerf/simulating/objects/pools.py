"""NodePools that can never have a node in their world: without their EC2NodeClass, or without an offering."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from kerf.ec2 import families
from kerf.ec2.instance_types import type_labels
from kerf.model import kinds
from kerf.model.aws.cloud import Region
from kerf.simulating.effects import allowed
from kerf.simulating.reading import BadScenario, Path, missing
from kerf.simulating.reading import steps as path_text
from kerf.simulating.world import Given
from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint.reading.reading import entries, mapping, part
from kerf_api.requirements import Requirement, Requirements
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool

_TEMPLATE: Final = ("spec", "template", "spec")
_LIMITED: Final = ("cpu", "memory", "ephemeral-storage", "pods", "nodes")
#: Labels of nodes that a pod may name, those of Kerf's own nodes included.
_KNOWN: Final = labels.WELL_KNOWN | {labels.HOSTNAME, labels.REGISTERED, labels.INITIALIZED}
#: The likeness of two names from which on one is a slip: other labels of a domain, such as `instance-class`, stay.
_ALIKE: Final = 0.8
#: The operating systems of nodes: types have any of them.
_SYSTEMS: Final = ("linux", "windows")


def require(given: Iterable[Given], classes: Collection[str], region: Region) -> None:
    """Refuse a NodePool that can never have a node. Raises BadScenario.

    `classes` are the names of EC2NodeClasses that the world has at any time.
    """
    offered: list[Requirements] = []
    for one in given:
        if one.kind != kinds.NODE_POOL.name:
            continue
        _require_class(one, classes)
        _require_labels(one)
        _require_limits(one)
        offered = offered or list(_offered(region))
        _require_offering(one, offered)


def _require_class(given: Given, classes: Collection[str]) -> None:
    name = part(dict(given.manifest), *_TEMPLATE, "nodeClassRef", "name")
    if name not in classes:
        words = missing("EC2NodeClass", str(name), classes)
        raise refused(given, (*_TEMPLATE, "nodeClassRef", "name"), f"{words}; its nodes could never be launched")


def _require_labels(given: Given) -> None:
    """Refuse a label of a requirement that looks like a well-known one of the same domain."""
    for steps, entry in entries(dict(given.manifest), *_TEMPLATE, "requirements"):
        if words := near_label(str(entry.get("key", ""))):
            raise refused(given, (*steps, "key"), words)


def near_label(written: str) -> str:
    """The message for a label that looks like a well-known one of the same domain and is none; else empty."""
    key = labels.normalise(written)
    domain, slash, name = key.rpartition("/")
    if not slash or key in _KNOWN:
        return ""
    same = sorted(last for one in labels.WELL_KNOWN for own, _, last in [one.rpartition("/")] if own == domain)
    close = get_close_matches(name, same, n=1, cutoff=_ALIKE)
    return f"no node has the label {key}; did you mean {domain}/{close[0]}?" if close else ""


def _require_limits(given: Given) -> None:
    """Refuse a limit on a resource that no node has."""
    for name in mapping(dict(given.manifest), "spec", "limits"):
        if "/" not in name and name not in _LIMITED and not name.startswith("hugepages-"):
            words = f"{missing('resource', name, _LIMITED)}; this limit would have no effect"
            raise refused(given, ("spec", "limits", name), words)


def _require_offering(given: Given, offered: Iterable[Requirements]) -> None:
    pool: NodePool = decode(NodePool, default(dict(given.manifest)))
    own = pool.requirements()
    if not any(map(own.allowed(labels.OS).has, _SYSTEMS)):
        raise refused(given, (*_TEMPLATE, "requirements"), _absent(own[labels.OS], _SYSTEMS))
    wanted = allowed(pool).without(labels.CAPACITY_TYPE)
    if any(wanted.conflict(one) is None for one in offered):
        return
    for key, row in wanted.items():
        if not any(Requirements((row,)).conflict(one) is None for one in offered):
            known = {value for one in offered if key in one for value in one[key].values}
            raise refused(given, (*_TEMPLATE, "requirements"), _absent(row, known))
    words = "no instance type of this world meets all requirements; change one, or world.zones or world.instanceTypes"
    raise refused(given, (*_TEMPLATE, "requirements"), words)


def _absent(row: Requirement, known: Collection[str]) -> str:
    """The message for a requirement that no offering meets."""
    if row.complement or not row.values:
        return f"no instance type of this world meets {row}; change it, or world.zones or world.instanceTypes"
    return f"{row}: {missing('value', min(row.values), known)}"


def _offered(region: Region) -> Iterator[Requirements]:
    """The labels of each instance type in the zones that offer it."""
    for name, info in region.types.items():
        if zones := dict.fromkeys(region.zones_by_type.get(name, ()), ""):
            yield type_labels.requirements(info, families.AL2023, region.name, zones)


def refused(given: Given, steps: Path, words: str) -> BadScenario:
    """The error with the place of the object, and the path in it."""
    manifest: Mapping[str, Any] = given.manifest
    name = f"{given.kind} {part(dict(manifest), 'metadata', 'name')}"
    if given.place or given.path[-2:-1] != ("objects",):
        return BadScenario(given.path, f"{given.place}: {name}: {path_text(steps)}: {words}")
    return BadScenario((*given.path, *steps), f"{name}: {words}")
