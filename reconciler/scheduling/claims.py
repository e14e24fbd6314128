"""From a planned node to the NodeClaim that asks for it.

The name is a hash of what the claim is for, so that a decision that is repeated before its first write shows makes the
same claim again and meets AlreadyExists, instead of making a second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from api import labels
from api.requirements import IN, Requirements, requirement
from api.v1.hashes import NODEPOOL_HASH_VERSION, nodepool_hash
from api.v1.meta import Entry, ObjectMeta, OwnerReference
from api.v1.nodeclaim import ClaimResources, NodeClaim, NodeClaimSpec
from api.v1.nodepool import NodePool
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.solution import NewNode

#: Hex digits of a name's hash, and of a planned pod's mark.
_NAME_DIGITS = 8
_MARK_DIGITS = 6
_LONGEST_POOL_PART = 54


def to_claim(snapshot: Snapshot, node: NewNode, *, salt: str, annotations: Mapping[str, str] = {}) -> NodeClaim:
    """The complete NodeClaim of a planned node. `salt` tells apart claims that are planned for the same pods."""
    pool = snapshot.node_pools[node.pool]
    template = pool.spec.template.spec
    return NodeClaim(
        metadata=ObjectMeta(
            name=claim_name(snapshot, node, salt),
            labels=claim_labels(pool, node.requirements),
            annotations={**_annotations(snapshot, pool, node), **annotations},
            finalizers=(labels.TERMINATION_FINALIZER,),
            owner_references=(owner_reference(pool),),
        ),
        spec=NodeClaimSpec(
            node_class_ref=template.node_class_ref,
            requirements=claim_entries(snapshot, node),
            resources=ClaimResources(requests=node.requests.texts()),
            taints=template.taints,
            startup_taints=template.startup_taints,
            expire_after=template.expire_after,
            termination_grace_period=template.termination_grace_period,
        ),
    )


def claim_name(snapshot: Snapshot, node: NewNode, salt: str) -> str:
    """`<pool>-<hash>` over the salt and the pods' UIDs; a longer hash where a living claim has the short one."""
    uids = sorted(snapshot.pods[key].metadata.uid if key in snapshot.pods else key for key in node.pods)
    digest = hashlib.sha256("\n".join([salt, node.pool, *uids]).encode()).hexdigest()
    names = (f"{node.pool[:_LONGEST_POOL_PART]}-{digest[:digits]}" for digits in range(_NAME_DIGITS, len(digest)))
    return next(name for name in names if name not in snapshot.node_claims)


def owner_reference(pool: NodePool) -> OwnerReference:
    return OwnerReference(
        api_version="karpenter.sh/v1",
        kind="NodePool",
        name=pool.name,
        uid=pool.metadata.uid,
        block_owner_deletion=True,
    )


def claim_labels(pool: NodePool, requirements: Requirements) -> dict[str, str]:
    """The pool's template labels, and one value for each custom key that the pool defines or a pod pins down."""
    defined = pool.requirements()
    chosen = {
        key: value
        for key, row in sorted(requirements.items())
        if (key in defined or not row.complement)
        and key not in labels.WELL_KNOWN
        and not labels.is_restricted(key)
        and (value := row.any_value()) is not None
    }
    return {**chosen, **pool.template_labels()}


def claim_entries(snapshot: Snapshot, node: NewNode) -> tuple[Entry, ...]:
    """The node's requirements with its instance types and the capacity types they can be had in."""
    least = node.requirements.get(labels.INSTANCE_TYPE)
    capacity = node.requirements.get(labels.CAPACITY_TYPE)
    rows = node.requirements.without(labels.INSTANCE_TYPE, labels.HOSTNAME, labels.CAPACITY_TYPE)
    types = node.instance_types[: snapshot.settings.max_instance_types]
    exact = Requirements(
        (
            *rows.values(),
            requirement(labels.INSTANCE_TYPE, IN, types, least.min_values if least else None),
            requirement(labels.CAPACITY_TYPE, IN, node.capacity_types, capacity.min_values if capacity else None),
        )
    )
    return tuple(msgspec.convert(entry, Entry) for entry in exact.entries())


def pod_mark(uid: str) -> str:
    """A short mark of a pod's UID, by which a claim remembers the pods that it was planned for."""
    return hashlib.sha256(uid.encode()).hexdigest()[:_MARK_DIGITS]


def _annotations(snapshot: Snapshot, pool: NodePool, node: NewNode) -> dict[str, str]:
    marks = sorted(pod_mark(snapshot.pods[key].metadata.uid) for key in node.pods if key in snapshot.pods)
    return {
        **pool.spec.template.metadata.annotations,
        labels.NODEPOOL_HASH: nodepool_hash(pool),
        labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION,
        labels.MIN_VALUES_RELAXED: "true" if node.min_values_relaxed else "false",
        labels.PLANNED_PODS: ",".join(marks),
        **_overlay_notes(snapshot, pool, node),
    }


def _overlay_notes(snapshot: Snapshot, pool: NodePool, node: NewNode) -> dict[str, str]:
    """Whether NodeOverlays have changed the price or the capacity of a type that the claim lists."""
    listed = set(node.instance_types[: snapshot.settings.max_instance_types])
    types = [t for t in snapshot.overlaid.get((pool.name, pool.class_name), ()) if t.name in listed]
    told = {
        labels.PRICE_OVERLAY: any(t.price_overlay for t in types),
        labels.CAPACITY_OVERLAY: any(t.capacity_overlay for t in types),
    }
    return {annotation: "true" for annotation, holds in told.items() if holds}
