"""A claim and its Node on their way through one plan: steps change the values, and the end writes the difference.

A step is a function from Progress to Progress. It never sees a half-written object, and what several steps change in
one object becomes one write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as changed_value

from kerf.lifecycle.view import View
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import NOTHING, Plan, Reason, Source, joined
from kerf.model.writes import changed
from kerf_api.v1 import conditions
from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True)
class Progress:
    """`claim` and `node` as they should be; `plan` is what else is to be done."""

    view: View
    claim: NodeClaim
    node: Node | None
    plan: Plan = field(default=NOTHING)

    def also(self, plan: Plan) -> Progress:
        return replace(self, plan=joined((self.plan, plan)))

    def with_claim(self, claim: NodeClaim) -> Progress:
        return replace(self, claim=claim)

    def with_node(self, node: Node) -> Progress:
        return replace(self, node=node)

    def with_status(self, **fields: Any) -> Progress:
        status = changed_value(self.claim.status, **fields)
        return replace(self, claim=changed_value(self.claim, status=status))

    def condition(self, type_: str, status: str, reason: str = "", message: str = "") -> Progress:
        """With a condition of the claim set; a True one without a reason has its type as reason."""
        known, generation = self.claim.status.conditions, self.claim.metadata.generation
        old, said = conditions.get(known, type_), (status, reason or type_, message, generation)
        if old is not None and (old.status, old.reason, old.message, old.observed_generation) == said:
            return self
        new = conditions.put(
            known, type_, status, reason or type_, generation=generation, now=self.view.now, message=message
        )
        return self.with_status(conditions=new)

    def without_condition(self, type_: str) -> Progress:
        return self.with_status(conditions=conditions.drop(self.claim.status.conditions, type_))

    def with_labels(self, labels: Mapping[str, str]) -> Progress:
        meta = changed_value(self.claim.metadata, labels={**self.claim.metadata.labels, **labels})
        return replace(self, claim=changed_value(self.claim, metadata=meta))


def begin(view: View, claim: NodeClaim, node: Node | None = None) -> Progress:
    """The claim with the conditions that every claim has, unknown since its creation."""
    known = conditions.initial(
        claim.status.conditions, conditions.NODECLAIM_DEPENDENTS, claim.metadata.creation_timestamp
    )
    start = Progress(view, claim, node)
    return start if known == claim.status.conditions else start.with_status(conditions=known)


def finish(progress: Progress, before: NodeClaim, node: Node | None = None, *sources: Source) -> Plan:
    """The Node's write, the claim's write (resting on `sources`), and what the steps asked for besides."""
    reason = Reason("ClaimProgress", f"node claim {before.name}")
    done = _with_root(progress, before)
    writes = changed(before, done.claim, "UpdateClaim", reason, *sources)
    if node is not None and done.node is not None:
        writes = (*changed(node, done.node, "UpdateNode", reason), *writes)
    return joined((Plan(actions=writes) if writes else NOTHING, done.plan))


def _with_root(progress: Progress, before: NodeClaim) -> Progress:
    """Root and generations follow; an object that is being deleted changes its generation without a new spec."""
    known, claim = progress.claim.status.conditions, progress.claim
    if known == before.status.conditions and all(c.observed_generation == claim.metadata.generation for c in known):
        return progress
    generation = claim.metadata.generation
    if claim.metadata.deleting:
        known = conditions.bump(known, generation)
    known = conditions.with_root(known, conditions.NODECLAIM_DEPENDENTS, generation=generation, now=progress.view.now)
    return progress.with_status(conditions=known)
