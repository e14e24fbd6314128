"""What NodeOverlays have to do with each other and with the NodePools beside them.

Overlays are applied by weight, the greatest first, and what one has set the next leaves alone. Of two of equal weight
that set the same, the one whose name comes last is applied, and the other is refused whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint import nearest
from kerf_api.lint.advice.requirement_advice import Row, rows_of
from kerf_api.lint.catalogue import Catalogue
from kerf_api.lint.problem import Found, Steps, at, shown, some
from kerf_api.lint.reading.reading import is_kind, mapping, part
from kerf_api.requirements import Requirements

#: The labels that distinguish offerings of one type. Prices belong to offerings, capacity to the whole type.
_OFFERING: Final = (labels.ZONE, labels.ZONE_ID, labels.CAPACITY_TYPE)
_MOST_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class Overlay:
    """A NodeOverlay as the others see it; `index` is its place among the manifests."""

    index: int
    name: str
    weight: int
    rows: tuple[Row, ...]
    wanted: Requirements
    types: int
    prices: bool
    capacity: frozenset[str]


def check(manifests: Sequence[Mapping[str, Any]], types: Catalogue) -> Found:
    """The problems of overlays beside each other and beside pools."""
    whole = [(i, default(m)) for i, m in enumerate(manifests) if is_kind(m, "NodeOverlay")]
    overlays = [_overlay(index, manifest, types) for index, manifest in whole]
    yield from _conflicts(overlays, types)
    pools = {str(part(m, "metadata", "name")) for m in manifests if is_kind(m, "NodePool")}
    yield from _strangers(overlays, pools)


def _overlay(index: int, manifest: Mapping[str, Any], types: Catalogue) -> Overlay:
    spec = mapping(manifest, "spec")
    weight, rows = spec.get("weight"), rows_of("NodeOverlay", manifest)
    return Overlay(
        index,
        str(part(manifest, "metadata", "name")),
        weight if isinstance(weight, int) else 0,
        rows,
        Requirements(row.wanted for row in rows),
        types.meeting_all(row.wanted for row in rows),
        bool(spec.get("price") or spec.get("priceAdjustment")),
        frozenset(mapping(spec, "capacity")),
    )


def _conflicts(overlays: Sequence[Overlay], types: Catalogue) -> Found:
    """Overlays that are refused, since another of equal weight sets the same before."""
    last_first = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
    for place, overlay in enumerate(last_first):
        for other in last_first[:place]:
            what = _both_set(overlay, other) if other.weight == overlay.weight and other.name != overlay.name else ""
            if what:
                names = some(types.named(overlay.types & other.types))
                message = f"NodeOverlay {other.name} has the same weight and sets {what} of {names}; it has precedence"
                hint = "the whole of this one is refused; give one of the two another weight"
                yield overlay.index, at(("spec", "weight"), "KERF-SET-309", "warning", message, hint, overlay.weight)
                break


def _both_set(one: Overlay, two: Overlay) -> str:
    """What both set for the same machines, in words; empty when there is nothing."""
    if not one.types & two.types:
        return ""
    if one.prices and two.prices and not one.wanted.conflict(two.wanted):
        return "the price"
    shared = one.capacity & two.capacity
    if shared and not one.wanted.without(*_OFFERING).conflict(two.wanted.without(*_OFFERING)):
        return some([*shared])
    return ""


def _strangers(overlays: Sequence[Overlay], pools: set[str]) -> Found:
    """Overlays for NodePools that are not among the files; no problem where there are no NodePools."""
    for overlay in overlays if pools else ():
        for steps, name in islice(_pools_named(overlay, pools), _MOST_TOLD):
            close = nearest.name(name, pools)
            message = f"no NodePool {shown(name)} is among these files"
            hint = f"did you mean {close}?" if close else f"there are {some([*pools])}"
            yield overlay.index, at(steps, "KERF-SET-310", "warning", message, hint, name)


def _pools_named(overlay: Overlay, known: set[str]) -> Iterator[tuple[Steps, str]]:
    """Each NodePool that an overlay is for and that is not known, with its place."""
    for row in overlay.rows:
        for number, name in enumerate(row.values if row.wanted.key == labels.NODEPOOL else ()):
            if name not in known:
                yield row.place(number), name
