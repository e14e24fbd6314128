"""From a planned node to the NodeClaim that asks for it.

The name is a hash of the claim's purpose: a repeat of a decision, before the first write is visible, makes the same
name and meets AlreadyExists instead of a second claim. While a claim with that name exists, the next number goes into
the hash. So there is always another name, and none is longer than 63 characters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import count

from msgspec.structs import replace

from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import NewNode
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.v1.hashes import NODEPOOL_HASH_VERSION, nodepool_hash
from kerf_api.v1.meta import Entry, ObjectMeta, OwnerReference, decode
from kerf_api.v1.nodeclaim import ClaimResources, NodeClaim, NodeClaimSpec
from kerf_api.v1.nodepool import NodePool

#: Hex digits of a name's hash, and of a planned pod's mark.
_NAME_DIGITS = 8
_MARK_DIGITS = 6
#: With a hyphen and the digits it is 63 characters, the longest value of a label.
_LONGEST_POOL_PART = 54


def to_claim(snapshot: Snapshot, node: NewNode, *, salt: str, annotations: Mapping[str, str] = {}) -> NodeClaim:
    """The complete NodeClaim of a planned node. `salt` distinguishes claims that are planned for the same pods."""
    pool = snapshot.node_pools[node.pool]
    own = {**_planned(snapshot, node), **annotations}
    made = _claim(pool, claim_name(snapshot, node, salt), claim_entries(snapshot, node), node.requirements, own)
    return replace(made, spec=replace(made.spec, resources=ClaimResources(requests=node.requests.texts())))


def member_claim(snapshot: Snapshot, pool: NodePool, name: str) -> NodeClaim:
    """The NodeClaim of a static pool's member: what the template says. Which type it gets is for the launch to choose.

    Raises ValueError when a requirement of the template is malformed.
    """
    requirements = pool.requirements()
    rows = requirements.without(labels.HOSTNAME)
    entries = tuple(decode(Entry, entry) for entry in rows.entries())
    types = (t for t in _overlaid(snapshot, pool) if t.requirements.conflict(requirements) is None)
    return _claim(pool, name, entries, requirements, _overlay_notes(types))


def member_name(pool: NodePool, which: object) -> str:
    """`<pool>-<hash>` for the members of a static pool: their number, or whose successors they are."""
    return _name(pool.name, f"member\n{pool.metadata.uid}\n{which}")


def _name(pool_name: str, purpose: str) -> str:
    """`<pool>-<hash of the purpose>`; a long pool name is cut."""
    digest = hashlib.sha256(purpose.encode()).hexdigest()
    return f"{pool_name[:_LONGEST_POOL_PART].rstrip('-.')}-{digest[:_NAME_DIGITS]}"


def _claim(
    pool: NodePool, name: str, entries: tuple[Entry, ...], requirements: Requirements, annotations: Mapping[str, str]
) -> NodeClaim:
    template = pool.spec.template.spec
    hashes = {labels.NODEPOOL_HASH: nodepool_hash(pool), labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION}
    return NodeClaim(
        metadata=ObjectMeta(
            name=name,
            labels=claim_labels(pool, requirements),
            annotations={**_handed_down(pool), **hashes, **annotations},
            finalizers=(labels.TERMINATION_FINALIZER,),
            owner_references=(owner_reference(pool),),
        ),
        spec=NodeClaimSpec(
            node_class_ref=template.node_class_ref,
            requirements=entries,
            taints=template.taints,
            startup_taints=template.startup_taints,
            expire_after=template.expire_after,
            termination_grace_period=template.termination_grace_period,
        ),
    )


def _handed_down(pool: NodePool) -> dict[str, str]:
    """The template's annotations but those that Kerf writes on NodeClaims itself: a template cannot speak for it."""
    own = pool.spec.template.metadata.annotations
    return {key: value for key, value in own.items() if key not in labels.WRITTEN_ON_CLAIMS}


def claim_name(snapshot: Snapshot, node: NewNode, salt: str) -> str:
    """`<pool>-<hash>` over the salt and the pods' UIDs, and the number of the first name that is free."""
    purpose = "\n".join([salt, node.pool, *sorted(_uids(snapshot, node))])
    names = (_name(node.pool, f"{purpose}\n{number}" if number else purpose) for number in count())
    return next(name for name in names if is_free(snapshot, name))


def is_free(snapshot: Snapshot, name: str) -> bool:
    """Whether a new NodeClaim may have the name.

    That of one whose finalizer was taken by hand is not free while its instance runs: AWS' tags would name one
    NodeClaim for two instances.
    """
    return name not in snapshot.node_claims and name not in snapshot.instances.claim_names


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
    return tuple(decode(Entry, entry) for entry in exact.entries())


@lru_cache(maxsize=1 << 14)
def pod_mark(uid: str) -> str:
    """A short mark of a pod's UID, by which a claim remembers the pods that it was planned for."""
    return hashlib.sha256(uid.encode()).hexdigest()[:_MARK_DIGITS]


def _uids(snapshot: Snapshot, node: NewNode) -> Iterator[str]:
    """Of the pods that the node is for."""
    return (uid_of(snapshot, key) for key in node.pods)


def uid_of(snapshot: Snapshot, key: str) -> str:
    """A pod's UID by its key; a virtual pod's is its key."""
    return snapshot.pods[key].metadata.uid if key in snapshot.pods else key


def _planned(snapshot: Snapshot, node: NewNode) -> dict[str, str]:
    marks = sorted(pod_mark(uid) for uid in _uids(snapshot, node))
    listed = set(node.instance_types[: snapshot.settings.max_instance_types])
    return {
        labels.MIN_VALUES_RELAXED: "true" if node.min_values_relaxed else "false",
        labels.PLANNED_PODS: ",".join(marks),
        **({labels.REQUESTED_DRIVERS: ",".join(node.drivers)} if node.drivers else {}),
        **({labels.PROBES: ",".join(node.probes)} if node.probes else {}),
        **({labels.ALTERNATIVE_FOR: ",".join(node.alternative_for)} if node.alternative_for else {}),
        **_overlay_notes(t for t in _overlaid(snapshot, snapshot.node_pools[node.pool]) if t.name in listed),
    }


def _overlaid(snapshot: Snapshot, pool: NodePool) -> Catalogue:
    """The pool's types, if NodeOverlays have changed any."""
    return snapshot.overlaid.get((pool.name, pool.class_name), ())


def _overlay_notes(types: Iterable[InstanceType]) -> dict[str, str]:
    """Whether NodeOverlays have changed the price or the capacity of one of these types, which a claim may become."""
    known = list(types)
    told = {
        labels.PRICE_OVERLAY: any(t.price_overlay for t in known),
        labels.CAPACITY_OVERLAY: any(t.capacity_overlay for t in known),
    }
    return {annotation: "true" for annotation, holds in told.items() if holds}
