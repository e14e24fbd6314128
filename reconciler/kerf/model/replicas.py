"""The members of a static NodePool (one with `replicas`), sorted into those that count and those that do not.

One room adds members and another takes them away; both count here. What has been asked of the API server and is not
answered yet counts as done: a creation that is under way must not be followed by another one in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kerf.model.plan import CreateNodeClaim, DeleteObject
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool


@dataclass(frozen=True, slots=True)
class Members:
    """`active` stay, as far as anybody knows; `disrupted` are about to be replaced by a command; `going` are on their
    way out."""

    active: tuple[NodeClaim, ...] = ()
    disrupted: tuple[NodeClaim, ...] = ()
    going: tuple[NodeClaim, ...] = ()

    @property
    def number(self) -> int:
        """All of them, for each may have an instance, and the successors that commands are still to create."""
        everybody = (*self.active, *self.disrupted, *self.going)
        replaced = {claim.metadata.annotations.get(labels.REPLACES) for claim in everybody}
        return len(everybody) + sum(claim.name not in replaced for claim in self.disrupted)


def members(claims: Iterable[NodeClaim], ending: Collection[str] = ()) -> Members:
    """The claims of a pool, sorted out; `ending` are names of claims that are being deleted now."""
    active, disrupted, going = [], [], []
    for claim in claims:
        if claim.metadata.deleting or claim.is_true("InstanceTerminating") or claim.name in ending:
            going.append(claim)
        elif labels.COMMAND in claim.metadata.annotations:
            disrupted.append(claim)
        else:
            active.append(claim)
    return Members(tuple(active), tuple(disrupted), tuple(going))


def kept(pool: NodePool) -> int | None:
    """How many nodes the pool is to have; None when that is not ours to see to, or cannot be read."""
    meta = pool.metadata
    return None if meta.deleting or meta.unreadable or not pool.managed else pool.spec.replicas


def may_renew(snapshot: Snapshot, pool: NodePool) -> bool:
    """Whether members may get successors: not while there are too many, those that are being replaced among them."""
    own, replicas = members(snapshot.claims_by_pool.get(pool.name, ())), kept(pool)
    return replicas is not None and len(own.active) + len(own.disrupted) <= replicas


def asked_for(snapshot: Snapshot, pool_name: str) -> frozenset[str]:
    """The names of the pool's claims that are being created and do not show yet."""
    return frozenset(claim.name for claim in coming(snapshot) if claim.pool_name == pool_name)


def coming(snapshot: Snapshot) -> Iterator[NodeClaim]:
    """Claims that are being created and do not show yet."""
    claims = (action.claim for action in snapshot.under_way if isinstance(action, CreateNodeClaim))
    return (claim for claim in claims if claim.name not in snapshot.node_claims)


def being_deleted(snapshot: Snapshot) -> frozenset[str]:
    """The names of claims whose deletion is under way and does not show yet."""
    refs = (action.ref for action in snapshot.under_way if isinstance(action, DeleteObject))
    return frozenset(ref.name for ref in refs if ref.kind == "NodeClaim")


def room(snapshot: Snapshot, pool: NodePool, wanted: int) -> int:
    """How many of so many new members `limits.nodes` allows now; those on their way out count until they are gone.

    Raises ValueError when the limit is no quantity.
    """
    limits = pool.limits
    if limits is None or "nodes" not in limits:
        return wanted
    there = members(snapshot.claims_by_pool.get(pool.name, ())).number + len(asked_for(snapshot, pool.name))
    return max(0, min(wanted, limits["nodes"] - there))
