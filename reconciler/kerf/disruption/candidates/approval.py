"""Whether a change of a NodePool is approved: nodes of an earlier version stay until it is (docs/tasks/approval.md).

The change has a digest (`kerf_api.v1.plan_digest`). A user approves it by an annotation of the NodePool, or it
continues after a time. The digests that Kerf has seen are in an annotation as well, so that they survive a restart.
Only new voluntary disruption waits: launches, expiration, interruption and repair continue, and so does the removal of
empty nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates.candidates import Blocker
from kerf.disruption.view import View
from kerf.model.annotations import read
from kerf.model.instants import Instant, is_ahead
from kerf.model.memory import Step
from kerf.model.snapshot import StateNode
from kerf_api import approval, labels
from kerf_api.approval import OFF, PlanFirst
from kerf_api.v1 import plan_digest
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Value
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from kerf_api.v1.plan_digest import Parts

AWAITING: Final = "AwaitingApproval"
#: The reasons for which a change continues.
APPROVED, DELAY_PASSED = "Approved", "DelayPassed"


class Seen(Value, frozen=True, kw_only=True):
    """The latest digests of a NodePool, and when Kerf saw them first; `settled` are those of all nodes before that."""

    parts: Parts
    since: Instant
    settled: Parts | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether nodes of an earlier version of a NodePool may be replaced.

    Attributes:
        rule: whether changes wait for approval, and for how long at most.
        parts: the digests of now; None while the EC2NodeClass or its images are not known.
        seen: the annotation; None when there is none, or it is not readable.
        reason: why the change continues; empty while it waits.
        until: the end of the wait without an approval; None when there is none.
        faults: the annotations that are invalid, in words.
        soak: the soak time of a canary; zero: none.
    """

    rule: PlanFirst = OFF
    parts: Parts | None = None
    seen: Seen | None = None
    reason: str = ""
    until: datetime | None = None
    faults: tuple[str, ...] = ()
    soak: timedelta = timedelta(0)

    @property
    def noted(self) -> bool:
        """Whether Kerf notes the digests of the NodePool: changes wait for approval, or for a canary."""
        return self.rule.on or bool(self.soak)

    @property
    def closed(self) -> bool:
        """Whether the change waits, if any node is of an earlier version."""
        return self.rule.on and not self.reason

    @property
    def settled(self) -> bool:
        """Whether all nodes that have not drifted are of this version."""
        return self.seen is not None and self.parts is not None and self.seen.settled == self.parts

    @property
    def since(self) -> datetime | None:
        """When Kerf has seen this version first."""
        return self.seen.since if self.seen is not None and self.seen.parts == self.parts else None


def gate_of(view: View, pool: NodePool) -> Gate:
    """The gate of a NodePool; open when its changes need no approval."""
    return view.turn.one(_GATES, view.each, pool.name)


def drift_blocker(view: View, state: StateNode) -> Blocker | None:
    """Why a drifted node stays: the change is not approved."""
    pool = view.snapshot.node_pools.get(state.pool_name)
    gate = gate_of(view, pool) if pool is not None else Gate()
    return _blocker(pool, gate) if pool is not None and gate.closed else None


def consolidation_blocker(view: View, state: StateNode, pool: NodePool) -> Blocker | None:
    """Why a node in use is not consolidated: it is of an earlier version, and the change is not approved."""
    gate = gate_of(view, pool)
    earlier = state.claim is not None and is_earlier(gate, state.claim)
    return _blocker(pool, gate) if gate.closed and earlier else None


def is_earlier(gate: Gate, claim: NodeClaim) -> bool:
    """Whether a NodeClaim is of an earlier version, drifted or not."""
    if claim.is_true("Drifted"):
        return True
    created = claim.metadata.creation_timestamp
    new = gate.since is not None and created is not None and created > gate.since
    return not gate.settled and not new


def how_to_approve(digest: str) -> str:
    """The step that approves a plan, for messages."""
    return f"to approve, set {labels.APPROVED_PLAN}: {digest} on it"


def _blocker(pool: NodePool, gate: Gate) -> Blocker:
    if gate.parts is None:
        unknown = f"the plan is not known: EC2NodeClass {pool.class_name} is missing or has no images"
        return Blocker(AWAITING, f"NodePool {pool.name} waits for approval; {unknown}", quiet=True)
    digest = gate.parts.digest
    text = f"NodePool {pool.name} waits for approval of plan {digest}; {how_to_approve(digest)}"
    return Blocker(AWAITING, text, quiet=True, until=gate.until)


# --- what is known of a NodePool ----------------------------------------------------------------------------------
def _gate(view: View, name: str) -> tuple[Gate, datetime | None]:
    pool, now = view.snapshot.node_pools[name], view.snapshot.now
    node_class = view.snapshot.node_classes.get(pool.class_name)
    notes, of_class = pool.metadata.annotations, node_class.metadata.annotations if node_class is not None else {}
    settings = view.snapshot.settings
    rule = approval.of(notes, of_class, settings.plan_first)
    soak = approval.soak_of(notes, of_class, settings.canary_soak)
    if not rule.on and not soak:
        return Gate(), None
    parts, seen = parts_of(pool, node_class), seen_of(pool, now)
    since = seen.since if seen is not None and seen.parts == parts else None
    until = since + rule.after if since is not None and rule.after is not None else None
    reason = DELAY_PASSED if until is not None and until <= now else ""
    if parts is not None and notes.get(labels.APPROVED_PLAN) == parts.digest:
        reason = APPROVED
    ahead = until if until is not None and until > now else None
    return Gate(rule, parts, seen, reason, ahead, _faults(pool, node_class), soak), ahead


def parts_of(pool: NodePool, node_class: EC2NodeClass | None) -> Parts | None:
    """The digests of a NodePool and its class as they are now; None while the class or its images are not known."""
    if node_class is None or node_class.metadata.unreadable or pool.metadata.unreadable or not node_class.status.amis:
        return None
    return Parts(
        node_pool=plan_digest.of_pool(pool),
        node_class=plan_digest.of_class(node_class),
        images=plan_digest.of_images(image.id for image in node_class.status.amis),
    )


def seen_of(pool: NodePool, now: datetime) -> Seen | None:
    """The annotation; None when there is none, it is not readable, or its time is ahead of now."""
    found = read(pool.metadata.annotations, labels.SEEN_PLAN, Seen)
    return None if found is None or is_ahead(found.since, now) else found


def _faults(pool: NodePool, node_class: EC2NodeClass | None) -> tuple[str, ...]:
    """The invalid annotations of the NodePool and of its class, in words."""
    named = [(f"NodePool {pool.name}", *fault) for fault in approval.faults("NodePool", pool.metadata.annotations)]
    if node_class is not None:
        whose, notes = f"EC2NodeClass {node_class.name}", node_class.metadata.annotations
        named += [(whose, *fault) for fault in approval.faults("EC2NodeClass", notes)]
    return tuple(f"annotation {key} of {whose} {right}" for whose, key, right in named)


_GATES: Final[Step[View, Gate]] = Step("approvals", "node_pools", _gate, speaks=lambda _: False)
