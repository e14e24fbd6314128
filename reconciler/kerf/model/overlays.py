"""NodeOverlays and what becomes of catalogues under them: other prices, and resources that the cloud does not know of.

Overlays are applied by weight, the heaviest first, and among equals the one whose name comes last: what one has set of
an offering's price, or of one resource of a type, the next leaves alone. Of two of equal weight that set the same, the
second is refused whole, and applied in no NodePool. What an overlay reaches depends on a pool's name and labels, so
catalogues are by pool; pools that look the same to all overlays share one. Source: scheduling reference §4.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.boundaries import broken
from kerf.model.plan import Reason
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, IN, NOT_IN, Requirement, Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Entry, encode
from kerf_api.v1.nodeoverlay import NodeOverlay, Price
from kerf_api.v1.nodepool import NodePool

CONFLICT, INVALID = "Conflict", "RuntimeValidation"
#: The labels that distinguish the offerings of one type.
_MARKET = (labels.ZONE, labels.ZONE_ID, labels.CAPACITY_TYPE)
#: A NodePool and its node class, by name.
PoolKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Overlaid:
    """The types of each NodePool that an overlay changes anything of, and why overlays are not applied.

    An overlay with a fault is applied in no NodePool, or, if the fault is in the types of a node class, in none of it.
    """

    catalogues: Mapping[PoolKey, Catalogue] = field(default_factory=dict)
    faults: Mapping[str, Reason] = field(default_factory=dict)


NOTHING = Overlaid()


def overlaid(
    overlays: Iterable[NodeOverlay], pools: Iterable[NodePool], catalogues: Mapping[str, Catalogue]
) -> Overlaid:
    """What overlays make of the catalogues (by node class). One that is being deleted is applied no more, and a pool
    whose class has no catalogue holds up no other."""
    read = {overlay.name: _read(overlay) for overlay in overlays if not overlay.metadata.deleting}
    faults = {name: found for name, found in read.items() if isinstance(found, Reason)}
    readings = [found for found in read.values() if isinstance(found, _Reading)]
    by_pool = _sheets(readings, pools, catalogues)
    sheets = list(dict.fromkeys(by_pool.values()))
    for reading in sorted(readings, key=lambda one: (one.weight, one.name), reverse=True):
        reached = [(sheet, sheet.reach(reading)) for sheet in sheets]
        clash = next((c for sheet, reach in reached if (c := sheet.clash(reading, reach)) is not None), None)
        if clash is not None:
            faults[reading.name] = clash
            continue
        for sheet, reach in reached:
            sheet.put(reading, reach)
    made = {sheet: sheet.result() for sheet in sheets}
    for sheet in sheets:
        faults = {**sheet.failed, **faults}
    changed = {key: catalogue for key, sheet in by_pool.items() if (catalogue := made[sheet]) is not None}
    return Overlaid(changed, dict(sorted(faults.items())))


# --- one overlay ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """An overlay that makes sense. `market` is what it wants of an offering; `named`: it is about types by their names
    and nothing else, so that a price which is unknown may be taken from it. What contradicts itself is about
    `nothing`, also where the label is not there."""

    name: str
    weight: int
    wanted: Requirements
    market: Requirements
    named: bool
    nothing: bool
    price: Price | None
    amounts: Resources


def _read(overlay: NodeOverlay) -> _Reading | Reason:
    try:
        problems = _problems(overlay)
        if problems:
            return Reason(INVALID, "; ".join(problems))
        wanted = overlay.requirements()
        named = len(wanted) == 1 and labels.INSTANCE_TYPE in wanted and wanted[labels.INSTANCE_TYPE].operator == IN
        return _Reading(
            overlay.name,
            overlay.spec.weight,
            wanted,
            Requirements(row for key, row in wanted.items() if key in _MARKET),
            named,
            _contradictory(overlay.spec.requirements, wanted),
            overlay.price(),
            overlay.resources(),
        )
    except Exception as error:  # it concerns only this object
        return Reason(INVALID, broken(error).text)


def _contradictory(entries: Iterable[Entry], wanted: Requirements) -> bool:
    """Whether entries for one label leave no value of it, although one of them wants the label to be there."""
    present = {labels.normalise(entry.key) for entry in entries if entry.operator not in (NOT_IN, DOES_NOT_EXIST)}
    return any(wanted[key].operator == DOES_NOT_EXIST for key in present)


def _problems(overlay: NodeOverlay) -> list[str]:
    from kerf_api.lint.rules import rules_nodeoverlay  # large: who has no overlays need not load it

    if overlay.metadata.unreadable:
        return [f"it cannot be read: {overlay.metadata.unreadable}"]
    manifest = {"apiVersion": f"{labels.GROUP}/v1alpha1", "kind": "NodeOverlay", **encode(overlay)}
    return [str(problem) for problem in rules_nodeoverlay.check(manifest) if problem.severity == "error"]


# --- one catalogue ----------------------------------------------------------------------------------------------
#: Types that an overlay reaches, by place in the catalogue, each with the places of the offerings it is about.
_Reach = tuple[tuple[int, tuple[int, ...]], ...]
#: Zone, capacity type and zone ID.
_Market = tuple[str, str, str]


def _sheets(
    readings: Iterable[_Reading], pools: Iterable[NodePool], catalogues: Mapping[str, Catalogue]
) -> dict[PoolKey, _Sheet]:
    """A sheet for each pool; pools of one class share it when they are the same in what overlays ask about."""
    asked = {key for reading in readings for key in reading.wanted}
    types = {name: _Types(catalogue) for name, catalogue in catalogues.items()}
    known: dict[tuple[str, Requirements], _Sheet] = {}
    found: dict[PoolKey, _Sheet] = {}
    for pool in sorted(pools, key=lambda pool: pool.name):
        if not pool.managed or pool.class_name not in types:
            continue
        own = Requirements.of_labels({k: v for k, v in pool.template_labels().items() if labels.normalise(k) in asked})
        sheet = known.setdefault((pool.class_name, own), _Sheet(types[pool.class_name], own, pool.class_name))
        found[pool.name, pool.class_name] = sheet
    return found


class _Types:
    """A catalogue, and which of its types meet a demand: worked out once for each value of a label."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._rows: dict[str, tuple[list[Requirement | None], list[int]]] = {}
        self._meeting: dict[tuple[Requirement, Requirement | None], list[bool]] = {}

    def meeting(self, wanted: Requirement, own: Requirement | None) -> list[bool]:
        """For each type whether it meets the demand, when the pool has its `own` demand of the label."""
        known = self._meeting.get((wanted, own))
        if known is None:
            rows, places = self._rows_of(wanted.key)
            good = [_meets(row, own, wanted) for row in rows]
            known = self._meeting[wanted, own] = [good[place] for place in places]
        return known

    def _rows_of(self, key: str) -> tuple[list[Requirement | None], list[int]]:
        """The distinct demands that types make of a label, and each type's place in them."""
        if key not in self._rows:
            codes: dict[Requirement | None, int] = {}
            places = [codes.setdefault(t.requirements.get(key), len(codes)) for t in self.catalogue]
            self._rows[key] = (list(codes), places)
        return self._rows[key]


