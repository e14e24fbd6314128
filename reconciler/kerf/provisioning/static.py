"""Static NodePools: as many NodeClaims as `spec.replicas` says, whether there are pods for them or not.

A member that is removed is replaced at once, within `limits.nodes`. What could not be launched now is not asked for:
the launch itself says so beforehand, so that a pool without capacity makes no claims only to give them up again. Names
are counted through, so that a repeat of the same decision meets AlreadyExists. Source: scheduling reference §1.9.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count, islice
from typing import Final

from kerf.ec2.launch import fleet
from kerf.ec2.launch.fleet import FleetProblem
from kerf.model.boundaries import MALFORMED, broken
from kerf.model.claims import check_pool
from kerf.model.memory import Memory, Step, Turn
from kerf.model.plan import NOTHING, CreateNodeClaim, Plan, Reason, Refusal, joined
from kerf.model.replicas import asked_for, kept, members, room
from kerf.model.snapshot import Snapshot
from kerf.provisioning.provision import LOOK_AGAIN
from kerf.scheduling.answers.nodeclaims import is_free, member_claim, member_name
from kerf.scheduling.context import held, not_joining, ready
from kerf.scheduling.facts.joining import NOT_REGISTERED, members_left
from kerf_api.v1.nodepool import NodePool

#: A plan creates so many claims of a pool at most; the next one continues.
_AT_ONCE: Final = 100


def keep_replicas(snapshot: Snapshot, turn: Turn | None = None, replaced: Collection[str] = ()) -> Plan:
    """Create what static pools are short of. Without the gate StaticCapacity there is nothing to keep.

    `replaced` are claims for which this very plan starts a command: their successors will need room.
    """
    if not snapshot.settings.gates.static_capacity:
        return NOTHING
    turn = turn or Memory().turn(snapshot)
    return joined(
        _guarded(turn, name, missing, replaced) for name, missing in turn.all(_SHORT, turn.noted).spoken.items()
    )


def _guarded(turn: Turn, name: str, missing: int | Reason, replaced: Collection[str]) -> Plan:
    if isinstance(missing, Reason):
        return _refused(turn.snapshot, name, missing)
    try:
        return _filled(turn, turn.snapshot.node_pools[name], missing, replaced)
    except Exception as error:  # a pool that makes no sense holds up no other
        return _refused(turn.snapshot, name, broken(error))


def _filled(turn: Turn, pool: NodePool, missing: int, replaced: Collection[str]) -> Plan:
    snapshot, asked = turn.snapshot, asked_for(turn.snapshot, pool.name)
    wanted = missing - len(asked)
    if wanted <= 0:
        return NOTHING
    obstacle = _obstacle(turn, pool)
    if obstacle is not None:
        return _refused(snapshot, pool.name, obstacle)
    promised = sum(claim.name in replaced for claim in snapshot.claims_by_pool.get(pool.name, ()))
    left = members_left(snapshot, pool)
    least = wanted if left is None else min(wanted, max(0, left - len(asked)))
    granted = min(least, max(0, room(snapshot, pool, wanted + promised) - promised))
    made = tuple(
        CreateNodeClaim(reason=Reason("Provisioned", f"one of {pool.spec.replicas} replicas"), claim=claim)
        for claim in (
            member_claim(snapshot, pool, name) for name in islice(_names(snapshot, pool, asked), min(granted, _AT_ONCE))
        )
    )
    if granted == wanted:
        return Plan(actions=made)
    if granted == least:
        text = f"{wanted - granted} of {pool.spec.replicas} replicas wait for a node to come up: the latest did not"
        return joined((Plan(actions=made), _refused(snapshot, pool.name, Reason(NOT_REGISTERED, text))))
    text = f"{wanted - granted} of {pool.spec.replicas} replicas are beyond limits.nodes"
    return joined((Plan(actions=made), _refused(snapshot, pool.name, Reason("NodeLimitReached", text))))


def _names(snapshot: Snapshot, pool: NodePool, asked: Collection[str]) -> Iterator[str]:
    """The first free names of members, endlessly."""
    names = (member_name(pool, number) for number in count())
    return (name for name in names if is_free(snapshot, name) and name not in asked)


def _refused(snapshot: Snapshot, name: str, reason: Reason) -> Plan:
    return Plan(refusals=(Refusal(f"nodepool/{name}", reason),), next_due=snapshot.now + LOOK_AGAIN)


# --- what speaks against a new member -----------------------------------------------------------------------------
def _obstacle(turn: Turn, pool: NodePool) -> Reason | None:
    """Why no member can be made now. Raises ValueError when the pool makes no sense."""
    check_pool(pool)
    if not ready(pool):
        return Reason("NodePoolNotReady", "no nodes are made while the NodePool is not Ready")
    unjoined = not_joining(pool, turn.snapshot) if members_left(turn.snapshot, pool) == 0 else None
    wait = held(pool, turn.snapshot) or unjoined
    if wait is not None:
        return Reason(wait.code, wait.text)
    return turn.one(_LAUNCHES, turn.noted, pool.name)


def _launch_problem(snapshot: Snapshot, name: str) -> tuple[Reason | None, None]:
    """Why the launch of a new member would be given up at once; None when it would be tried, or that is unknown."""
    pool = snapshot.node_pools[name]
    node_class = snapshot.node_classes.get(pool.class_name)
    if node_class is None:
        return None, None
    try:
        facts = fleet.facts_of(snapshot, node_class, snapshot.types_for(pool.name, node_class.name))
        if facts is None:
            return None, None
        found = fleet.plan((member_claim(snapshot, pool, name),), facts)
    except ValueError as error:
        return Reason(MALFORMED, str(error)), None
    return (Reason(found.reason, found.message) if isinstance(found, FleetProblem) else None), None


def _missing(snapshot: Snapshot, name: str) -> tuple[int | Reason, None]:
    """How many members a pool lacks, or why that is not known."""
    try:
        return _shortfall(snapshot, name), None
    except Exception as error:
        return broken(error), None


def _shortfall(snapshot: Snapshot, name: str) -> int:
    """Members that a command replaces are not missing: the command replaces them."""
    replicas = kept(snapshot.node_pools[name])
    if replicas is None:
        return 0
    own = members(snapshot.claims_by_pool.get(name, ()))
    return max(0, replicas - len(own.active) - len(own.disrupted))


_SHORT: Step[Snapshot, int | Reason] = Step("static NodePools with missing nodes", "node_pools", _missing, speaks=bool)
_LAUNCHES: Step[Snapshot, Reason | None] = Step(
    "launches of static NodePools", "node_pools", _launch_problem, speaks=lambda _: False
)
