"""What the lifecycle looks up in a snapshot. Nothing is kept here: each question goes to the snapshot's own tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from kerf.model.aws.cloud import Instance
from kerf.model.aws.instance_type import Catalogue
from kerf.model.aws.launch_marks import UNKNOWN_MARK, LaunchMark
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Source
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim

#: A list that ended this long after an act has surely seen it: API times are whole seconds.
_CLOCK_GRAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class View:
    """Nodes and claims are by provider ID, and sorted by name; an object without a provider ID is in no index."""

    snapshot: Snapshot

    @property
    def now(self) -> datetime:
        """The instant in whole seconds, as the API writes times."""
        return self.snapshot.now.replace(microsecond=0)

    @property
    def nodes(self) -> Mapping[str, tuple[Node, ...]]:
        return self.snapshot.nodes_by_provider

    @property
    def claims(self) -> Mapping[str, tuple[NodeClaim, ...]]:
        return self.snapshot.claims_by_provider

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

    def types_of(self, claim: NodeClaim) -> Catalogue:
        """The types that the claim's NodePool can launch from its node class."""
        return self.snapshot.types_for(claim.pool_name, claim.spec.node_class_ref.name)

    def claims_of_class(self, name: str) -> tuple[NodeClaim, ...]:
        """The claims that were launched from a node class, or are to be."""
        return tuple(claim for claim in self.snapshot.claims_by_class.get(name, ()) if claim.managed)

    def instance(self, provider_id: str) -> Instance | None:
        return self.snapshot.instances.get(provider_id.rsplit("/", 1)[-1])

    def group_of(self, claim: NodeClaim) -> str:
        """The launch group that Kerf itself wrote to a claim; empty when there is none, or no mark covers it."""
        marked = self.mark_of(claim).group
        return claim.metadata.annotations.get(labels.LAUNCH_GROUP, "") if marked else ""

    def mark_of(self, claim: NodeClaim) -> LaunchMark:
        return self.snapshot.launch_marks.get(claim.name, UNKNOWN_MARK)

    def listed_after(self, instant: datetime | None) -> bool:
        """Whether EC2's instances were listed completely since then, and lately."""
        listed = self.snapshot.fresh_at.get(Source.INSTANCES)
        if listed is None or not self.snapshot.fresh(Source.INSTANCES):
            return False
        return instant is None or listed > instant + _CLOCK_GRAIN