def _meets(one: Requirement | None, other: Requirement | None, wanted: Requirement) -> bool:
    """Whether a node of which the label is known by one, the other or both can be what is wanted."""
    both = other if one is None else one if other is None else one.intersection(other)
    return wanted.operator in (NOT_IN, DOES_NOT_EXIST) if both is None else both.meets(wanted)


class _Sheet:
    """What overlays have set so far of one catalogue, for pools that have these labels.

    `prices` and `amounts` have for each type (by its place) and each offering (by its place) or resource all overlays
    that say something of it, the one that counts first. `failed` are overlays that change nothing here because a type
    could not be read, by name.
    """

    def __init__(self, types: _Types, own: Requirements, class_name: str) -> None:
        self._types, self._catalogue, self._own, self._class_name = types, types.catalogue, own, class_name
        self.failed: dict[str, Reason] = {}
        self._prices: dict[int, dict[int, list[_Reading]]] = {}
        self._amounts: dict[int, dict[str, list[_Reading]]] = {}

    def reach(self, reading: _Reading) -> _Reach:
        """What the overlay is about: pool and type must meet all its requirements, and offerings those of a market."""
        if reading.nothing:
            return ()
        try:
            places: Iterable[int] = range(len(self._catalogue))
            for wanted in reading.wanted.values():
                good = self._types.meeting(wanted, self._own.get(wanted.key))
                places = [place for place in places if good[place]]
            known: dict[_Market, bool] = {}
            found = ((place, _offered(self._catalogue[place], reading.market, known)) for place in places)
            return tuple((place, offers) for place, offers in found if offers)
        except Exception as error:  # it is a fault of this overlay alone
            self.failed[reading.name] = self._unread(error)
            return ()

    def clash(self, reading: _Reading, reach: _Reach) -> Reason | None:
        """Why the overlay is refused: another one of its weight came first with something that it sets too."""
        for i, offers in reach:
            of_type = self._catalogue[i]
            for j in offers if reading.price is not None else ():
                first = _equal(self._prices.get(i, {}).get(j, ()), reading)
                if first is not None:
                    sold = of_type.offerings[j]
                    return _conflict(first, f"the price of {of_type.name} in {sold.zone} ({sold.capacity_type})")
            for resource in reading.amounts:
                first = _equal(self._amounts.get(i, {}).get(resource, ()), reading)
                if first is not None:
                    return _conflict(first, f"{resource} of {of_type.name}")
        return None

    def put(self, reading: _Reading, reach: _Reach) -> None:
        for i, offers in reach:
            for j in offers if reading.price is not None else ():
                self._prices.setdefault(i, {}).setdefault(j, []).append(reading)
            for resource in reading.amounts:
                self._amounts.setdefault(i, {}).setdefault(resource, []).append(reading)

    def result(self) -> Catalogue | None:
        """The catalogue with all that was set; None when nothing was."""
        touched = self._prices.keys() | self._amounts.keys()
        if not touched:
            return None
        try:
            return tuple(self._changed(i, t) if i in touched else t for i, t in enumerate(self._catalogue))
        except Exception as error:
            said = [readings for prices in self._prices.values() for readings in prices.values()]
            said += [readings for amounts in self._amounts.values() for readings in amounts.values()]
            names = {reading.name for readings in said for reading in readings}
            self.failed |= dict.fromkeys(names, self._unread(error))
            return None

    def _unread(self, error: Exception) -> Reason:
        cause = broken(error)
        text = f"the overlay changes no instance type of EC2NodeClass {self._class_name}: reading them failed"
        return Reason(cause.code, f"{text}: {cause.text}")

    def _changed(self, i: int, instance_type: InstanceType) -> InstanceType:
        prices = self._prices.get(i, {})
        own = {resource: said[0].amounts[resource] for resource, said in self._amounts.get(i, {}).items()}
        return replace(
            instance_type.with_capacity(own) if own else instance_type,
            offerings=tuple(_priced(o, prices.get(j, ())) for j, o in enumerate(instance_type.offerings)),
            price_overlay=bool(prices),
            capacity_overlay=bool(own),
        )


