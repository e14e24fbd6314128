"""A claim meets its Node: labels, annotations, taints, finalizer and owner go onto the Node, and then it counts.

The Node is written first. Registered turns True when the Node shows that, so a write that got lost is made again.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.ec2 import placement
from kerf.lifecycle.nodeclaim.liveness import joins_late
from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Plan
from kerf.model.writes import warning, with_metadata
from kerf_api import labels
from kerf_api.v1.conditions import FALSE, TRUE, UNKNOWN
from kerf_api.v1.meta import OwnerReference, Taint
from kerf_api.v1.nodeclaim import NodeClaim


def register(progress: Progress) -> Progress:
    """The next step towards Registered. Done once for a Node: what changes on it later is left alone."""
    if progress.claim.is_true("Registered"):
        return _again(progress.condition("Registered", TRUE))
    found = progress.view.nodes_of(progress.claim)
    if len(found) > 1:
        names = ", ".join(node.name for node in found)
        return progress.condition(
            "Registered", FALSE, "MultipleNodesFound", f"several nodes have this instance: {names}"
        )
    node = progress.node
    if node is None or node.metadata.deleting:
        return progress.condition("Registered", UNKNOWN, "NodeNotFound", "no node has joined the cluster yet")
    if placement.is_awaited(progress.claim):
        return _partition_learnt(progress)
    if not _joined(node):
        late, joining = joins_late(progress), _join(progress, node)
        return joining.condition("Registered", FALSE, "NodeJoinedLate", _LATE) if late else joining
    return progress.with_status(node_name=node.name).condition("Registered", TRUE)


def _partition_learnt(progress: Progress) -> Progress:
    """With the label of the partition that EC2 has chosen, as soon as it returns it; until then the Node takes no
    pods."""
    instance = progress.view.instance(progress.claim.status.provider_id)
    if instance is not None and instance.partition:
        return register(progress.with_labels({labels.PLACEMENT_PARTITION: str(instance.partition)}))
    what = "which partition it has put the machine into" if instance is not None else "of the machine"
    text = f"PlacementGroupRegistrationHook: EC2 has not returned {what} yet"
    return progress.condition("Registered", UNKNOWN, "RegistrationHookPending", text)


def joined_anew(progress: Progress) -> bool:
    """Whether the Node is younger than the registration: the one before was removed with its finalizer, and its
    machine has restarted."""
    node, told = progress.node, progress.claim.condition("Registered")
    if node is None or node.metadata.deleting or told is None:
        return False
    created, since = node.metadata.creation_timestamp, told.last_transition_time
    return created is not None and since is not None and created > since


def _again(progress: Progress) -> Progress:
    """A Node that joined again gets what any new one gets; a finalizer that is missing elsewhere was taken off."""
    node = progress.node
    if node is None or not joined_anew(progress) or labels.TERMINATION_FINALIZER in node.metadata.finalizers:
        return progress
    return _join(progress, node).with_status(node_name=node.name)


def _joined(node: Node) -> bool:
    return node.registered and labels.TERMINATION_FINALIZER in node.metadata.finalizers


def _join(progress: Progress, node: Node) -> Progress:
    claim = progress.claim
    ready = with_metadata(
        replace(node, spec=replace(node.spec, taints=_taints(claim, node))),
        labels={**node.metadata.labels, **claim.metadata.labels, labels.REGISTERED: "true"},
        annotations={**node.metadata.annotations, **_shared_annotations(claim)},
        finalizers=tuple(dict.fromkeys((*node.metadata.finalizers, labels.TERMINATION_FINALIZER))),
        owner_references=_owners(claim, node),
    )
    missing = not node.registered and not any(_unregistered(taint) for taint in node.spec.taints)
    events = (warning(claim, "UnregisteredTaintMissing", _MISSING),) if missing else ()
    return progress.with_node(ready).also(Plan(events=events))


_LATE = "the node joined, but was seen only after its time was over; it has as long again to be registered"
_MISSING = f"the node joined without the taint {labels.UNREGISTERED_TAINT}: pods may have been bound to it too early"


def _unregistered(taint: Taint) -> bool:
    return taint.key == labels.UNREGISTERED_TAINT and taint.effect == "NoExecute"


def _taints(claim: NodeClaim, node: Node) -> tuple[Taint, ...]:
    """The Node's without the unregistered one, and the claim's that are missing (by key and effect)."""
    kept = [taint for taint in node.spec.taints if not _unregistered(taint)]
    if node.metadata.labels.get(labels.DO_NOT_SYNC_TAINTS) == "true":
        return tuple(kept)
    for taint in (*claim.spec.taints, *claim.spec.startup_taints):
        if not any(taint.matches(other) for other in kept):
            kept.append(taint)
    return tuple(kept)


def _shared_annotations(claim: NodeClaim) -> dict[str, str]:
    """All but our own notes about launches and commands, which belong to the claim."""
    own = f"{labels.KERF}/"
    return {key: value for key, value in claim.metadata.annotations.items() if not key.startswith(own)}


def _owners(claim: NodeClaim, node: Node) -> tuple[OwnerReference, ...]:
    owner = OwnerReference(
        api_version=f"{labels.GROUP}/v1",
        kind="NodeClaim",
        name=claim.name,
        uid=claim.metadata.uid,
        block_owner_deletion=True,
    )
    others = node.metadata.owner_references
    return others if any(o.uid == owner.uid for o in others) else (*others, owner)


def hydrate(progress: Progress) -> Progress:
    """Claims and Nodes from before that label existed get the name of their node class."""
    ref = progress.claim.spec.node_class_ref
    label = {f"{ref.group}/{ref.kind.lower()}": ref.name}
    if label.keys() - progress.claim.metadata.labels.keys():
        progress = progress.with_labels(label)
    node = progress.node
    if node is not None and node.registered and label.keys() - node.metadata.labels.keys():
        progress = progress.with_node(with_metadata(node, labels={**node.metadata.labels, **label}))
    return progress
