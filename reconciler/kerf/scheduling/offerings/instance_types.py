"""Instance types as columns: allocatable and capacity matrices, prices by (zone, capacity type).

A type of which some offerings have a capacity of their own is there once for each capacity, with the offerings that
have it: so a row has one room, and a price only where that room is to be had. What a requirement leaves of the types is
a boolean vector, worked out once per distinct requirement and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kerf.model.aws.instance_type import OFFERING_LABELS, Catalogue, InstanceType, OfferingKey, in_market
from kerf.model.snapshot import Snapshot
from kerf.scheduling.offerings.learned import sizes_for
from kerf_api import labels
from kerf_api.requirements import Requirement, Requirements
from kerf_api.resources import Resources

Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: More expensive than anything: there is no offering.
NO_PRICE = 1 << 60
#: More than any machine has of anything (256 TiB of memory), and 32,000 of it still fit in 64 bits.
MOST = 1 << 48
_RESERVATION = OFFERING_LABELS.index(labels.RESERVATION_ID)


class Columns:
    """The resources that are counted, each at a fixed place in every vector."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._at = {name: i for i, name in enumerate(self.names)}

    def vector(self, amounts: Mapping[str, int]) -> Ints:
        """The amounts in order; absent is 0. A resource without a column is left out (see `unknown`).

        No amount is negative, and beyond `MOST` none is distinguished from another: sums of many stay what they are.
        """
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, value in amounts.items():
            place = self._at.get(name)
            if place is not None:
                row[place] = min(max(value, 0), MOST)
        return row

    def vectors(self, bags: Iterable[Mapping[str, int]]) -> Ints:
        """The vector of each, one under the other, [bags, columns]; of many faster than one by one."""
        at, width, rows = self._at, len(self.names), 0
        places, values = list[int](), list[int]()
        for amounts in bags:
            for name, value in amounts.items():
                place = at.get(name)
                if place is not None:
                    places.append(rows * width + place)
                    values.append(value)
            rows += 1
        found = np.zeros(rows * width, dtype=np.int64)
        if places:
            found[places] = np.clip(values, 0, MOST)
        return found.reshape(rows, width)

    def most(self) -> Ints:
        """More than anything requests, of each resource."""
        return np.full(len(self.names), MOST, dtype=np.int64)

    def unknown(self, amounts: Mapping[str, int]) -> list[str]:
        """Resources asked for that nothing in this world has."""
        return sorted(name for name, value in amounts.items() if value > 0 and name not in self._at)

    def resources(self, vector: Sequence[int] | Ints) -> Resources:
        return Resources({name: int(value) for name, value in zip(self.names, vector, strict=True) if value})


