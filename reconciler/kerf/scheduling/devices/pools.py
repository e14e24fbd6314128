"""Published slices as pools of devices. Of a pool only the latest generation counts, and only when all of it is there.

A pool in which a name is there twice, or a device counts on a budget that does not exist, is not used at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from kerf.model.kubernetes.devices import ResourceSliceSpec, SliceDevice
from kerf.model.kubernetes.objects import NodeSelector
from kerf.pods.requirements import filled, term_requirements
from kerf_api import labels, quantity
from kerf_api.requirements import EMPTY, Requirements

#: Driver, pool and name of a device.
DeviceId = tuple[str, str, str]
#: Driver and name of a pool.
PoolId = tuple[str, str]
#: What a pool has of each counter, by counter set and counter.
Budgets = Mapping[tuple[str, str], Fraction]
_NODE_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a device can be had: on the Node of this name (any, if empty), with labels like these."""

    node: str = ""
    labels: Requirements = EMPTY


ANYWHERE = Reach()


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """`reaches` are alternatives. One that a node yet to come will publish is `planned`, and a `local` one is on it."""

    driver: str
    pool: str
    spec: SliceDevice
    reaches: tuple[Reach, ...]
    budgets: Budgets = field(default_factory=dict)
    planned: bool = False
    local: bool = False

    @property
    def id(self) -> DeviceId:
        return (self.driver, self.pool, self.spec.name)


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """The devices of sound pools; `unsound` are the others (being written, or wrong), with what is the matter."""

    devices: tuple[Device, ...] = ()
    unsound: Mapping[PoolId, str] = field(default_factory=dict)


NO_POOLS = Pools()


def pools_of(slices: Iterable[ResourceSliceSpec], *, planned: bool = False) -> Pools:
    """All pools that these slices make up, in the order of drivers and names."""
    found = grouped(slices)
    devices: list[Device] = []
    unsound: dict[PoolId, str] = {}
    for key in sorted(found):
        latest = current(found[key])
        try:
            problem = _problem(latest)
            if not problem:
                devices += _devices(latest, planned)
        except ValueError as error:
            problem = str(error)
        if problem:
            unsound[key] = problem
    return Pools(tuple(devices), unsound)


def grouped(slices: Iterable[ResourceSliceSpec]) -> dict[PoolId, list[ResourceSliceSpec]]:
    """The slices by pool, whatever their generation."""
    found: dict[PoolId, list[ResourceSliceSpec]] = {}
    for spec in slices:
        found.setdefault((spec.driver, spec.pool.name), []).append(spec)
    return found


def current(slices: Sequence[ResourceSliceSpec]) -> list[ResourceSliceSpec]:
    """Those of a pool's slices that are of its latest generation."""
    latest = max(spec.pool.generation for spec in slices)
    return [spec for spec in slices if spec.pool.generation == latest]


def complete(slices: Sequence[ResourceSliceSpec]) -> bool:
    """Whether all slices of the latest generation of a pool are there."""
    latest = current(slices)
    return all(spec.pool.resource_slice_count == len(latest) for spec in latest)


def published(slices: Iterable[ResourceSliceSpec]) -> frozenset[str]:
    """The drivers that have a complete pool among these slices."""
    return frozenset(driver for (driver, _), pool in grouped(slices).items() if complete(pool))


def _problem(latest: Sequence[ResourceSliceSpec]) -> str:
    if not complete(latest):
        return "is being written: not all of its slices are there"
    names = [device.name for spec in latest for device in spec.devices]
    if len(names) != len(set(names)):
        return "has two devices of one name"
    sets = [counters.name for spec in latest for counters in spec.shared_counters]
    return "has two counter sets of one name" if len(sets) != len(set(sets)) else ""


def _devices(latest: Sequence[ResourceSliceSpec], planned: bool) -> Iterator[Device]:
    """Raises ValueError for a device that counts on a budget that does not exist."""
    budgets = {
        (counters.name, name): quantity.parse(counter.value)
        for spec in latest
        for counters in spec.shared_counters
        for name, counter in counters.counters.items()
    }
    for spec in latest:
        for device in spec.devices:
            for need in device.consumes_counters:
                for name in need.counters:
                    if (need.counter_set, name) not in budgets:
                        raise ValueError(
                            f"device {device.name} uses the counter {need.counter_set}/{name}, which does not exist"
                        )
            _check(device)
            own = device if spec.per_device_node_selection else spec
            local = planned or bool(own.node_name)
            yield Device(spec.driver, spec.pool.name, device, _reaches(own, planned), budgets, planned, local)


def _check(device: SliceDevice) -> None:
    """Raises ValueError for an amount that cannot be read."""
    for need in device.consumes_counters:
        for counter in need.counters.values():
            quantity.parse(counter.value)
    for capacity in device.capacity.values():
        policy = capacity.request_policy
        spans = policy.valid_range if policy is not None else None
        written = [capacity.value, *(policy.valid_values if policy is not None else ())]
        written += [policy.default] if policy is not None and policy.default is not None else []
        written += [v for v in (spans.min, spans.max, spans.step) if v is not None] if spans is not None else []
        for value in written:
            quantity.parse(value)


def _reaches(own: SliceDevice | ResourceSliceSpec, planned: bool) -> tuple[Reach, ...]:
    if planned or own.all_nodes:
        return (ANYWHERE,)
    if own.node_name:
        return (Reach(own.node_name),)
    return reaches_of(own.node_selector) if own.node_selector is not None else ()


def reaches_of(selector: NodeSelector) -> tuple[Reach, ...]:
    """The alternatives of a node selector. Raises ValueError on one that cannot be read."""
    found: list[Reach] = []
    for term in filled(selector.node_selector_terms):
        names = [""]
        for row in term.match_fields:
            if row.key != _NODE_NAME or row.operator != "In":
                raise ValueError(f"a node selector by {row.key} {row.operator} is not supported")
            names = list(row.values)
        found += [Reach(name, term_requirements(term).without(labels.NAME_FIELD)) for name in names]
    return tuple(found)
