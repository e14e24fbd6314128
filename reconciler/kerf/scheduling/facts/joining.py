"""Nodes that have joined and are not initialized in time: they hold pods no longer, and their NodePool makes one more.

Until a newer node of the NodePool is initialized it makes no further one: whatever keeps one node from its
initialization (a start-up taint that stays, a network plugin that does not start) may keep them all. Where the latest
nodes have not even joined, it makes one at a time until one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from kerf.model.backoff import Registration, registrations, unregistered, unregistered_since
from kerf.model.claims import is_outdated, planned_pods, true_since
from kerf.model.memory import Step, Turn
from kerf.model.mismatches import place
from kerf.model.snapshot import Snapshot
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: Time for a node from its registration to its initialization; then other nodes are planned for its pods.
INITIALIZES: Final = timedelta(minutes=10)
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


def limited_pools(turn: Turn) -> frozenset[str]:
    """The NodePools that may make one node at most now."""
    failing = failing_pools(turn).items()
    return frozenset(name for name, given_up in failing if nodes_left(turn.snapshot, name, given_up) is not None)


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
    or of its class. Nodes on their way, and those that are initialized, say it whether they have drifted or not."""
    pool, managed = snapshot.node_pools.get(pool_name), snapshot.claims_by_pool.get(pool_name, ())
    node_class = snapshot.node_classes.get(pool.class_name) if pool is not None else None
    present = [one for one in managed if one.managed and not is_outdated(one, pool, node_class)]
    overtaken = [one for one in present if _drifted_when_late(one)]
    if not overtaken:
        return present
    again = _drift_that_comes_again(present)
    released = {one.name for one in overtaken if _drift(one) not in again}
    return [one for one in present if one.name not in released]


def _drifted_when_late(claim: NodeClaim) -> bool:
    """Whether a node was late before it drifted. Drift of a younger node may be a matter of the node: what alters its
    instance after the launch alters the next one too."""
    late, drifted = late_at(claim), true_since(claim, "Drifted")
    return late is not None and drifted is not None and drifted >= late


def _drift_that_comes_again(claims: Iterable[NodeClaim]) -> frozenset[str]:
    """What nodes have drifted by that were made when others had drifted by just that. No change of the NodePool or of
    its class does that, so such drift would release one attempt after the other."""
    drifted = [(_drift(one), since, one) for one in claims if (since := true_since(one, "Drifted")) is not None]
    first: dict[str, datetime] = {}
    for how, since, _ in drifted:
        first[how] = min(since, first.get(how, since))
    made = ((how, one.metadata.creation_timestamp) for how, _, one in drifted)
    return frozenset(how for how, at in made if at is not None and at >= first[how])


def _drift(claim: NodeClaim) -> str:
    """What a node has drifted by: the values on both sides are part of it."""
    condition = claim.condition("Drifted")
    return condition.text if condition is not None else ""


def nodes_left(snapshot: Snapshot, pool_name: str, given_up: datetime | None) -> int | None:
    """How many nodes a NodePool may make now of which a node is late, or none has joined lately: 1 or 0. None when
    there is no such limit, or a newer node is initialized."""
    claims = _present(snapshot, pool_name)
    if joins_fail(snapshot, pool_name, given_up):
        return 0 if any(not one.metadata.deleting and not one.is_true("Registered") for one in claims) else 1
    late = [at for one in claims if (at := late_at(one)) is not None and at <= snapshot.now]
    if not late:
        return None
    first = min(late)
    newer = [one for one in claims if (at := one.metadata.creation_timestamp) is not None and at >= first]
    if any(one.is_true("Initialized") for one in newer):
        return None
    return 0 if any(not one.metadata.deleting for one in newer) else 1


def members_left(snapshot: Snapshot, pool: NodePool) -> int | None:
    """How many members a static NodePool may make now of which none has joined lately; None when there is no such
    limit. Members that are late with their initialization count as members: no others are made in their place."""
    given_up = unregistered_since(pool, snapshot.now)
    return nodes_left(snapshot, pool.name, given_up) if joins_fail(snapshot, pool.name, given_up) else None


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
