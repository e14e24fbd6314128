"""Messages of the observers and the executor to the loop: small frozen messages in one inbox, which one thread empties.

Everything that changes the state passes through here, so that the state has one owner and needs no locks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Impairment, Instance, Region, ZonalShift
from kerf.model.aws.interruptions import Message
from kerf.model.aws.inventory import Resource
from kerf.model.kinds import Kind
from kerf.model.plan import Action, Reason
from kerf.model.snapshot import Proposal
from kerf.ports import Forbidden, Invalid, PortError


@dataclass(frozen=True, slots=True)
class Listed:
    """A kind's complete list; `at` is when it was asked for."""

    kind: Kind
    values: Sequence[Any]
    resource_version: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Changed:
    kind: Kind
    value: Any


@dataclass(frozen=True, slots=True)
class Removed:
    kind: Kind
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A kind's watch showed a sign of life: what it has said so far is complete as of `at`."""

    kind: Kind
    at: datetime


@dataclass(frozen=True, slots=True)
class Withheld:
    """A kind may not be read any more. What is known of it is no ground to destroy anything until it is listed
    again."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Described:
    """Every instance of the cluster, as of `at` (when Describe was asked)."""

    instances: Sequence[Instance]
    at: datetime


@dataclass(frozen=True, slots=True)
class Examined:
    """All impairments of instances, as of `at`."""

    impairments: Sequence[Impairment]
    at: datetime


@dataclass(frozen=True, slots=True)
class ShiftsRead:
    """The zones that traffic is shifted away from, all of them, as of `at`."""

    shifts: Sequence[ZonalShift]
    at: datetime


@dataclass(frozen=True, slots=True)
class Inventoried:
    """All launch templates, or all instance profiles, of the cluster, as of `at`."""

    kind: str
    resources: Sequence[Resource]
    at: datetime


@dataclass(frozen=True, slots=True)
class Resolved:
    """What AWS made of a node class, `uid` and all, as of `at`."""

    name: str
    uid: str
    facts: ClassFacts
    at: datetime
    #: The version of the cluster that images were asked for; "" for unknown.
    kubernetes_version: str = ""


@dataclass(frozen=True, slots=True)
class RegionRead:
    region: Region
    at: datetime


@dataclass(frozen=True, slots=True)
class PricesRead:
    """On-demand or spot prices, by the keys that Region has; the other mapping is empty. `key` is the chore's."""

    key: str
    at: datetime
    on_demand: Mapping[str, int] = field(default_factory=dict)
    spot: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterRead:
    facts: ClusterFacts
    at: datetime


@dataclass(frozen=True, slots=True)
class VersionNoted:
    """The Kubernetes version that another replica, which leads, has written on the lease."""

    version: str


@dataclass(frozen=True, slots=True)
class Received:
    """Messages of the interruption queue."""

    messages: Sequence[Message]
    at: datetime


@dataclass(frozen=True, slots=True)
class Proposed:
    """The slow half's answer to the snapshot of `made_at`, and until when it would be the same (see `Findings`)."""

    proposals: tuple[Proposal, ...]
    made_at: datetime
    kept: Mapping[str, Reason] = field(default_factory=dict)
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChoreFailed:
    """A poll could not be done; it is due again after a back-off."""

    key: str
    error: Exception
    at: datetime


@dataclass(frozen=True, slots=True)
class ChoreRecovered:
    """A poll that had failed is done; its answer comes apart."""

    key: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Reported:
    """A part of this process reports a failure, as `Failure` has it; without an outcome, its end."""

    verb: str
    object: str
    at: datetime
    outcome: str = ""
    error: str = ""

    @classmethod
    def of(cls, part: tuple[str, str], error: Exception | None, at: datetime) -> Reported:
        """Of a part (verb and object) that has failed with an error, or works. Other errors than of a port are bugs."""
        if error is None:
            return cls(*part, at)
        if isinstance(error, PortError):
            return cls(*part, at, outcome_of(error), str(error))
        return cls(*part, at, "failed", f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Done:
    """An action was performed, or not. `outcome` is `ok` or what stopped it; `value` is what the port answered."""

    action: Action
    outcome: str
    at: datetime
    value: Any = None
    error: Exception | None = field(default=None, compare=False)
    #: The look in which it was decided.
    reconcile_id: str = field(default="", compare=False)


def outcome_of(error: Exception) -> str:
    """What stopped a call, in the words of `kerf_actions_total`."""
    found = (name for type_, name in ((Forbidden, "forbidden"), (Invalid, "invalid")) if isinstance(error, type_))
    return next(found, "unavailable")


#: The fate of a poll, beside its answer.
Polled = ChoreFailed | ChoreRecovered

News = (
    Listed
    | Changed
    | Removed
    | Fresh
    | Withheld
    | Described
    | Examined
    | ShiftsRead
    | Inventoried
    | Resolved
    | RegionRead
    | PricesRead
    | ClusterRead
    | VersionNoted
    | Received
    | Proposed
    | ChoreFailed
    | ChoreRecovered
    | Reported
    | Done
)


class Inbox:
    """A queue that many threads fill and one drains. `wait` wakes when something is in it, or on `wake`."""

    def __init__(self) -> None:
        self._news: deque[News] = deque()
        self._event = threading.Event()

    def put(self, news: News) -> None:
        self._news.append(news)
        self._event.set()

    def drain(self) -> list[News]:
        """Everything that is in it now, oldest first."""
        self._event.clear()
        return [self._news.popleft() for _ in range(len(self._news))]

    def wake(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Whether something came within that time."""
        return self._event.wait(seconds)

    def __len__(self) -> int:
        return len(self._news)
