"""A NodePool as something to make nodes from: its requirements, taints, daemon overhead, limits, and its types.

InstanceTypeOptions are what is left of the pool's types under some requirements, with the room each type has for pods
and the least price at which it can be had; equal requirements share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from kerf.model.aws.instance_type import OFFERING_LABELS
from kerf.pods.daemon_overhead import Daemon
from kerf.pods.host_ports import HeldPorts, HostPort
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Floats, Ints, TypeTable
from kerf.scheduling.work import Work
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodepool import NodePool

T = TypeVar("T")
#: So many pods fill whole nodes.
_MANY = 1 << 20
#: To work out what is left of the types under some requirements takes so many steps.
_SHAPE: Final = 20
#: The same where other requirements have left the same types.
_SAME_TYPES: Final = 2
#: So many keys and values of requirements are joined in one step.
VALUES_A_STEP: Final = 16
#: What is worked out about requirements is remembered within this: shapes by their size, in bytes (those of a type and
#: a column), joint requirements by their number.
_SHAPES_BYTES: Final = 64 << 20
_BYTES_A_TYPE: Final = 16
_FEWEST_SHAPES: Final = 500
_MOST_JOINED: Final = 50_000
#: So many needs are held against all types at a time.
_CHUNK = 256
#: What a unit cost is asked for: the bytes of a need, host ports, company.
Ask = tuple[bytes, tuple[HostPort, ...], int]


def ask(need: Ints, ports: Sequence[HostPort], company: int) -> Ask:
    """What the unit cost of a need is known by."""
    return need.tobytes(), tuple(ports), company


def asks_of(needs: Iterable[Ints], company: int = _MANY) -> dict[Ask, Ints]:
    """The needs of pods without host ports, by what their unit costs are known by."""
    return {ask(need, (), company): need for need in needs}


@dataclass(frozen=True, slots=True, eq=False)
class InstanceTypeOptions:
    """Types (as places in the table) with an offering under the requirements, cheapest first, then by name.

    Those without room for the pods of their DaemonSets are left out, also for pods that request nothing.
    `room` [types, columns] is allocatable less the daemons' share; `price` [types] the cheapest offering's;
    `price_at` [table] the same by place in the table, NO_PRICE where the type is out.
    """

    requirements: Requirements
    types: NDArray[np.intp]
    room: Ints
    price: Ints
    price_at: Ints

    def holding(self, need: Ints) -> Bools:
        """Which of the types have room for this much."""
        return np.asarray((self.room >= need).all(axis=1))


class NodeClaimTemplate:
    """One usable NodePool; `within` one solve its `remaining` limits go down as nodes are planned."""

    def __init__(
        self,
        pool: NodePool,
        requirements: Requirements,
        table: TypeTable,
        daemons: Sequence[Daemon],
        *,
        strict_min_values: bool = True,
        learned_taints: Sequence[Taint] = (),
    ) -> None:
        self.strict_min_values = strict_min_values
        self.pool, self.name, self.requirements, self.table = pool, pool.name, requirements, table
        self.learned_taints = tuple(learned_taints)
        self.taints = (*pool.spec.template.spec.taints, *learned_taints)
        self.min_values = {k: r.min_values for k, r in sorted(requirements.items()) if r.min_values is not None}
        self.limits = pool.limits
        self.work = Work()
        self.remaining: dict[str, int] | None = None
        self._at_first: dict[str, int] | None = None
        ref = pool.spec.template.spec.node_class_ref
        self.class_label = f"{ref.group}/{ref.kind.lower()}"
        self._open_domains: dict[tuple[str, Requirements], list[str]] = {}
        self._domains: dict[str, set[str]] = {}
        self._shapes: dict[Requirements, InstanceTypeOptions] = {}
        self._most_shapes = max(_SHAPES_BYTES // (_BYTES_A_TYPE * max(table.allocatable.size, 1)), _FEWEST_SHAPES)
        self._remembered: dict[object, object] = {}
        self._breadths: dict[Requirements, int] = {}
        self._served: dict[Requirements, Requirements | None] = {}
        self._unit_costs: dict[Requirements, dict[Ask, int | None]] = {}
        self._joined: dict[tuple[Requirements, Requirements], Requirements | None] = {}
        self._overheads(daemons)

    def within(self, used: Resources, work: Work | None = None) -> NodeClaimTemplate:
        """This pool for one solve, while so much of its limits is used; what is worked out about it is shared.

        What a solve works out is counted as its `work`.
        """
        own = copy(self)
        own.work = work if work is not None else Work()
        if self.limits is not None:
            own._at_first = {name: self.limits[name] - used[name] for name in sorted(self.limits)}
        own.reset()
        return own

    def reset(self) -> None:
        """Forget what was planned."""
        self.remaining = None if self._at_first is None else dict(self._at_first)

    def remembered(self, key: object, made: Callable[[], T]) -> T:
        """What was made for this key, by whichever solve asked first."""
        if key not in self._remembered:
            self._remembered[key] = made()
        return cast(T, self._remembered[key])

    # --- daemons ------------------------------------------------------------------------------------------------
    def _overheads(self, daemons: Sequence[Daemon]) -> None:
        """The daemons' share and host ports of each type; types with the same daemons are one group."""
        shares = np.zeros((len(self.table.types), len(self.table.columns.names)), dtype=np.int64)
        held: list[list[HostPort]] = [[] for _ in self.table.types]
        self._daemon_rows: dict[str, Bools] = {}
        for daemon in daemons:
            terms = daemon.terms_for(self.requirements) if daemon.accepts(self.taints) else ()
            if not terms:
                continue
            here = np.zeros(len(self.table.types), dtype=np.bool_)
            for term in terms:
                here |= self.table.masks(term)
            self._daemon_rows[daemon.key] = here
            shares[here] += self.table.columns.vector(daemon.requests)
            for row in np.flatnonzero(here):
                held[int(row)].extend(daemon.ports)
        self.overhead = shares
        self._holds_daemons: Bools = np.all(self.table.allocatable >= shares, axis=1)
        self.daemon_ports = tuple(tuple(ports) for ports in held)
        self.has_daemon_ports = any(held)

    def carries(self, daemon: Daemon, served: Requirements) -> tuple[bool, bool]:
        """Whether a pod of the DaemonSet runs on some, and on all, of the types under these requirements."""
        rows = self._daemon_rows.get(daemon.key)
        if rows is None:
            return False, False
        here = rows[self.shape(served).types]
        return bool(here.any()), bool(here.all() and len(here))

    def carrying(self, daemon: Daemon, types: NDArray[np.intp]) -> Bools:
        """Which of these types, by place in the table, have a pod of the DaemonSet."""
        rows = self._daemon_rows.get(daemon.key)
        return np.zeros(len(types), dtype=np.bool_) if rows is None else rows[types]

    def carriers(self, daemon: Daemon, served: Requirements) -> set[str]:
        """The names of the instance types under these requirements with a pod of the DaemonSet."""
        types, rows = self.shape(served).types, self._daemon_rows.get(daemon.key)
        return set() if rows is None else {self.table.names[int(i)] for i in types[rows[types]]}

    def type_names(self, served: Requirements) -> set[str]:
        """The names of the instance types under these requirements."""
        return {self.table.names[int(i)] for i in self.shape(served).types}

    def free_of_ports(self, ports: Iterable[HostPort]) -> Bools | None:
        """Which types' daemons leave these host ports free; None when all do."""
        if not self.has_daemon_ports:
            return None
        taken = HeldPorts(ports)
        return np.array([not taken.clash(held) for held in self.daemon_ports], dtype=np.bool_)

    # --- shapes -------------------------------------------------------------------------------------------------
    def shape(self, requirements: Requirements) -> InstanceTypeOptions:
        """What is left of the types under these requirements (the pool's own are to be among them)."""
        known = self._shapes.get(requirements)
        if known is None:
            telling = requirements.within(self.table.keys)
            if telling is requirements:
                self.work.charge(_SHAPE)
                known = self._shape(requirements)
            else:  # the other labels are of no type
                self.work.charge(_SAME_TYPES)
                known = replace(self.shape(telling), requirements=requirements)
            if len(self._shapes) >= self._most_shapes:
                self._shapes.clear()
            self._shapes[requirements] = known
        return known

    def offered(self) -> NDArray[np.intp]:
        """The types with an offering under the pool's requirements, whether or not they hold their DaemonSets' pods."""
        return np.flatnonzero(self.table.masks(self.requirements) & (self._least(self.requirements) < NO_PRICE))

    def _least(self, requirements: Requirements) -> Ints:
        """The price of each type's cheapest offering."""
        markets = self.table.market_mask(requirements)
        if not markets.any() or not len(self.table.types):
            return np.full(len(self.table.types), NO_PRICE, dtype=np.int64)
        least: Ints = self.table.price[:, markets].min(axis=1)
        return least

    def _shape(self, requirements: Requirements) -> InstanceTypeOptions:
        price = self._least(requirements)
        good = np.flatnonzero(self.table.masks(requirements) & (price < NO_PRICE) & self._holds_daemons)
        order = good[np.argsort(price[good], kind="stable")]
        room = self.table.allocatable[order] - self.overhead[order]
        price_at = np.full_like(price, NO_PRICE)
        price_at[order] = price[order]
        return InstanceTypeOptions(requirements, order, room, price[order], price_at)

    def breadth(self, requirements: Requirements) -> int:
        """How many offerings there are under these requirements."""
        known = self._breadths.get(requirements)
        if known is None:
            shape, markets = self.shape(requirements), self.table.market_mask(requirements)
            known = int((self.table.price[shape.types][:, markets] < NO_PRICE).sum())
            self._breadths[requirements] = known
        return known

    def join(self, one: Requirements, other: Requirements) -> Requirements | None:
        """Both requirements together; None when they leave no label value or no offering."""
        key = (one, other)
        if key not in self._joined:
            self.work.charge(1 + (one.size + other.size) // VALUES_A_STEP)
            if len(self._joined) >= _MOST_JOINED:
                self._joined.clear()
            both = one.joined(other)
            shape = self.shape(both) if both is not None else None
            self._joined[key] = shape.requirements if shape is not None and len(shape.types) else None
        return self._joined[key]

    def serve(self, wanted: Requirements) -> Requirements | None:
        """The pool's requirements narrowed to what a pod wants; None when the pool cannot serve it."""
        if wanted not in self._served:
            self.work.charge(1)
            known = self.requirements.incompatible(wanted, labels.WELL_KNOWN) is None
            self._served[wanted] = self.join(self.requirements, wanted) if known else None
        return self._served[wanted]

    def domains(self, key: str) -> set[str]:
        """The values of a label that nodes of this pool can have, in stock or not; the pool's own labels are none."""
        if key not in self._domains:
            self._domains[key] = self._values_of(key)
        return self._domains[key]

    def _values_of(self, key: str) -> set[str]:
        if key in (labels.NODEPOOL, self.class_label):
            return set()
        row = self.requirements.allowed(key)
        listed = self.table.values(key, self.table.masks(self.requirements))
        place = OFFERING_LABELS.index(key) if key in OFFERING_LABELS else None
        if place is not None and not listed:  # types say where they can be had: not in a zone without a subnet
            allowed = self.table.market_mask(self.requirements)
            listed = {m[place] for m, good in zip(self.table.markets, allowed, strict=True) if good}
        known = listed if listed or row.complement else set(row.values)
        return {value for value in known if value and row.has(value)}

    def open_domains(self, key: str, requirements: Requirements) -> list[str]:
        """The values of a label that a node under these requirements can have now, sorted; none: no such label."""
        known = self._open_domains.get((key, requirements))
        if known is None:
            row, shape = requirements.allowed(key), self.shape(requirements)
            if key in OFFERING_LABELS:
                on_sale = (self.table.price[shape.types] < NO_PRICE).any(axis=0) & self.table.market_mask(requirements)
                place = OFFERING_LABELS.index(key)
                values = {self.table.markets[int(i)][place] for i in np.flatnonzero(on_sale)} - {""}
            else:
                mask = np.zeros(len(self.table.types), dtype=np.bool_)
                mask[shape.types] = True
                values = self.table.values(key, mask) or (set() if row.complement else set(row.values))
            known = self._open_domains[key, requirements] = sorted(v for v in values if row.has(v))
        return known

    def unit_costs(self, requirements: Requirements) -> dict[Ask, int | None]:
        """The unit costs under these requirements that are worked out by now; the mapping stays the same one."""
        known = self._unit_costs.get(requirements)
        if known is None:
            known = self._unit_costs[requirements] = {}
        return known

    def unit_cost(
        self, requirements: Requirements, need: Ints, ports: Sequence[HostPort], company: int = _MANY
    ) -> int | None:
        """The least price of the share of a node that this need takes (the largest of its resources' shares).

        Among so few pods (`company`) a node is theirs alone, and no share is less than one of so many. None when no
        type holds it, or too few for minValues.
        """
        key, known = ask(need, ports, company), self.unit_costs(requirements)
        if key not in known:
            (known[key],) = self._reckoned(self.shape(requirements), need[None], ports, company)
        return known[key]

    def reckon(self, requirements: Requirements, asked: Mapping[Ask, Ints], company: int = _MANY) -> None:
        """Work out many unit costs at once, of `asks_of` needs, before they are asked for one by one."""
        known = self.unit_costs(requirements)
        new = {key: need for key, need in asked.items() if key not in known}
        keys, shape = list(new), self.shape(requirements)
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            known |= zip(part, self._reckoned(shape, np.array([new[key] for key in part]), (), company), strict=True)

    def _reckoned(
        self, shape: InstanceTypeOptions, needs: Ints, ports: Sequence[HostPort], company: int
    ) -> list[int | None]:
        """The unit cost of each need, [needs, columns]."""
        good = np.ones((len(needs), len(shape.types)), dtype=np.bool_)
        share = np.full(good.shape, 1 / company)
        for column in np.flatnonzero(needs.any(axis=0)):
            need, room = needs[:, column, None], shape.room[:, column]
            good &= room >= need
            np.maximum(share, need / np.maximum(room, 1), out=share)
        free = self.free_of_ports(ports)
        if free is not None:
            good &= free[shape.types]
        costs = np.where(good, share * shape.price, np.inf).min(axis=1, initial=np.inf)
        strict = self.strict_min_values and self.min_values
        held = [
            cost < np.inf and not (strict and self.shortfall(shape.types[row]))
            for cost, row in zip(costs, good, strict=True)
        ]
        return [int(cost) if holds else None for cost, holds in zip(costs.tolist(), held, strict=True)]

    # --- limits -------------------------------------------------------------------------------------------------
    def within_limits(self) -> Bools | None:
        """Which types the remaining limits admit, by place in the table; None when there are no limits."""
        if self.remaining is None:
            return None
        mask = np.ones(len(self.table.types), dtype=np.bool_)
        for resource, left in self.remaining.items():
            mask &= self.table.capacity(resource) <= left
        return mask

    def affords(self, requirements: Requirements, need: Ints) -> bool:
        """Whether limits still admit a type that holds this need."""
        within = self.within_limits()
        if within is None:
            return True
        shape = self.shape(requirements)
        return bool(within[shape.types[shape.holding(need)]].any())

    def near_limits(self, planned: Sequence[NDArray[np.intp]], times: int) -> bool:
        """Whether some limit leaves less than so many times what planned nodes, each given by its types, may use."""
        for resource, amount in (self._at_first or {}).items():
            capacity = self.table.capacity(resource)
            used = sum(int(capacity[types].max()) for types in planned)
            if amount - used < times * used:
                return True
        return False

    def share_of_limits(self) -> Floats:
        """Which share of what limits still allow each type would use, of the resource of which it uses most."""
        found = np.zeros(len(self.table.types))
        for resource, left in (self.remaining or {}).items():
            found = np.maximum(found, self.table.capacity(resource) / max(left, 1))
        return found

    def deduct(self, types: NDArray[np.intp]) -> None:
        """Take from the limits what the largest of these types would use."""
        if self.remaining is not None:
            for resource in self.remaining:
                self.remaining[resource] -= int(self.table.capacity(resource)[types].max())

    def credit(self, types: NDArray[np.intp]) -> None:
        """Give back what was taken for these types."""
        if self.remaining is not None:
            for resource in self.remaining:
                self.remaining[resource] += int(self.table.capacity(resource)[types].max())

    # --- minValues ----------------------------------------------------------------------------------------------
    def distinct(self, key: str, types: NDArray[np.intp]) -> int:
        """How many values of a label these types have between them."""
        mask = np.zeros(len(self.table.types), dtype=np.bool_)
        mask[types] = True
        return len(self.table.values(key, mask))

    def values_at(self, key: str, place: int) -> frozenset[str]:
        """The values of a label that one type lists."""
        row = self.table.types[place].requirements.get(key)
        return row.values if row is not None and not row.complement else frozenset()

    def shortfall(self, types: NDArray[np.intp], least: Mapping[str, int] | None = None) -> dict[str, int]:
        """Keys whose minValues these types miss, with the number there is."""
        wanted = self.min_values if least is None else least
        counts = {key: self.distinct(key, types) for key in wanted}
        return {key: count for key, count in counts.items() if count < wanted[key]}
