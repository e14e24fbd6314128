"""What there is of devices for one solve: the cluster's own, those of nodes, and what nodes in the making will have.

A node that is initialized has what it has published. One that is not, and one in the making, has what its type will
publish; as long as it may become one of several types, each of these is a variant with devices of its own. What claims
hold already is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kerf.model.kubernetes.devices import DeviceResult, ResourceSliceSpec
from kerf.model.snapshot import Snapshot
from kerf.scheduling.devices.pools import NO_POOLS, Device, PoolId, Pools, pools_of
from kerf.scheduling.devices.search import Pick
from kerf.scheduling.devices.templates import templates_of
from kerf.scheduling.devices.usage import Usage
from kerf.scheduling.nodes.existing import ExistingNode
from kerf_api import labels, quantity

#: What claims hold, by pool.
Held = Mapping[PoolId, Sequence[DeviceResult]]
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """What a node has if it is, or becomes, one of these types; `usage` counts what is taken of the planned devices."""

    types: frozenset[str]
    pools: Pools
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True, eq=False)
class Host:
    """A node with devices. `variants` become fewer while it is in the making; `given` is what pods got, by variant."""

    variants: tuple[Variant, ...]
    given: list[tuple[str, Mapping[Variant, tuple[Pick, ...]]]] = field(default_factory=list)


class Inventory:
    """`shared` are the devices that are no node's own; `usage` is what is taken of published devices."""

    def __init__(self, snapshot: Snapshot, exclude: frozenset[str], held: Held) -> None:
        self._snapshot, self._exclude, self._held = snapshot, exclude, held
        self._templates = templates_of(snapshot)
        self._codes = {name: _encode(slices) for name, slices in self._templates.items()}
        self._pools: dict[bytes, Pools] = {}
        self._published: dict[str, Pools] = {}
        self.shared = pools_of(self._slices_of_all())
        self.reset()

    def reset(self) -> None:
        """Only what claims hold already is taken."""
        self.usage = Usage()
        self._seeded: set[PoolId] = set()
        self._places: dict[str, Host] = {}
        self._seed(self.shared.devices)

    def _slices_of_all(self) -> Iterator[ResourceSliceSpec]:
        """Slices that are not one node's; those that a Node owns count while it is in use."""
        for name in sorted(self._snapshot.resource_slices):
            found = self._snapshot.resource_slices[name]
            if found.spec.node_name or found.metadata.unreadable:
                continue
            owners = [one.name for one in found.metadata.owner_references if one.kind == "Node"]
            if all(self._in_use(owner) for owner in owners):
                yield found.spec

    def _in_use(self, node_name: str) -> bool:
        node = self._snapshot.nodes.get(node_name)
        if node is None or node.metadata.deleting:
            return False
        states = self._snapshot.claims_by_provider.get(node.spec.provider_id, ())
        keys = [claim.name for claim in states] or [f"node/{node_name}"]
        return all((s := self._snapshot.state_nodes.get(k)) is not None and s.initialized for k in keys) and not (
            self._exclude & set(keys)
        )

    # --- nodes --------------------------------------------------------------------------------------------------
    def _seed(self, devices: Sequence[Device]) -> None:
        """Take what claims hold of these published devices."""
        fresh = {(device.driver, device.pool) for device in devices} - self._seeded
        by_id = {device.id: device for device in devices}
        for pool in sorted(fresh):
            for result in self._held.get(pool, ()):
                device = by_id.get((result.driver, result.pool, result.device))
                if device is not None:
                    _take(self.usage, device, result)
        self._seeded |= fresh

    def host(self, target: ExistingNode) -> Host:
        known = self._places.get(target.key)
        if known is None:
            known = self._places[target.key] = self._at(target)
        return known

    def _at(self, target: ExistingNode) -> Host:
        node = target.state.node
        if node is not None and target.state.initialized:
            if node.name not in self._published:
                slices = self._snapshot.slices_by_node.get(node.name, ())
                self._published[node.name] = pools_of(s.spec for s in slices if not s.metadata.unreadable)
            own = self._published[node.name]
            self._seed(own.devices)
            return Host((Variant(frozenset(), own),))
        row = target.possible.get(labels.INSTANCE_TYPE)
        variants = self.variants(sorted(row.values) if row is not None and not row.complement else ())
        if node is not None:
            for variant in variants:
                self._seed_planned(variant, node.name)
        return Host(variants or (Variant(frozenset(), NO_POOLS),))

    def _seed_planned(self, variant: Variant, node_name: str) -> None:
        """What pods already hold of a node that is not initialized: by the devices' names, for pools may be renamed."""
        pools = {(s.spec.driver, s.spec.pool.name) for s in self._snapshot.slices_by_node.get(node_name, ())}
        for pool in sorted(pools):
            for result in self._held.get(pool, ()):
                same = (d for d in variant.pools.devices if (d.driver, d.spec.name) == (result.driver, result.device))
                for device in same:
                    _take(variant.usage, device, result)

    def variants(self, types: Iterable[str]) -> tuple[Variant, ...]:
        """These types, those that publish the same together."""
        together: dict[bytes, list[str]] = {}
        for name in types:
            together.setdefault(self._codes.get(name, b""), []).append(name)
        return tuple(Variant(frozenset(names), self._planned(names[0], code)) for code, names in together.items())

    def _planned(self, name: str, code: bytes) -> Pools:
        if code not in self._pools:
            self._pools[code] = pools_of(self._templates.get(name, ()), planned=True)
        return self._pools[code]

    def new_host(self, types: Iterable[str]) -> Host:
        """A node in the making that may become one of these types."""
        return Host(self.variants(types))


def _take(usage: Usage, device: Device, result: DeviceResult) -> None:
    shared = device.spec.allow_multiple_allocations
    known = {name: text for name, text in result.consumed_capacity.items() if name in device.spec.capacity}
    try:
        share = {name: quantity.parse(text) for name, text in known.items()} if shared else {}
    except ValueError:  # the amount is unknown: all of it
        share = {name: quantity.parse(own.value) for name, own in device.spec.capacity.items()}
    usage.take(device, share)
