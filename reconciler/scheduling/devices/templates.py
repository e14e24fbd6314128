"""What a node that is yet to come will publish: what its type says, or else what the newest node of that type does.

EC2 knows nothing of drivers, so a type's devices are learned from the slices of a node of the type that is initialized:
a type of which there is none has none. What tells one machine from another (a UUID, a serial number) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from api import labels
from reconciler.model.devices import ResourceSliceSpec, SliceDevice
from reconciler.model.objects import Node
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.devices.pools import current, grouped, pools_of

Slices = tuple[ResourceSliceSpec, ...]
#: Names of attributes that no other machine shares.
_UNIQUE = frozenset({"uuid", "serial", "serialnumber"})


def templates_of(snapshot: Snapshot) -> dict[str, Slices]:
    """The slices by the names of instance types; a type without devices is not in."""
    found = _learned(snapshot)
    for catalogue in (*snapshot.catalogues.values(), *snapshot.overlaid.values()):
        found |= {one.name: one.devices for one in catalogue if one.devices}
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
