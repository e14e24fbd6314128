"""Static NodePools that have more nodes than `spec.replicas` says: the surplus is deleted, whatever budgets say.

Those that cost least go first: claims without an instance, empty nodes that are not ready or not initialized, other
empty nodes, then by what their pods lose and how long they would have lived; nodes with a protected pod are the last.
Draining respects PodDisruptionBudgets as ever. Source: disruption reference §1.4, §5.10.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Final

from kerf.disruption.candidates import costs
from kerf.disruption.on_nodes import ended, leaving, tried
from kerf.model import kinds
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Step, Turn
from kerf.model.plan import NOTHING, DeleteObject, Plan, Reason, Refusal, Source, joined
from kerf.model.replicas import being_deleted, kept, members
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import durations
from kerf_api.texts import counted
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: What the choice rests on, and the drain.
_SOURCES: Final = frozenset({Source.NODE_POOLS, Source.NODE_CLAIMS, Source.NODES, Source.PODS})
_NO_INSTANCE, _UNREADY, _EMPTY, _USED, _PROTECTED = range(5)
#: Which sort of member it is, what its end costs, and its name.
Rank = tuple[int, Fraction, str]


def surplus(turn: Turn, ending: frozenset[str] = frozenset()) -> Plan:
    """Delete what static pools have too many of; `ending` are claims that this very plan deletes already."""
    if not turn.snapshot.settings.gates.static_capacity:
        return NOTHING
    gone = ending | being_deleted(turn.snapshot)
    names = turn.all(_OVERFULL, turn.noted).spoken
    return joined(
        tried(turn.snapshot, f"nodepool/{name}", partial(_trimmed, turn.snapshot, name, gone)) for name in names
    )


def _trimmed(snapshot: Snapshot, name: str, gone: frozenset[str]) -> Plan:
    pool = snapshot.node_pools[name]
    own, replicas = members(snapshot.claims_by_pool.get(name, ()), gone), kept(pool)
    assert replicas is not None
    excess = len(own.active) - replicas
    if excess <= 0:
        return NOTHING
    stale = sorted(str(source) for source in _SOURCES if not snapshot.fresh(source))
    if stale:
        reason = Reason("StaleSource", f"waiting for a complete list of {', '.join(stale)}")
        return Plan(refusals=(Refusal(f"nodepool/{name}", reason),), next_due=_soon(snapshot))
    order = sorted((_rank(snapshot, claim), claim) for claim in own.active if not claim.metadata.unreadable)
    return joined(ended(snapshot, _deletion(snapshot, pool, claim, rank[0])) for rank, claim in order[:excess])


def _soon(snapshot: Snapshot) -> datetime:
    return snapshot.now + snapshot.settings.disruption_period


def _rank(snapshot: Snapshot, claim: NodeClaim) -> Rank:
    if not claim.status.provider_id:
        return _NO_INSTANCE, Fraction(0), claim.name
    state = snapshot.state_nodes[claim.name]
    here = [pod for pod in _pods_on(snapshot, state) if not pods.terminal(pod)]
    guarded_by_pod = any(_protected(snapshot, pod) for pod in here)
    if not guarded_by_pod and not _expected(snapshot, claim.name) and all(pods.of_daemon_set(pod) for pod in here):
        able = state.initialized and state.node is not None and state.node.ready
        return _EMPTY if able else _UNREADY, Fraction(0), claim.name
    cost = sum(costs.eviction_cost(pod) for pod in here) * _life_left(snapshot, claim)
    return (_PROTECTED if guarded_by_pod else _USED), cost, claim.name


def _protected(snapshot: Snapshot, pod: Pod) -> bool:
    """What can be read only in part may be protected."""
    return bool(pod.metadata.unreadable) or (pods.active(pod) and pods.protected(pod, snapshot.now))


def _expected(snapshot: Snapshot, key: str) -> bool:
    """Whether a pod has been promised the node."""
    until = snapshot.nominated_until.get(key)
    return until is not None and until > snapshot.now


def _life_left(snapshot: Snapshot, claim: NodeClaim) -> Fraction:
    """The part of its life that the claim has before it, 0 to 1; 1 of one that never expires."""
    life, created = durations.parse_nillable(claim.spec.expire_after), claim.metadata.creation_timestamp
    if not life or created is None:
        return Fraction(1)
    left = Fraction((created + life - snapshot.now) // timedelta(seconds=1), max(life // timedelta(seconds=1), 1))
    return max(Fraction(0), min(Fraction(1), left))


def _pods_on(snapshot: Snapshot, state: StateNode) -> Iterable[Pod]:
    return snapshot.pods.on(state.node.name) if state.node is not None else ()


def _deletion(snapshot: Snapshot, pool: NodePool, claim: NodeClaim, sort: int) -> DeleteObject:
    """An empty node is checked again: were a pod to come just now, another one might have to go."""
    state, look = snapshot.state_nodes[claim.name], sort in (_UNREADY, _EMPTY)
    return DeleteObject(
        reason=Reason(
            "ScaledDown", f"NodePool {pool.name} has more than {counted(pool.spec.replicas or 0, 'replica')}"
        ),
        sources=_SOURCES,
        ref=kinds.ref(claim),
        uid=claim.metadata.uid,
        node_name=state.node.name if look and state.node is not None else "",
        expected_pods=frozenset(pod.metadata.uid for pod in _pods_on(snapshot, state)) if look else None,
        moved=leaving(snapshot, state),
    )


def _excess(snapshot: Snapshot, name: str) -> tuple[bool, None]:
    """Whether a pool has more members than it is to have; those that a command replaces go with the command."""
    replicas = kept(snapshot.node_pools[name])
    return replicas is not None and len(members(snapshot.claims_by_pool.get(name, ())).active) > replicas, None


_OVERFULL: Step[Snapshot, bool] = Step("static NodePools with surplus nodes", "node_pools", _excess, speaks=bool)
