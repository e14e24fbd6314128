"""Nodes that have joined and are not initialized in time: they hold pods no longer, and their NodePool makes one more.

Whatever keeps one node from its initialization (a start-up taint that stays, a network plugin that does not start, no
device plugin) may keep all that are like it. So the NodePool makes no further such node until a newer one is
initialized that was planned alike (see `planned_alike.py`). It makes nodes that cannot become like the late ones one at
a time until one of these is. Where the latest nodes have not even joined, it makes one at a time until one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from weakref import WeakKeyDictionary

from kerf.model.backoff import Registration, registrations, unregistered, unregistered_since
from kerf.model.claims import is_outdated, planned_pods, true_since
from kerf.model.instants import ALWAYS
from kerf.model.memory import Step, Turn
from kerf.model.mismatches import place
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.facts.planned_alike import Kind, answers, bears_on, kind_of_new
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: Time for a node from its registration to its initialization; then other nodes are planned for its pods.
INITIALIZES: Final = timedelta(minutes=10)
#: A late node says something of the next ones for so long. What has kept it may be gone without any change of the
#: NodePool, and a node that worked, and has answered for it, may be gone too.
_COUNTS: Final = timedelta(days=1)
#: The wait for a further attempt after drift is doubled so often at most: to 21 hours.
_DOUBLED: Final = 7
#: So many of the latest failures bear on the next attempt.
_LATEST: Final = 8
NOT_INITIALIZED: Final = "NodesNotInitialized"
NOT_REGISTERED: Final = "NodesNotRegistered"


def late_at(claim: NodeClaim) -> datetime | None:
    """The instant at which a node that is registered is late with its initialization; None when it is initialized."""
    registered = claim.condition("Registered")
    if registered is None or registered.status != "True" or claim.is_true("Initialized") or claim.metadata.deleting:
        return None
    since = registered.last_transition_time
    return since + INITIALIZES if since is not None else None


def failing_pools(turn: Turn) -> Mapping[str, datetime | None]:
    """The NodePools of which a node is late with its initialization, or none of the latest has joined: since when, for
    the latter."""
    late = frozenset(turn.all(_LATE, turn.noted).spoken.values())
    return {**dict.fromkeys(late), **turn.all(_UNREGISTERED, turn.noted).spoken}


def joins_fail(snapshot: Snapshot, pool_name: str, given_up: datetime | None) -> bool:
    """Whether none of the NodePool's latest nodes has joined; the first of them was `given_up` then."""
    if given_up is None:
        return False
    earliest = given_up - snapshot.settings.registration_timeout
    claims = snapshot.claims_by_pool.get(pool_name, ())
    joined = (at for claim in claims if (at := true_since(claim, "Registered")) is not None)
    return not any(at >= earliest for at in joined)


def latest_failures(snapshot: Snapshot, pool_name: str) -> Sequence[Registration]:
    """The latest nodes of a NodePool that have not joined, and those that are late with their initialization."""
    pool = snapshot.node_pools.get(pool_name)
    known = registrations(pool, snapshot.now) if pool is not None else ()
    late = (
        Registration(
            claim=one.metadata.uid,
            at=at,
            reason=NOT_INITIALIZED,
            where=place(one.metadata.labels),
            pods=tuple(sorted(planned_pods(one))),
        )
        for one in _present(snapshot, pool_name)
        if (at := late_at(one)) is not None and at <= snapshot.now
    )
    failed = sorted((*(one for one in known if one.reason), *late), key=lambda one: (one.at, one.claim))
    return failed[-_LATEST:]


def _present(snapshot: Snapshot, pool_name: str) -> list[NodeClaim]:
    """The NodeClaims that say something of the next one of a NodePool: not those that were made before a change of it
    or of its class."""
    pool, managed = snapshot.node_pools.get(pool_name), snapshot.claims_by_pool.get(pool_name, ())
    node_class = snapshot.node_classes.get(pool.class_name) if pool is not None else None
    return [one for one in managed if one.managed and not is_outdated(one, pool, node_class)]


