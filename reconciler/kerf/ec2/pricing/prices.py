"""Prices of a region, where AWS gives them and where it does not: then our own compact table, an estimate.

The table has prices of us-east-1 in dollars. Estimates are in the currency and at the level of the region's known
prices (yuan in China), so that a type without a known price is neither chosen nor passed over for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from kerf.ec2.pricing.price_table import EXCEPTIONS, PER_VCPU
from kerf.model.aws.cloud import Region

#: A general-purpose family that is newer than the table costs about this (least squares over c, m and r families).
_UNKNOWN_CATEGORIES = ("c", "m", "r")
_UNKNOWN_PER_VCPU, _UNKNOWN_PER_GIB = 34_800, 3_500
#: The usual spot price as a share of the on-demand price: it gives the level of a region with spot prices only.
_SPOT_SHARE: Final = Fraction(2, 5)

OnDemand = Mapping[str, int]
Spot = Mapping[tuple[str, str], int]


def priced(region: Region, on_demand: OnDemand, spot: Spot) -> Region:
    """The region with these prices over its own, and with estimates where none is known.

    Prices are in millionths of the region's currency per hour, on demand by type, spot by type and zone. A type of a
    special family without a known price stays without one. Without any spot price, spot is taken to cost as much as on
    demand: never less than the truth.
    """
    known, known_spot = {**region.on_demand, **on_demand}, {**region.spot, **spot}
    estimates = {name: on_demand_estimate(name, info.vcpus, info.memory_mib) for name, info in region.types.items()}
    guessed = {name: price for name, price in estimates.items() if price}
    level = _level(guessed, known, known_spot)
    full = {name: known.get(name) or round(guessed.get(name, 0) * level) for name in region.types}
    full = {name: price for name, price in full.items() if price}
    if not known_spot:
        places = region.zones_by_type
        known_spot = {(name, zone): full[name] for name in places if name in full for zone in sorted(places[name])}
    return replace(region, on_demand=full, spot=known_spot)


def _level(estimates: OnDemand, known: OnDemand, spot: Spot) -> Fraction:
    """A known price as a multiple of its estimate: the median over the types; 1 where nothing is known."""
    if ratios := [Fraction(known[name], price) for name, price in estimates.items() if known.get(name)]:
        return _median(ratios)
    prices = ((price, estimates[name]) for (name, _), price in spot.items() if name in estimates)
    if ratios := [Fraction(price, estimate) / _SPOT_SHARE for price, estimate in prices]:
        return _median(ratios)
    return Fraction(1)


def _median(values: Iterable[Fraction]) -> Fraction:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def on_demand_estimate(instance_type: str, vcpus: int, memory_mib: int) -> int | None:
    """The price in us-east-1 in millionths of a US dollar per hour; None for a special family not in the table."""
    if instance_type in EXCEPTIONS:
        return EXCEPTIONS[instance_type]
    family = instance_type.partition(".")[0]
    if family in PER_VCPU:
        return PER_VCPU[family] * vcpus
    if family[:1] in _UNKNOWN_CATEGORIES and family[1:2].isdigit():
        return _UNKNOWN_PER_VCPU * vcpus + _UNKNOWN_PER_GIB * memory_mib // 1024
    return None
