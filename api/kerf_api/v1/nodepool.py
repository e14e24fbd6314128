"""NodePool, karpenter.sh/v1: what nodes may be made, how many, and how they may be disrupted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import field

from kerf_api import durations, labels
from kerf_api.requirements import Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import Condition, Entry, NodeClassRef, ObjectMeta, Taint, Value


class TemplateMeta(Value, frozen=True, kw_only=True):
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class TemplateSpec(Value, frozen=True, kw_only=True):
    node_class_ref: NodeClassRef
    requirements: tuple[Entry, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class Template(Value, frozen=True, kw_only=True):
    spec: TemplateSpec
    metadata: TemplateMeta = TemplateMeta()


class Budget(Value, frozen=True, kw_only=True):
    nodes: str = "10%"
    schedule: str | None = None
    duration: str | None = None
    reasons: tuple[str, ...] | None = None


class Disruption(Value, frozen=True, kw_only=True):
    consolidate_after: str = "0s"
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    budgets: tuple[Budget, ...] = (Budget(),)


class NodePoolSpec(Value, frozen=True, kw_only=True):
    template: Template
    disruption: Disruption = Disruption()
    limits: Mapping[str, str | int | float] | None = None
    weight: int = 0
    replicas: int | None = None


class NodePoolStatus(Value, frozen=True, kw_only=True):
    resources: Mapping[str, str | int | float] = field(default_factory=dict)
    nodes: int = 0
    node_class_observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class NodePool(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: NodePoolSpec
    status: NodePoolStatus = NodePoolStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def class_name(self) -> str:
        """The name of the EC2NodeClass."""
        return self.spec.template.spec.node_class_ref.name

    @property
    def managed(self) -> bool:
        """Whether the pool's node class is of the kind that we serve."""
        ref = self.spec.template.spec.node_class_ref
        return ref.group == labels.AWS_GROUP and ref.kind == "EC2NodeClass"

    @property
    def static(self) -> bool:
        return self.spec.replicas is not None

    @property
    def limits(self) -> Resources | None:
        """None when the pool has no limits; `nodes` is a limit like the others."""
        return None if not self.spec.limits else Resources.parse(self.spec.limits)

    @property
    def consolidate_after(self) -> timedelta | None:
        """None means Never."""
        return durations.parse_nillable(self.spec.disruption.consolidate_after)

    def template_labels(self) -> dict[str, str]:
        """Labels of every node of the pool: the template's, the pool's and the node class's."""
        ref = self.spec.template.spec.node_class_ref
        own = {labels.NODEPOOL: self.name, f"{ref.group}/{ref.kind.lower()}": ref.name}
        return {**self.spec.template.metadata.labels, **own}

    def requirements(self) -> Requirements:
        """Template requirements and template labels together. Raises ValueError on a malformed entry."""
        return parse_entries(self.spec.template.spec.requirements) & Requirements.of_labels(self.template_labels())


def parse_entries(entries: tuple[Entry, ...]) -> Requirements:
    """Manifest entries as requirements. Raises ValueError on a malformed one."""
    return Requirements(requirement(e.key, e.operator, e.values, e.min_values) for e in entries)