def late_unanswered(snapshot: Snapshot, pool_name: str) -> bool:
    """Whether a node of a NodePool is late and no newer one is initialized."""
    return bool(_Late(_present(snapshot, pool_name), snapshot.now).unanswered())


@dataclass(frozen=True, slots=True)
class Limit:
    """How many nodes of a NodePool that are like a new one may be made now: 1 or 0. That is because none of the latest
    has joined (`joins_fail`), or because late ones may be like it (`alike`), or only because some are late."""

    pool: str
    left: int
    joins_fail: bool = False
    alike: bool = False


class Limits:
    """The limits on new nodes of NodePools of which a node is late, or none has joined lately (`failing_pools`)."""

    def __init__(self, snapshot: Snapshot, failing: Mapping[str, datetime | None]) -> None:
        self._snapshot, self._failing = snapshot, failing
        self._pools: dict[str, _Late] = {}
        self._known: dict[tuple[str, Kind], Limit | None] = {}

    def of(self, node: NewNode) -> Limit | None:
        """The limit that a new node is under; None when it is under none."""
        if node.pool not in self._failing:
            return None
        key = (node.pool, kind_of_new(node))
        if key not in self._known:
            self._known[key] = self._found(*key)
        return self._known[key]

    def bars(self, node: NewNode) -> Limit | None:
        """The limit by which a new node may not be made now."""
        limit = self.of(node)
        return limit if limit is not None and not limit.left else None

    def _found(self, name: str, kind: Kind) -> Limit | None:
        left = _left_until_joined(self._snapshot, name, self._failing[name])
        if left is not None:
            return Limit(name, left, joins_fail=True)
        if name not in self._pools:
            self._pools[name] = _Late(_present(self._snapshot, name), self._snapshot.now)
        late = self._pools[name]
        alike = late.left_alike(kind)
        found = [left for left in (alike, late.left_of_all()) if left is not None]
        return Limit(name, min(found), alike=alike is not None) if found else None


#: Of each turn: its simulations ask about nodes of the same kinds.
_LIMITS: Final = WeakKeyDictionary[Turn, Limits]()


def limits_of(turn: Turn) -> Limits:
    """The limits of a turn. What is decided by them rests on the steps that are asked here each time."""
    failing = failing_pools(turn)
    known = _LIMITS.get(turn)
    if known is None:
        known = _LIMITS[turn] = Limits(turn.snapshot, failing)
    return known


class _Late:
    """The late nodes of a NodePool, and what may be made beside them."""

    def __init__(self, claims: Sequence[NodeClaim], now: datetime) -> None:
        self._claims, self._now = claims, now
        self._late = _late_ones(claims, now)
        self._well = [one for one in claims if one.is_true("Initialized")]

    def unanswered(self) -> Mapping[str, datetime]:
        """By name, those after which no node was made that is initialized, and since when they are late."""
        proof = max(map(_made, self._well), default=ALWAYS)
        return {one.name: at for one, at in self._late if proof < at}

    def left_alike(self, kind: Kind) -> int | None:
        """How many nodes of a kind may be made. None when no late one may be like them, or for each that may a newer
        node is initialized that was planned as they are."""
        like = [(one, at) for one, at in self._late if bears_on(one, kind)]
        if not like:
            return None
        claims = [one for one in self._claims if bears_on(one, kind)]
        return _left(claims, {one.name: at for one, at in like if not self._answered(one, at, kind)}, self._now)

    def _answered(self, late: NodeClaim, at: datetime, kind: Kind) -> bool:
        return any(_made(one) >= at and answers(one, late, kind) for one in self._well)

    def left_of_all(self) -> int | None:
        """How many nodes may be made, whether they are like the late ones or not. None when a newer one is initialized.

        What keeps the late ones may keep any other, too: each attempt that is late waits twice as long for the next.
        """
        late = self.unanswered()
        if not late:
            return None
        newer = _newer(self._claims, late)
        if any(one.name not in late for one in newer):
            return 0
        wait = INITIALIZES * 2 ** min(len(newer) - 1, _DOUBLED) if newer else timedelta()
        return 1 if not newer or self._now >= max(map(_made, newer)) + wait else 0


