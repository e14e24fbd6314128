"""Second half of a solve: pods that need new nodes are packed into them, by price.

Items go lane by lane (a lane: the same requirements), those with the fewest offerings first. Each takes what room there
is on the nodes in the making and opens new ones of the sizes that give most for their price.
At last every node gets the types that hold what is on it. A later pool gets what a heavier one refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.improving.merge import merged
from kerf.scheduling.improving.search import improved
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import stocks_of
from kerf.scheduling.packing.drafts import Draft
from kerf.scheduling.packing.effort import Effort
from kerf.scheduling.packing.fill import Filling
from kerf.scheduling.packing.finalize import Packed, close
from kerf.scheduling.placing.domains import PodGroup
from kerf.scheduling.placing.strategy import PLAIN, Strategy
from kerf.scheduling.pods.topology_constraints import TopologyGroup
from kerf.scheduling.seating.colocated import seat_together
from kerf.scheduling.seating.devices import Seating
from kerf_api.requirements import EMPTY, Requirements

#: Limits and minValues may hand pods back; they are packed again at most so often.
_PASSES = 12


def pack(
    template: NodeClaimTemplate,
    items: Sequence[PodGroup],
    left: dict[PodGroup, int],
    seated: set[TopologyGroup],
    most_types: int,
    effort: Effort,
    within: Requirements = EMPTY,
    devices: DeviceLedger | None = None,
    *,
    strategy: Strategy = PLAIN,
    few: bool = False,
) -> list[Packed]:
    """Nodes for as many pods as the pool can take; `left` (pods per item) goes down accordingly.

    The pool's share of the `effort` is as large as its share of the pods that are left. All nodes are `within` what is
    asked. Where there are `few` pods, nodes are merged at last.
    """
    stocks = stocks_of(template, items, left, within)
    search = effort.left * sum(stock.left for stock in stocks) // max(sum(left.values()), 1)
    done: list[Packed] = []
    seating = None if devices is None else Seating(template, devices, seated)
    started = seating.seat(stocks) if seating is not None else ()
    together = [] if strategy.late else seat_together(template, stocks, seated, started)
    for _ in range(_PASSES):
        filling = Filling(template, stocks, frugal=strategy.frugal, late=strategy.late)
        drafts = filling.fill({stock: stock.left for stock in filling.stocks if stock.left}, together)
        better = improved(filling, drafts, search)
        if few:
            better = merged(template, better, effort)
        effort.used += filling.seats
        closed, refused = _closed(template, drafts, better, most_types, strategy.frugal)
        done += closed
        for packed in closed:
            for stock, number in packed.content:
                stock.left -= number
        together, search = [], 0
        if not closed or not refused:
            break
    if seating is not None:
        seating.keep(done)
    for stock in stocks:
        left[stock.item] = stock.left
    return done


def _closed(
    template: NodeClaimTemplate, drafts: list[Draft], better: list[Draft], most_types: int, frugal: bool
) -> tuple[list[Packed], list[Draft]]:
    """The better nodes, unless limits then leave pods over: they are reckoned with the largest type of each node."""
    before = template.remaining
    template.remaining = None if before is None else dict(before)
    closed, refused = close(template, better, most_types, frugal=frugal)
    if refused and better is not drafts:
        template.remaining = before
        return close(template, drafts, most_types, frugal=frugal)
    return closed, refused
