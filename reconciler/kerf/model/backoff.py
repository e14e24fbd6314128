"""How long to leave something alone after it failed: waits that double, spread by a hash so that not all end at once.

A NodePool's own back-off stands in an annotation of the pool, for its failed claims are gone by the time it counts, and
a restart is no reason to launch again what has just failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from kerf.model.annotations import read
from kerf.model.instants import Instant, is_ahead
from kerf_api import labels
from kerf_api.v1.meta import Value
from kerf_api.v1.nodepool import NodePool


@dataclass(frozen=True, slots=True)
class Steps:
    """The first wait and the longest one."""

    first: timedelta
    longest: timedelta

    def after(self, failures: int, subject: str = "") -> timedelta:
        """The wait after so many failures in a row (1 or more), spread by up to a tenth by the subject's hash."""
        doublings: int = 2 ** min(failures - 1, 20)
        wait = min(self.first * doublings, self.longest)
        spread = hashlib.sha256(f"{subject} {failures}".encode()).digest()[0] / 2550
        return wait * (1 + spread)


#: The first wait outlasts the ten seconds to the next pass over pods that wait, so that it tries another pool.
POOL_STEPS: Final = Steps(timedelta(seconds=15), timedelta(minutes=5))


#: The reason of a NodeClaim whose node has not joined in time.
REGISTRATION_FAILED: Final = "RegistrationFailed"
#: Two nodes in a row that have not joined say something of the next one, for an hour.
_IN_A_ROW: Final = 2
_TOLD: Final = timedelta(hours=1)


#: So many results of a NodePool are kept; each names so many pods, and labels.
KEPT: Final = 4
MOST_PODS: Final = 8
_MOST_PLACES: Final = 8


class Registration(Value, frozen=True, kw_only=True):
    """How a NodeClaim, by its UID, ended up; `reason` is empty when it registered.

    Of one that failed, `where` has the NodePool, zone, architecture and instance type of its node, by label, and `pods`
    the marks of some of the pods that it was made for.
    """

    claim: str
    at: Instant
    reason: str = ""
    message: str = ""
    where: Annotated[Mapping[str, str], msgspec.Meta(max_length=_MOST_PLACES)] = {}
    pods: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_PODS)] = ()


Registrations = tuple[Registration, ...]


def registrations(pool: NodePool, now: datetime) -> Registrations:
    """The latest that the pool's annotation holds, without those ahead of now; none when it cannot be read."""
    found = read(pool.metadata.annotations, labels.REGISTRATIONS, Registrations) or ()
    return tuple(one for one in found[-KEPT:] if not is_ahead(one.at, now))


def unregistered(pool: NodePool, now: datetime) -> tuple[datetime, datetime] | None:
    """When the first of the latest nodes was given up, if none of them has joined, and until when that counts; None
    when they say nothing."""
    found = registrations(pool, now)
    fails = len(found) >= _IN_A_ROW and all(one.reason == REGISTRATION_FAILED for one in found)
    return (found[0].at, found[-1].at + _TOLD) if fails and found[-1].at + _TOLD > now else None


def unregistered_since(pool: NodePool, now: datetime) -> datetime | None:
    """The first of these instants."""
    found = unregistered(pool, now)
    return found[0] if found is not None else None


class PoolFailures(Value, frozen=True, kw_only=True):
    """How often in a row a pool's launches have come to nothing, since when it is left alone, and whose they were."""

    count: int
    at: Instant
    claims: tuple[str, ...] = ()


def remembered(pool: NodePool, now: datetime) -> PoolFailures | None:
    """The failures that the pool's annotation holds; None without one, or when it cannot be read or is ahead of now."""
    known = read(pool.metadata.annotations, labels.BACK_OFF, PoolFailures)
    return None if known is None or is_ahead(known.at, now) else known


def until(pool: NodePool, now: datetime) -> datetime | None:
    """Before this instant no node is made from the pool; None when nothing failed."""
    known = remembered(pool, now)
    return None if known is None else ends(known, pool)


def ends(failures: PoolFailures, pool: NodePool) -> datetime:
    return failures.at + POOL_STEPS.after(max(failures.count, 1), pool.metadata.uid)
