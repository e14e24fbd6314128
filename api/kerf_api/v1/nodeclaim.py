"""NodeClaim, karpenter.sh/v1: one node that is wanted, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import field

from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Condition, Entry, NodeClassRef, ObjectMeta, Taint, Value
from kerf_api.v1.nodepool import parse_entries


class ClaimResources(Value, frozen=True, kw_only=True):
    requests: Mapping[str, str | int | float] = field(default_factory=dict)


class NodeClaimSpec(Value, frozen=True, kw_only=True):
    node_class_ref: NodeClassRef
    requirements: tuple[Entry, ...] = ()
    resources: ClaimResources = ClaimResources()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class NodeClaimStatus(Value, frozen=True, kw_only=True):
    node_name: str = ""
    provider_id: str = field(default="", name="providerID")
    image_id: str = field(default="", name="imageID")
    capacity: Mapping[str, str | int | float] = field(default_factory=dict)
    allocatable: Mapping[str, str | int | float] = field(default_factory=dict)
    last_pod_event_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class NodeClaim(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: NodeClaimSpec
    status: NodeClaimStatus = NodeClaimStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def pool_name(self) -> str:
        """The owning NodePool's name; empty for a claim that a person made."""
        return self.metadata.labels.get(labels.NODEPOOL, "")

    @property
    def instance_id(self) -> str:
        """The EC2 instance behind `status.providerID` (`aws:///<zone>/<id>`); empty before launch."""
        return self.status.provider_id.rsplit("/", 1)[-1]

    @property
    def assigned_instance(self) -> str:
        """The instance that is the claim's, or will be once its status says so; empty when it has none."""
        return self.instance_id or self.metadata.annotations.get(labels.INSTANCE, "")

    @property
    def managed(self) -> bool:
        """Whether the claim's node class is of the kind that we serve."""
        ref = self.spec.node_class_ref
        return ref.group == labels.AWS_GROUP and ref.kind == "EC2NodeClass"

    def requirements(self) -> Requirements:
        """Raises ValueError on a malformed entry."""
        return parse_entries(self.spec.requirements)

    def requests(self) -> Resources:
        return Resources.parse(self.spec.resources.requests)

    def condition(self, type_: str) -> Condition | None:
        for condition in self.status.conditions:  # asked of every claim in every pass: a generator takes twice as long
            if condition.type == type_:
                return condition
        return None

    def is_true(self, type_: str) -> bool:
        """Whether the condition is there with status True."""
        found = self.condition(type_)
        return found is not None and found.status == "True"
