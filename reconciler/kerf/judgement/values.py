"""A judgement as data: codes are stable, texts are for people, the caller formats times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kerf.disruption.candidates.candidates import Blocker
from kerf.scheduling.answers.patches import Patch
from kerf_api.texts import shortened

#: The verdicts: no such node; not managed by Kerf; before initialization; being removed; can be disrupted now; can be
#: disrupted at a known time; blocked.
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
    """A line on the state of a node; `at` is the time that the text refers to."""

    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage of a node. `code`: Launching, Registering, Initializing, InUse, Disrupting, Draining, Detaching,
    Terminating, NotOurs; Unreadable when the stage is not known."""

    code: str
    text: str
    since: datetime | None = None
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """A blocker of a node's disruption. `until` is the time at which it ends by itself; None: it ends by a change only.
    `pods` are those that a PodDisruptionBudget blocks (`namespace/name`); `facts` are lines on its cause."""

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
        return f"{self.text}: {shortened(self.pods, _PODS_SHOWN)}"


def together(holds: list[Hold]) -> tuple[Hold, ...]:
    """Return each blocker once, in order; the pods of one PodDisruptionBudget in one blocker."""
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
    """A single change that removes every lasting blocker in a simulation. `saving` is that of the disruption after it,
    in millionths of a dollar per hour; `patch` is the change as data."""

    text: str
    saving: int = 0
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class Remedies:
    """At most one change of pods and one of another object; `tried` is the number of simulated changes.

    `halfway`, where none is found: a change that removes all current blockers, and the next blocker after it.
    """

    found: tuple[Remedy, ...] = ()
    tried: int = 0
    halfway: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """A possible disruption of a node; `code` is the reason of a budget or the code of a deletion.

    `at` is its time; None: now, if nothing blocks it. `wanted` is False for a disruption without a current reason.
    `facts` are lines on the move, `saving` is its saving in millionths of a dollar per hour. `remedies` are set when a
    lasting blocker exists.
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
        """The blockers that do not end by themselves."""
        return tuple(hold for hold in self.holds if hold.until is None)

    def earliest(self, now: datetime) -> datetime | None:
        """Return the earliest time of the disruption; None when a change is necessary first."""
        if self.open:
            return None
        dues = [hold.until for hold in self.holds if hold.until is not None]
        return max([now, *([self.at] if self.at is not None else []), *dues])


@dataclass(frozen=True, slots=True)
class Allowance:
    """The budgets of a NodePool for one reason. `row` is the tightest active budget as text; `changes` is the next time
    at which a scheduled budget starts or ends."""

    reason: str
    allowed: int | None
    left: int
    row: str
    changes: datetime | None = None


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a NodePool: nodes that count, nodes that are terminating or not Ready, numbers by reason."""

    pool: str
    nodes: int
    disrupting: int
    allowances: tuple[Allowance, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The explanation of one node; `text` is the verdict in a line, `at` the time that it refers to.

    `name` is that of the Node, or of the NodeClaim before the Node exists. `holds` are the blockers of all possible
    disruptions, each once. `patches` are the changes that would unblock the node, as data, the best one first.
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