def _newer(claims: Sequence[NodeClaim], late: Mapping[str, datetime]) -> list[NodeClaim]:
    """Those that are not initialized and were made since the first of the late ones was late."""
    first, coming = min(late.values()), (one for one in claims if not one.metadata.deleting)
    return [one for one in coming if not one.is_true("Initialized") and _made(one) >= first]


def _late_ones(claims: Sequence[NodeClaim], now: datetime) -> list[tuple[NodeClaim, datetime]]:
    rows = ((one, late_at(one)) for one in claims)
    return [(one, at) for one, at in rows if at is not None and at <= now < at + _COUNTS]


def _left(claims: Sequence[NodeClaim], late: Mapping[str, datetime], now: datetime) -> int | None:
    """Beside the NodeClaims of late nodes that no newer one answers for."""
    if not late:
        return None
    newer = _newer(claims, late)
    on_its_way = any(one.name not in late for one in newer)
    failed = [one for one in claims if one.name in late]
    return 0 if on_its_way or (newer and not _may_have_helped(failed, now)) else 1


def _may_have_helped(late: Sequence[NodeClaim], now: datetime) -> bool:
    """Whether one more node is worth it after those that are late: one of them has drifted since the latest was made.

    That may be an edit that fixes what they lack, but also a controller that alters each instance after a while: each
    further attempt waits twice as long. Drift of a node before it was late may be a matter of that node.
    """
    drifts = [since for one in late if (since := _drifted_when_late(one)) is not None]
    if not drifts:
        return False
    made = [_made(one) for one in late]
    attempts = sum(at >= min(drifts) for at in made)
    return max(made) < max(drifts) and now >= max(made) + INITIALIZES * 2 ** min(attempts, _DOUBLED)


def _drifted_when_late(claim: NodeClaim) -> datetime | None:
    late, drifted = late_at(claim), true_since(claim, "Drifted")
    return drifted if late is not None and drifted is not None and drifted >= late else None


def _made(claim: NodeClaim) -> datetime:
    return claim.metadata.creation_timestamp or ALWAYS


def members_left(snapshot: Snapshot, pool: NodePool) -> int | None:
    """How many nodes a NodePool may make now of which none has joined lately: 1 or 0; None when there is no such limit.
    Late members of a static NodePool count as members: no others are made in their place."""
    return _left_until_joined(snapshot, pool.name, unregistered_since(pool, snapshot.now))


def _left_until_joined(snapshot: Snapshot, pool_name: str, given_up: datetime | None) -> int | None:
    if not joins_fail(snapshot, pool_name, given_up):
        return None
    present = _present(snapshot, pool_name)
    return 0 if any(not one.metadata.deleting and not one.is_true("Registered") for one in present) else 1


def _unregistered(snapshot: Snapshot, name: str) -> tuple[datetime | None, datetime | None]:
    return unregistered(snapshot.node_pools[name], snapshot.now) or (None, None)


_UNREGISTERED: Step[Snapshot, datetime | None] = Step(
    "nodes that have not joined", "node_pools", _unregistered, speaks=lambda since: since is not None
)


def _late(snapshot: Snapshot, name: str) -> tuple[str, datetime | None]:
    """The NodePool of a claim whose node is late; empty when it is not."""
    claim = snapshot.node_claims[name]
    late = late_at(claim) if claim.managed else None
    if late is None or late > snapshot.now:
        return "", late
    return claim.pool_name, None


_LATE: Step[Snapshot, str] = Step("late nodes", "node_claims", _late, speaks=bool)
