"""NodePools that can never have a node in their world: without their EC2NodeClass, or without an offering."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from kerf.ec2 import families
from kerf.ec2.instance_types import type_labels
from kerf.model import kinds
from kerf.model.aws.cloud import Region
from kerf.simulating.effects import allowed
from kerf.simulating.reading import BadScenario, missing
from kerf.simulating.reading import steps as path_text
from kerf.simulating.world import Given
from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint import nearest
from kerf_api.lint.reading.reading import entries, part
from kerf_api.requirements import Requirement, Requirements
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool

_TEMPLATE: Final = ("spec", "template", "spec")
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
        offered = offered or list(_offered(region))
        _require_offering(one, offered)


def _require_class(given: Given, classes: Collection[str]) -> None:
    name = part(dict(given.manifest), *_TEMPLATE, "nodeClassRef", "name")
    if name not in classes:
        words = missing("EC2NodeClass", str(name), classes)
        raise _bad(given, (*_TEMPLATE, "nodeClassRef", "name"), f"{words}; its nodes could never be launched")


def _require_labels(given: Given) -> None:
    """Refuse a label of a requirement that looks like a well-known one of the same domain."""
    for steps, entry in entries(dict(given.manifest), *_TEMPLATE, "requirements"):
        key = labels.normalise(str(entry.get("key", "")))
        domain, slash, _ = key.rpartition("/")
        same = [one for one in labels.WELL_KNOWN if one.rpartition("/")[0] == domain]
        close = nearest.name(key, same) if slash and key not in labels.WELL_KNOWN else None
        if close:
            words = f"no node has the label {key}; did you mean {close}?"
            raise _bad(given, (*steps, "key"), words)


def _require_offering(given: Given, offered: Iterable[Requirements]) -> None:
    pool: NodePool = decode(NodePool, default(dict(given.manifest)))
    own = pool.requirements()
    if not any(map(own.allowed(labels.OS).has, _SYSTEMS)):
        raise _bad(given, (*_TEMPLATE, "requirements"), _absent(own[labels.OS], _SYSTEMS))
    wanted = allowed(pool).without(labels.CAPACITY_TYPE)
    if any(wanted.conflict(one) is None for one in offered):
        return
    for key, row in wanted.items():
        if not any(Requirements((row,)).conflict(one) is None for one in offered):
            known = {value for one in offered if key in one for value in one[key].values}
            raise _bad(given, (*_TEMPLATE, "requirements"), _absent(row, known))
    words = (
        "no instance type of this world meets all of them together; change one, or world.zones or world.instanceTypes"
    )
    raise _bad(given, (*_TEMPLATE, "requirements"), words)


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


def _bad(given: Given, steps: tuple[str | int, ...], words: str) -> BadScenario:
    """With the place of the object, and the path in it."""
    manifest: Mapping[str, Any] = given.manifest
    name = f"NodePool {part(dict(manifest), 'metadata', 'name')}"
    if given.place or given.path[-2:-1] != ("objects",):
        return BadScenario(given.path, f"{given.place}: {name}: {path_text(steps)}: {words}")
    return BadScenario((*given.path, *steps), f"{name}: {words}")
