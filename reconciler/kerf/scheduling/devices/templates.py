"""What a node that is yet to come will publish of devices. EC2 knows nothing of drivers, so it must be learned or
configured.

The newest initialized node of the same type says it by its slices; attributes of one machine only (a UUID, a
serial number) is left out. Where there is none yet, the annotation `kerf.sh/device-templates` of an EC2NodeClass may
say it for types by name; where there is neither, a type has no devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kerf.model.kubernetes.devices import ResourceSliceSpec, SliceDevice
from kerf.model.kubernetes.objects import Node
from kerf.model.snapshot import Snapshot
from kerf.scheduling.devices.pools import current, grouped, pools_of
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Value

Slices = tuple[ResourceSliceSpec, ...]
#: Names of attributes that no other machine shares.
_UNIQUE = frozenset({"uuid", "serial", "serialnumber"})


class DeclaredTemplate(Value, frozen=True, kw_only=True):
    """What nodes of these instance types will publish."""

    instance_types: tuple[str, ...]
    slices: tuple[ResourceSliceSpec, ...]


def templates_of(snapshot: Snapshot) -> dict[str, Slices]:
    """The slices by the names of instance types; a type without devices is not in."""
    found: dict[str, Slices] = {}
    for name in sorted(snapshot.node_classes):
        declared = _declared(snapshot.node_classes[name])
        found |= declared if isinstance(declared, dict) else {}
    found |= _learned(snapshot)
    for catalogue in (*snapshot.catalogues.values(), *snapshot.overlaid.values()):
        found |= {one.name: one.devices for one in catalogue if one.devices}
    return found


_decode = msgspec.json.Decoder(tuple[DeclaredTemplate, ...]).decode


def template_problems(snapshot: Snapshot) -> list[str]:
    """What is wrong with annotations of EC2NodeClasses."""
    read = ((name, _declared(node_class)) for name, node_class in sorted(snapshot.node_classes.items()))
    return [f"EC2NodeClass {name}: annotation {labels.DEVICE_TEMPLATES}: {w}" for name, w in read if isinstance(w, str)]


def _declared(node_class: EC2NodeClass) -> dict[str, Slices] | str:
    """The slices by type that the annotation names, or what is wrong with it."""
    text = node_class.metadata.annotations.get(labels.DEVICE_TEMPLATES, "")
    return _read(text) if text else {}


@lru_cache(maxsize=64)
def _read(text: str) -> dict[str, Slices] | str:
    try:
        rows = _decode(text)
    except msgspec.DecodeError as error:
        return f"is not a list of instanceTypes with their slices: {error}"
    found: dict[str, Slices] = {}
    for row in rows:
        problems = pools_of(row.slices, planned=True).unsound
        if problems:
            (driver, pool), problem = next(iter(problems.items()))
            return f"pool {pool} of {driver} {problem}"
        found |= dict.fromkeys(row.instance_types, row.slices)
    return found


def _learned(snapshot: Snapshot) -> dict[str, Slices]:
    teachers: dict[str, Node] = {}
    for name in sorted(snapshot.slices_by_node):
        node = snapshot.nodes.get(name)
        kind = node.metadata.labels.get(labels.INSTANCE_TYPE, "") if node is not None else ""
        if node is None or not kind or not node.initialized or node.metadata.deleting:
            continue
        if kind not in teachers or _age(teachers[kind]) <= _age(node):
            teachers[kind] = node
    learned = {kind: _taught(snapshot, node, kind) for kind, node in teachers.items()}
    return {kind: slices for kind, slices in learned.items() if slices}


def _age(node: Node) -> float:
    created = node.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def _taught(snapshot: Snapshot, node: Node, kind: str) -> Slices:
    """The node's sound pools, as another node of the type would publish them."""
    specs = [found.spec for found in snapshot.slices_by_node[node.name] if not found.metadata.unreadable]
    unsound = pools_of(specs).unsound
    sound = [slices for pool, slices in sorted(grouped(specs).items()) if pool not in unsound]
    return tuple(_anonymous(spec, node, kind) for slices in sound for spec in current(slices))


def _anonymous(spec: ResourceSliceSpec, node: Node, kind: str) -> ResourceSliceSpec:
    pool = replace(spec.pool, name=kind if spec.pool.name == node.name else spec.pool.name)
    return replace(spec, pool=pool, node_name="", devices=tuple(_nameless(spec.devices)))


def _nameless(devices: Iterable[SliceDevice]) -> Iterable[SliceDevice]:
    for device in devices:
        own = {n: v for n, v in device.attributes.items() if n.rpartition("/")[2].lower() not in _UNIQUE}
        yield replace(device, attributes=own)
