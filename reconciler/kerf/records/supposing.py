"""Recorded decisions made again with other NodePools and EC2NodeClasses in place of the recorded ones.

Two readers follow the same lines, and one of them replaces these objects. Each decision is made for both snapshots, so
that a difference comes from the change and not from another version of Kerf. The cluster of every decision is the
recorded one: a node that only the change would launch is in no later snapshot, and one that it would disrupt remains.
So a node counts once, however many decisions ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace as changed

from kerf.decide import decide
from kerf.disruption.commands import START_COMMAND
from kerf.ec2.launch import candidates, fleet
from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim, PatchObject, Plan
from kerf.model.snapshot import Snapshot
from kerf.records.reading import Step
from kerf_api import labels
from kerf_api.v1.budgets import DRIFTED
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import nodeclass_hash, nodepool_hash
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

_POD: Final = "pod/"


@dataclass(frozen=True, slots=True)
class Substitutes:
    """NodePools and EC2NodeClasses that take the place of recorded ones of the same name.

    Only the spec and the annotations are other ones. The recorded status remains: its images, subnets and security
    groups are the only known ones. `ca_bundle` is the cluster's, which the hash of an EC2NodeClass covers.
    """

    pools: Mapping[str, NodePool] = field(default_factory=dict)
    classes: Mapping[str, EC2NodeClass] = field(default_factory=dict)
    ca_bundle: str = ""

    def __call__(self, kind: Kind, value: Any) -> Any:
        """The object that the cluster has in place of a recorded one."""
        if kind is kinds.NODE_POOL and (pool := self.pools.get(value.name)) is not None:
            return _in_place(value, pool, labels.NODEPOOL_HASH, nodepool_hash(pool))
        if kind is kinds.NODE_CLASS and (own := self.classes.get(value.metadata.name)) is not None:
            return _in_place(value, own, labels.NODECLASS_HASH, nodeclass_hash(own, self.ca_bundle))
        return value


def _in_place(recorded: Any, given: Any, label: str, digest: str) -> Any:
    notes = {**recorded.metadata.annotations, **given.metadata.annotations, label: digest}
    return changed(recorded, spec=given.spec, metadata=changed(recorded.metadata, annotations=notes))


@dataclass(frozen=True, slots=True)
class Launch:
    """A NodeClaim that a decision creates. `price` is that of its cheapest offering, in millionths of a dollar per
    hour; None when it has none."""

    at: datetime
    name: str
    nodepool: str
    pods: int
    price: int | None


@dataclass(frozen=True, slots=True)
class Disruption:
    """A NodeClaim whose voluntary disruption a decision starts, or that it finds drifted, and the reason."""

    at: datetime
    name: str
    nodepool: str
    reason: str


@dataclass(slots=True)
class Course:
    """Decisions of one reader in their order.

    Attributes:
        launches: nodes to launch, each once, by the time of the first decision that asks for it.
        disruptions: nodes to disrupt, each once.
        drifted: nodes that become drifted, each once. The recorded cluster has no such condition afterwards.
        refused: pods without a place, with the first reason, each once.
    """

    launches: list[Launch] = field(default_factory=list)
    disruptions: dict[str, Disruption] = field(default_factory=dict)
    drifted: dict[str, Disruption] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    _served: set[str] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)

    @property
    def price(self) -> int:
        """Of all launches, in millionths of a dollar per hour."""
        return sum(one.price or 0 for one in self.launches)

    def take(self, snapshot: Snapshot, plan: Plan) -> None:
        """Note what a plan launches, disrupts and refuses."""
        pods: dict[str, set[str]] = {}
        for one in plan.nominations:
            pods.setdefault(one.target, set()).add(one.pod_uid)
        for action in plan.actions:
            if isinstance(action, CreateNodeClaim):
                self._launch(snapshot, action.claim, pods.get(action.claim.name, set()))
            elif isinstance(action, PatchObject) and action.ref.kind == kinds.NODE_CLAIM.name:
                self._patch(snapshot, action)
        for refusal in plan.refusals:
            if refusal.subject.startswith(_POD):
                self.refused.setdefault(refusal.subject.removeprefix(_POD), str(refusal.reason))

    def _launch(self, snapshot: Snapshot, claim: NodeClaim, pods: set[str]) -> None:
        """One for pods that have a node already is the same node, which the recorded cluster does not have."""
        if claim.name in self._names or (pods and pods <= self._served):
            return
        self._names.add(claim.name)
        self._served |= pods
        price = _price(snapshot, claim)
        self.launches.append(Launch(snapshot.now, claim.name, claim.pool_name, len(pods), price))

    def _patch(self, snapshot: Snapshot, action: PatchObject) -> None:
        name, claim = action.ref.name, snapshot.node_claims.get(action.ref.name)
        pool = claim.pool_name if claim is not None else ""
        if action.verb == START_COMMAND:
            self.disruptions.setdefault(name, Disruption(snapshot.now, name, pool, action.reason.code))
        for one in (action.patch.get("status") or {}).get("conditions") or ():
            if one["type"] == DRIFTED and one["status"] == "True" and (claim is None or not claim.is_true(DRIFTED)):
                self.drifted.setdefault(name, Disruption(snapshot.now, name, pool, one["reason"]))


def _price(snapshot: Snapshot, claim: NodeClaim) -> int | None:
    catalogue = snapshot.catalogues.get(claim.spec.node_class_ref.name, ())
    found = candidates.available(catalogue, fleet.wanted(claim), claim.requests(), snapshot.out_of_stock, snapshot.now)
    return min((one.price[0] for one in found), default=None)


@dataclass(frozen=True, slots=True)
class Supposition:
    """The decisions of a span of a record, with the recorded objects and with the change.

    Attributes:
        began: the time of the first decision; None when there is none.
        ended: the time of the last one.
        decisions: their number.
        recorded: as the controller decides for the recorded objects.
        changed: as it decides with the change.
    """

    began: datetime | None
    ended: datetime | None
    decisions: int
    recorded: Course
    changed: Course


def compared(pairs: Iterable[tuple[Step, Step, tuple[Memory, Memory]]]) -> Supposition:
    """Make each decision twice: of the step of one reader, and of that of another, which has the substitutes.

    The memories are those of both readers for the part of the steps. Raises Unreadable.
    """
    began, ended, number = None, None, 0
    courses = recorded, other = Course(), Course()
    for first, second, memories in pairs:
        for step, memory, course in zip((first, second), memories, courses, strict=True):
            snapshot = step.captured().snapshot
            course.take(snapshot, decide(snapshot, memory))
        ended, number = first.decision.at, number + 1
        began = began or ended
    return Supposition(began, ended, number, recorded, other)