class TypeTable:
    """The types of one catalogue, sorted by name. Shapes: `allocatable` [types, columns]; `price` [types, markets].

    A price in a market is NO_PRICE when it cannot be had there now. `listed` says of each where the type has an
    offering at all, and `sold_out` which of these are out of stock; `shifted` are the zones that traffic is shifted
    away from. `reserved` [markets] are those of capacity reservations; `reservations` says how many machines each of
    these (by ID) may still have.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        columns: Columns,
        out_of_stock: Set[OfferingKey] = frozenset(),
        learned: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    ) -> None:
        self.types = tuple(group for t in sorted(catalogue, key=lambda t: t.name) for group in t.groups())
        self.names = tuple(t.name for t in self.types)
        self.columns = columns
        self.allocatable = np.array([columns.vector(t.allocatable) for t in self.types], dtype=np.int64)
        self.allocatable = self.allocatable.reshape(len(self.types), len(columns.names))
        for row, name in enumerate(self.names if learned else ()):
            for column, resource in enumerate(columns.names):
                if (least := learned.get(name, {}).get(resource)) is not None:
                    self.allocatable[row, column] = min(self.allocatable[row, column], least)
        self.markets = sorted({o.market for t in self.types for o in t.offerings})
        place = {market: i for i, market in enumerate(self.markets)}
        self.price = np.full((len(self.types), len(self.markets)), NO_PRICE, dtype=np.int64)
        self.listed = np.zeros_like(self.price, dtype=np.bool_)
        self.sold_out = np.zeros_like(self.listed)
        self.shifted: set[str] = set()
        for row, instance_type in enumerate(self.types):
            for o in instance_type.offerings:
                market = place[o.market]
                self.listed[row, market] = True
                if o.shifted:
                    self.shifted.add(o.zone)
                if o.available and not out_of_stock.isdisjoint(o.keys):
                    self.sold_out[row, market] = True
                elif o.available:
                    self.price[row, market] = o.price
        self.reservations = _reservations(self.types)
        self.reserved = np.array([bool(m[_RESERVATION]) for m in self.markets], dtype=np.bool_)
        self._masks: dict[Requirement, Bools] = {}
        self._markets: dict[tuple[Requirement | None, ...], Bools] = {}
        self._rows: dict[str, tuple[list[Requirement], NDArray[np.intp]]] = {}
        self._capacity: dict[str, Ints] = {}
        #: The labels on which it depends which types and offerings requirements leave.
        self.keys = frozenset(OFFERING_LABELS).union(*(t.requirements for t in self.types))

    def renewed(self) -> TypeTable:
        """The same table without the masks of requirements, of which there may be any number."""
        own = copy(self)
        own._masks, own._markets = {}, {}
        return own

    def rows_of(self, key: str) -> tuple[list[Requirement], NDArray[np.intp]]:
        """The distinct demands that types make of a key, and each type's place in them (-1: none)."""
        if key not in self._rows:
            codes: dict[Requirement, int] = {}
            places = [
                codes.setdefault(t.requirements[key], len(codes)) if key in t.requirements else -1 for t in self.types
            ]
            self._rows[key] = (list(codes), np.array(places, dtype=np.intp))
        return self._rows[key]

    def values(self, key: str, mask: Bools) -> set[str]:
        """The label values of a key that these types list."""
        rows, places = self.rows_of(key)
        used = set(places[mask].tolist()) - {-1}
        return {value for i in used if not rows[i].complement for value in rows[i].values}

    def masks(self, requirements: Requirements) -> Bools:
        """Which types can serve all requirements."""
        mask = np.ones(len(self.types), dtype=np.bool_)
        for key, row in requirements.items():
            if key in self.keys:
                mask &= self.mask(row)
        return mask

    def mask(self, row: Requirement) -> Bools:
        """Which types can serve the requirement; a type that does not define the key can."""
        known = self._masks.get(row)
        if known is None:
            rows, places = self.rows_of(row.key)
            good = np.array([*(r.meets(row) for r in rows), True], dtype=np.bool_)
            known = self._masks[row] = good[places]
        return known

    def market_mask(self, requirements: Requirements) -> Bools:
        """Which markets the requirements allow."""
        rows = tuple(requirements.get(key) for key in OFFERING_LABELS)
        known = self._markets.get(rows)
        if known is None:
            good = [in_market(rows, market) for market in self.markets]
            known = self._markets[rows] = np.array(good, dtype=np.bool_)
        return known

    def capacity(self, resource: str) -> Ints:
        """Each type's capacity of one resource (`nodes` is 1)."""
        if resource not in self._capacity:
            amounts = [1 if resource == "nodes" else t.capacity[resource] for t in self.types]
            self._capacity[resource] = np.array(amounts, dtype=np.int64)
        return self._capacity[resource]


def _reservations(types: Sequence[InstanceType]) -> dict[str, int]:
    """How many machines each reservation may still have: the least of all sources."""
    found: dict[str, int] = {}
    for one in types:
        for held in (o.reservation for o in one.offerings if o.reservation is not None):
            found[held.id] = min(held.left, found.get(held.id, held.left))
    return found


class _Same:
    """A catalogue that equals itself only: it is immutable, and large to compare."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.catalogue is other.catalogue

    def __hash__(self) -> int:
        return id(self.catalogue)


#: Amounts by instance type and resource.
_Learned = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


# Stock and learned amounts change far less often than a snapshot is solved for.
@lru_cache(maxsize=32)
def _table(
    catalogue: _Same, columns: tuple[str, ...], out_of_stock: frozenset[OfferingKey], known: _Learned
) -> TypeTable:
    learned = {name: dict(amounts) for name, amounts in known}
    return TypeTable(catalogue.catalogue, Columns(columns), out_of_stock, learned)


class Tables:
    """The type tables of a snapshot, each made when it is first asked for: one for each catalogue, be it a node class's
    or, where NodeOverlays change something, a NodePool's."""

    def __init__(self, snapshot: Snapshot, columns: Columns) -> None:
        self._snapshot, self._columns = snapshot, columns
        self._out_of_stock = frozenset(key for key, until in snapshot.out_of_stock.items() if until > snapshot.now)
        self._made: dict[int, TypeTable | Exception] = {}

    def of(self, pool_name: str, class_name: str) -> TypeTable | Exception | None:
        """The types that a pool (or, for "", anybody) can launch from a class; what is wrong with them; None when they
        are not known."""
        catalogue = self._snapshot.types_for(pool_name, class_name)
        if not catalogue:
            return None
        made = self._made.get(id(catalogue))
        if made is None:
            made = self._made[id(catalogue)] = self._tried(catalogue, class_name)
        return made

    def _tried(self, catalogue: Catalogue, class_name: str) -> TypeTable | Exception:
        try:
            learned = sizes_for(self._snapshot, self._snapshot.node_classes.get(class_name))
            rows = tuple((name, tuple(sorted(learned[name].items()))) for name in sorted(learned))
            return _table(_Same(catalogue), self._columns.names, self._out_of_stock, rows).renewed()
        except Exception as error:
            return error
