"""What the lifecycle looks up: the snapshot with a few indexes that are made once per plan, in one pass each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from api import labels
from api.v1.ec2nodeclass import EC2NodeClass
from api.v1.nodeclaim import NodeClaim
from reconciler.model.cloud import Instance
from reconciler.model.objects import Node, VolumeAttachment
from reconciler.model.plan import Source
from reconciler.model.snapshot import Snapshot

T = TypeVar("T")

#: A list that ended this long after an act has surely seen it: API times are whole seconds.
_CLOCK_GRAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class View:
    """Nodes and claims are by provider ID, and sorted by name; an object without a provider ID is in no index."""

    snapshot: Snapshot
    #: The instant in whole seconds, as the API writes times.
    now: datetime
    nodes: Mapping[str, tuple[Node, ...]]
    claims: Mapping[str, tuple[NodeClaim, ...]]
    claims_by_class: Mapping[str, tuple[NodeClaim, ...]]
    #: Live instances that no claim has, by launch group, sorted by ID.
    spare: Mapping[str, tuple[Instance, ...]]
    #: By node name.
    attachments: Mapping[str, tuple[VolumeAttachment, ...]]

    def nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        return self.nodes.get(claim.status.provider_id, ())

    def node_of(self, claim: NodeClaim) -> Node | None:
        """The claim's Node; None when there is none, or more than one."""
        found = self.nodes_of(claim)
        return found[0] if len(found) == 1 else None

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The Node's claim; None when there is none, or more than one."""
        found = self.claims.get(node.spec.provider_id, ())
        return found[0] if len(found) == 1 else None

    def class_of(self, claim: NodeClaim) -> EC2NodeClass | None:
        return self.snapshot.node_classes.get(claim.spec.node_class_ref.name)

    def instance(self, provider_id: str) -> Instance | None:
        return self.snapshot.instances.get(provider_id.rsplit("/", 1)[-1])

    def listed_after(self, instant: datetime | None) -> bool:
        """Whether EC2's instances were listed completely since then, and lately."""
        listed = self.snapshot.fresh_at.get(Source.INSTANCES)
        if listed is None or not self.snapshot.fresh(Source.INSTANCES):
            return False
        return instant is None or listed > instant + _CLOCK_GRAIN


def managed(claim: NodeClaim) -> bool:
    """Whether the claim's node class is of the kind that we serve."""
    ref = claim.spec.node_class_ref
    return ref.group == labels.AWS_GROUP and ref.kind == "EC2NodeClass"


def assigned_instance(claim: NodeClaim) -> str:
    """The instance that is the claim's, or will be once its status says so; empty when it has none."""
    return claim.instance_id or claim.metadata.annotations.get(labels.INSTANCE, "")


def view(snapshot: Snapshot) -> View:
    claims = sorted(snapshot.node_claims.values(), key=lambda c: c.name)
    nodes = sorted(snapshot.nodes.values(), key=lambda n: n.name)
    draining = any(node.metadata.deleting for node in nodes)
    return View(
        snapshot=snapshot,
        now=snapshot.now.replace(microsecond=0),
        nodes=_grouped((node.spec.provider_id, node) for node in nodes),
        claims=_grouped((claim.status.provider_id, claim) for claim in claims),
        claims_by_class=_grouped((c.spec.node_class_ref.name, c) for c in claims if managed(c)),
        spare=_spare(snapshot, claims),
        attachments=_attachments(snapshot) if draining else {},
    )


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for key, value in pairs:
        if key:
            groups[key].append(value)
    return {key: tuple(values) for key, values in groups.items()}


def _spare(snapshot: Snapshot, claims: Iterable[NodeClaim]) -> dict[str, tuple[Instance, ...]]:
    taken = {assigned_instance(claim) for claim in claims}
    return _grouped(
        (instance.tags.get(labels.LAUNCH_GROUP, ""), instance)
        for _, instance in sorted(snapshot.instances.items())
        if instance.live and instance.id not in taken
    )


def _attachments(snapshot: Snapshot) -> dict[str, tuple[VolumeAttachment, ...]]:
    return _grouped((a.spec.node_name, a) for _, a in sorted(snapshot.volume_attachments.items()))
