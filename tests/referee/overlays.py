"""NodeOverlays as the referee reads them, straight from the objects: what a NodePool's types cost and have.

Every question is asked of every overlay anew. An overlay is refused when one that comes before it, of the same weight
and itself not refused, says something of the same price or resource in any pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal

from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.snapshot import Snapshot
from kerf_api import labels, quantity
from kerf_api.resources import Resources
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodeoverlay import NodeOverlay
from kerf_api.v1.nodepool import NodePool
from tests.referee.selecting import holds

#: What an overlay says something of: a resource of a type in a pool, or the price of one of its offerings.
Thing = tuple[str, str, str]


def overlaid(snapshot: Snapshot, pool: NodePool) -> list[InstanceType]:
    """The pool's types with all that overlays say of them."""
    types = snapshot.catalogues.get(pool.class_name, ())
    if not snapshot.settings.gates.node_overlay:
        return list(types)
    ranked = _applied(snapshot)
    return [_type(pool, one, [o for o in ranked if any(_about(o, pool, one))]) for one in types]


def _applied(snapshot: Snapshot) -> list[NodeOverlay]:
    """The overlays that are not refused, the one that counts first at the front."""
    by_name = sorted(snapshot.node_overlays.values(), key=lambda o: o.name, reverse=True)
    ranked = sorted(by_name, key=lambda o: -o.spec.weight)
    kept: list[NodeOverlay] = []
    said: dict[str, set[Thing]] = {}
    for overlay in ranked:
        own = set(_said(snapshot, overlay))
        equals = (said[o.name] for o in kept if o.spec.weight == overlay.spec.weight)
        if not _senseless(overlay) and not any(own & theirs for theirs in equals):
            kept.append(overlay)
            said[overlay.name] = own
    return kept


def refused(snapshot: Snapshot) -> set[str]:
    """The overlays that are applied nowhere."""
    return set(snapshot.node_overlays) - {overlay.name for overlay in _applied(snapshot)}


def _senseless(overlay: NodeOverlay) -> bool:
    return any(" " in row.key for row in overlay.spec.requirements)


def _said(snapshot: Snapshot, overlay: NodeOverlay) -> Iterator[Thing]:
    for pool in snapshot.node_pools.values():
        for one in snapshot.catalogues.get(pool.class_name, ()):
            offers = list(_about(overlay, pool, one))
            for offer in offers if _speaks_of_price(overlay) else ():
                yield pool.name, one.name, f"price in {offer.zone} as {offer.capacity_type}"
            for resource in overlay.spec.capacity if offers else ():
                yield pool.name, one.name, resource


def _speaks_of_price(overlay: NodeOverlay) -> bool:
    return overlay.spec.price is not None or overlay.spec.price_adjustment is not None


def _about(overlay: NodeOverlay, pool: NodePool, one: InstanceType) -> Iterator[Offering]:
    """The offerings of a type that meet the overlay's requirements, as machines of the pool."""
    for offer in one.offerings:
        if all(_met(row, pool, one, offer) for row in overlay.spec.requirements):
            yield offer


def _met(row: Entry, pool: NodePool, one: InstanceType, offer: Offering) -> bool:
    """Whether some value that a machine may have of the label is one that is wanted; or it has none, and need not."""
    key = labels.normalise(row.key)
    sold = {labels.ZONE: offer.zone, labels.CAPACITY_TYPE: offer.capacity_type, labels.ZONE_ID: offer.zone_id}
    known = one.requirements.get(key)
    values = set(known.values) if known is not None else None
    for own in (pool.template_labels().get(key), sold.get(key)):
        if own:
            values = {own} if values is None else values & {own}
    if not values:
        return holds({}, key, row.operator, row.values)
    return any(holds({key: value}, key, row.operator, row.values) for value in values)


def _type(pool: NodePool, one: InstanceType, ranked: list[NodeOverlay]) -> InstanceType:
    amounts: dict[str, int] = {}
    for overlay in reversed(ranked):
        amounts |= {name: quantity.amount(name, text) for name, text in overlay.spec.capacity.items()}
    offerings = tuple(_offering(offer, [o for o in ranked if offer in _about(o, pool, one)]) for offer in one.offerings)
    capacity, allocatable = ({**known, **amounts} for known in (one.capacity, one.allocatable))
    return replace(one, capacity=Resources(capacity), allocatable=Resources(allocatable), offerings=offerings)


def _offering(offer: Offering, ranked: list[NodeOverlay]) -> Offering:
    first = next((o.spec for o in ranked if _speaks_of_price(o)), None)
    if first is None:
        return offer
    dollars, known = first.price, Decimal(offer.price)
    change = first.price_adjustment or ""
    if dollars is not None:
        price = Decimal(dollars) * 1_000_000
    elif change.endswith("%"):
        price = known + known * Decimal(change[:-1]) / 100
    else:
        price = known + Decimal(change) * 1_000_000
    return replace(offer, price=max(0, int(price.to_integral_value(ROUND_HALF_EVEN))))
