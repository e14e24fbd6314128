"""Whether a move of consolidation brings what the NodePools of its candidates ask for, by annotation or by setting.

Each pool looks at the whole move, so where several are concerned the strictest decides. What a move costs is that new
nodes are paid for beside the old ones until these have gone; what is only deleted costs nothing. Prices are those that
a launch may end at, the highest: what is asked for is kept however it comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates.candidates import Blocker, Candidate
from kerf.disruption.view import View
from kerf.model.memory import Step
from kerf.model.snapshot import StateNode
from kerf.scheduling.offerings.prices import dollars
from kerf_api import durations, labels, thresholds
from kerf_api.thresholds import Thresholds
from kerf_api.v1.nodepool import NodePool

#: Old and new nodes are paid for together for so long: the new ones start and are initialised, then the old ones drain.
OVERLAP: Final = timedelta(minutes=5)
#: The codes of moves that there are, and that bring too little.
TOO_LITTLE: Final = frozenset({"SavingTooSmall", "PaysBackTooLate"})
_HOUR: Final = timedelta(hours=1)


def price_of(candidates: Sequence[Candidate]) -> int:
    """Millionths of a dollar per hour."""
    return sum(one.price for one in candidates)


def asked(view: View, pool: NodePool) -> Thresholds | Blocker:
    """What the pool asks for; a Blocker when its annotations cannot be read."""
    return view.turn.one(_ASKED, view.each, pool.name)


def unreadable(view: View) -> Iterator[tuple[NodePool, Blocker]]:
    """The NodePools whose thresholds cannot be read, by name."""
    for name, found in view.turn.all(_ASKED, view.each).spoken.items():
        if isinstance(found, Blocker):
            yield view.snapshot.node_pools[name], found


def grown_at(view: View, state: StateNode, pool: NodePool) -> datetime | None:
    """When a node reaches the age that its pool asks for; None when it has, or none is asked for."""
    created = state.claim.metadata.creation_timestamp if state.claim is not None else None
    found = asked(view, pool)
    if created is None or isinstance(found, Blocker):
        return None
    at = created + found.minimum_age
    return at if at > view.snapshot.now else None


def most(view: View, candidates: Sequence[Candidate]) -> int:
    """The most that nodes in the place of these may cost; in any case it is less than these do."""
    price = price_of(candidates)
    limits = [price - 1]
    for _, own in _pools(view, candidates):
        limits.append(price - own.minimum_saving.least(price))
        if own.payback_time:
            limits.append(price * own.payback_time // (own.payback_time + OVERLAP))
    return min(limits)


def shortfall(view: View, candidates: Sequence[Candidate], comes: int, lost: int = 0) -> Blocker | None:
    """What is missing when nodes at the price `comes` take the place of these, and some at `lost` may have to follow.

    When nothing comes each of the candidates goes for itself, and has to be worth it alone.
    """
    for going in [candidates] if comes else [[one] for one in candidates]:
        price = price_of(going)
        saving = price - comes - lost
        for pool, own in _pools(view, going):
            if saving < own.minimum_saving.least(price):
                return _too_small(pool, own, going, saving)
            if own.payback_time and saving * own.payback_time < comes * OVERLAP:
                return _too_late(pool, own, comes, saving)
    return None


def _pools(view: View, candidates: Sequence[Candidate]) -> Iterator[tuple[NodePool, Thresholds]]:
    """By name. What cannot be read asks for nothing here: nodes of such pools are no candidates."""
    pools = {one.pool.name: one.pool for one in candidates}
    for name in sorted(pools):
        found = asked(view, pools[name])
        if isinstance(found, Thresholds):
            yield pools[name], found


# --- words ------------------------------------------------------------------------------------------------------
def _too_small(pool: NodePool, own: Thresholds, going: Sequence[Candidate], saving: int) -> Blocker:
    price = price_of(going)
    share = 1000 * saving // price / 10 if price else 0.0  # rounded down: what is too little must not look like enough
    what = "the nodes cost" if len(going) > 1 else "it costs"
    text = f"it would save {dollars(saving)} an hour, {share:g}% of what {what}"
    wanted = str(own.minimum_saving) if own.minimum_saving.share else f"${own.minimum_saving}"
    return Blocker("SavingTooSmall", f"{text}, less than the {wanted} that {_whose(pool, labels.MINIMUM_SAVING)}")


def _too_late(pool: NodePool, own: Thresholds, comes: int, saving: int) -> Blocker:
    cost = comes * OVERLAP // _HOUR
    text = f"it would save {dollars(saving)} an hour"
    if saving > 0:
        seconds = -(-comes * OVERLAP // timedelta(seconds=saving))
        text += f" and take {durations.go_text(timedelta(seconds=seconds))} to earn back the {dollars(cost)}"
        text += " that new nodes cost beside the old ones"
    wanted = durations.go_text(own.payback_time)
    return Blocker("PaysBackTooLate", f"{text}, longer than the {wanted} that {_whose(pool, labels.PAYBACK_TIME)}")


def too_young(pool: NodePool, own: Thresholds, until: datetime) -> Blocker:
    text = f"it is younger than the {durations.go_text(own.minimum_age)} that {_whose(pool, labels.MINIMUM_AGE)}"
    return Blocker("TooYoung", text, until=until)


def _whose(pool: NodePool, annotation: str) -> str:
    if annotation in pool.metadata.annotations:
        return f"NodePool {pool.name} asks for"
    return "the settings ask for"


# --- what is known of single objects ----------------------------------------------------------------------------
def _asked(view: View, name: str) -> tuple[Thresholds | Blocker, None]:
    pool = view.snapshot.node_pools[name]
    try:
        return thresholds.of(pool.metadata.annotations, view.snapshot.settings.thresholds), None
    except ValueError as error:
        text = f"NodePool {name}: {error}; while that is so its nodes that are in use stay"
        return Blocker("InvalidAnnotation", text), None


_ASKED: Final[Step[View, Thresholds | Blocker]] = Step(
    "thresholds", "node_pools", _asked, speaks=lambda found: isinstance(found, Blocker)
)
