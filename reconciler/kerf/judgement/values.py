"""A judgement as data: codes are stable, texts are for a person, instants are formatted by the printer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kerf.disruption.candidates.candidates import Blocker
from kerf.scheduling.answers.patches import Patch

#: The verdicts: no such node; none of ours; on its way to being usable; on its way out; free to go; bound to go at an
#: instant; held.
UNKNOWN, NOT_OURS, COMING, GOING, FREE, DUE, STAYS = (
    "NotFound",
    "NotOurs",
    "Coming",
    "Going",
    "MayGo",
    "Due",
    "Stays",
)
_PODS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Fact:
    """A line about where a node stands; `at` is the instant that it is about."""

    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a node stands. `code`: Launching, Registering, Initializing, InUse, Disrupting, Draining, Detaching,
    Terminating, NotOurs; Unreadable when that is unknown."""

    code: str
    text: str
    since: datetime | None = None
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """Something that holds a node. `until` is when that ends by itself; None: something must change. `pods` are those
    that a PodDisruptionBudget holds (`namespace/name`); `facts` are lines about what is behind it."""

    code: str
    text: str
    until: datetime | None = None
    pods: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    @classmethod
    def of(cls, blocker: Blocker) -> Hold:
        if len(blocker.budgets) == 1:
            text = f"PodDisruptionBudget {blocker.budgets[0]} allows no disruption now"
            return cls(blocker.code, text, blocker.until, (blocker.pod,))
        return cls(blocker.code, blocker.text, blocker.until)

    def __str__(self) -> str:
        if not self.pods:
            return self.text
        more = f" and {len(self.pods) - _PODS_SHOWN} more" if len(self.pods) > _PODS_SHOWN else ""
        return f"{self.text}: {', '.join(self.pods[:_PODS_SHOWN])}{more}"


def together(holds: list[Hold]) -> tuple[Hold, ...]:
    """Each once, in their order; the pods of one budget in one."""
    found: dict[tuple[str, str], Hold] = {}
    for hold in holds:
        key = (hold.code, hold.text)
        known = found.get(key)
        if known is None:
            found[key] = hold
        elif set(hold.pods) - set(known.pods):
            found[key] = replace(known, pods=tuple(dict.fromkeys((*known.pods, *hold.pods))))
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Remedy:
    """A single change that was tried, and with which nothing lasting holds the node; what its end then saves, in
    millionths of a dollar per hour. `patch` is the change as data."""

    text: str
    saving: int = 0
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class Remedies:
    """At most one change of pods and one of something else; `tried` is how many changes were.

    `halfway`, where none is found: a change that lifts all that holds the node now, and what would hold it then.
    """

    found: tuple[Remedy, ...] = ()
    tried: int = 0
    halfway: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Something that would like to end a node, by the reason of a budget or the code of a deletion.

    `at` is when it does; None: now, if nothing holds the node. A `wanted` one is more than a possibility. `facts` are
    lines about the move, `saving` is what it saves, in millionths of a dollar per hour.
    `remedies` are there when something lasting holds the node.
    """

    code: str
    text: str
    at: datetime | None = None
    wanted: bool = True
    forceful: bool = False
    holds: tuple[Hold, ...] = ()
    facts: tuple[str, ...] = ()
    saving: int = 0
    remedies: Remedies | None = None

    @property
    def open(self) -> tuple[Hold, ...]:
        """The holds that do not end by themselves."""
        return tuple(hold for hold in self.holds if hold.until is None)

    def earliest(self, now: datetime) -> datetime | None:
        """When it may happen; None when not before something changes."""
        if self.open:
            return None
        dues = [hold.until for hold in self.holds if hold.until is not None]
        return max([now, *([self.at] if self.at is not None else []), *dues])


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a NodePool's budgets say for one reason. `row` is the tightest that holds now, in words; `changes` when a
    scheduled one next begins or ends."""

    reason: str
    allowed: int | None
    left: int
    row: str
    changes: datetime | None = None


@dataclass(frozen=True, slots=True)
class Budgets:
    """Of a NodePool: how many nodes count, how many are terminating or not Ready, and the numbers per reason."""

    pool: str
    nodes: int
    disrupting: int
    allowances: tuple[Allowance, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer about one node; `text` is the verdict in a line, `at` the instant that it speaks of.

    `name` is the Node's, before there is one the NodeClaim's. `holds` are those of all ends, each once. `patches` are
    the changes that would let the node go, as data, the first one first.
    """

    name: str
    code: str
    text: str
    at: datetime | None = None
    about: str = ""
    stage: Stage | None = None
    ends: tuple[End, ...] = ()
    holds: tuple[Hold, ...] = ()
    budgets: Budgets | None = None
    similar: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = ()