def _offered(instance_type: InstanceType, market: Requirements, known: dict[_Market, bool]) -> tuple[int, ...]:
    """The places of the offerings that meet what is wanted of a market; `known` are the answers for some of these."""
    if not market:
        return tuple(range(len(instance_type.offerings)))
    found = []
    for place, offering in enumerate(instance_type.offerings):
        sold = (offering.zone, offering.capacity_type, offering.zone_id)
        good = known.get(sold)
        if good is None:
            good = known[sold] = offering.requirements().compatible(market)
        if good:
            found.append(place)
    return tuple(found)


def _equal(said: Iterable[_Reading], reading: _Reading) -> _Reading | None:
    return next((first for first in said if first.weight == reading.weight), None)


def _conflict(first: _Reading, what: str) -> Reason:
    text = f"NodeOverlay {first.name} has the same weight and precedence, and sets {what} too"
    return Reason(CONFLICT, f"{text}; this NodeOverlay is not applied: give one of the two another weight")


def _priced(offering: Offering, said: Iterable[_Reading]) -> Offering:
    """The offering at the price that counts; where no price is known, an overlay that names the type may give it."""
    prices = [(reading.price, reading.named) for reading in said if reading.price is not None]
    if not prices:
        return offering
    first, known = prices[0][0], offering.price
    if offering.unpriced:
        told = next((price for price, named in prices if named and price.fixed), None)
        if told is None:
            return offering
        known = told.of(0)
    available = offering.available or offering.unpriced
    return replace(offering, price=first.of(known), available=available, unpriced=False)


# --- what is remembered -----------------------------------------------------------------------------------------
class Overlays:
    """The outcome for as long as it would be the same; its owner says when pools or overlays have changed."""

    def __init__(self) -> None:
        self._stale = True
        self._catalogues: Mapping[str, Catalogue] = {}
        self._known = NOTHING

    def follow(self, old: NodeOverlay | NodePool | None, new: NodeOverlay | NodePool | None) -> None:
        """An overlay or a pool came, changed or went (None: was not, is no more)."""
        self._stale |= old is None or new is None or _ground(old) != _ground(new)

    def over(
        self,
        overlays: Mapping[str, NodeOverlay],
        pools: Mapping[str, NodePool],
        catalogues: Mapping[str, Catalogue],
    ) -> Overlaid:
        """`overlaid` of these."""
        same = self._catalogues.keys() == catalogues.keys() and all(
            self._catalogues[name] is catalogue for name, catalogue in catalogues.items()
        )
        if self._stale or not same:
            self._known = overlaid(overlays.values(), pools.values(), catalogues) if overlays else NOTHING
            self._catalogues, self._stale = dict(catalogues), False
        return self._known


def _ground(value: NodeOverlay | NodePool) -> object:
    return value.spec, value.metadata.deleting, value.metadata.unreadable
