"""Whether a Node is as large as its claim promised: one that is far smaller was planned with too much.

Looked at when the Node has become usable, and until it is found in order; and whether the Node is there at all.
Source: disruption reference §5.5.
"""

from __future__ import annotations

from typing import Final

from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Plan
from kerf.model.writes import warning
from kerf_api.resources import Resources
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.nodeclaim import NodeClaim

CONSISTENT: Final = "ConsistentStateFound"
#: Its reason for a claim whose Node another client has deleted under our finalizer.
NODE_NOT_FOUND: Final = "NodeNotFound"
#: A Node with less than this of a promised resource is not what was asked for.
_PERCENT = 90


def check(progress: Progress) -> Progress:
    """The condition, once it is known; and an event when something is found to be wrong."""
    progress = _presence(progress)
    claim, node = progress.claim, progress.node
    if claim.is_true("Registered") and not progress.view.nodes_of(claim):
        return progress.condition(CONSISTENT, FALSE, NODE_NOT_FOUND, "the node that had joined is not there any more")
    if node is None or not claim.is_true("Initialized") or claim.is_true(CONSISTENT):
        return progress
    lacking = _lacking(claim, node)
    if not lacking:
        return progress.condition(CONSISTENT, TRUE)
    known = claim.condition(CONSISTENT)
    news = known is None or (known.status, known.message) != (FALSE, lacking)
    events = (warning(claim, "FailedConsistencyCheck", lacking),) if news else ()
    return progress.condition(CONSISTENT, FALSE, "ConsistencyCheckFailed", lacking).also(Plan(events=events))


def _presence(progress: Progress) -> Progress:
    """Without a condition that says the Node is gone while it is there, or something else while it is gone: so the time
    of NodeNotFound is when the Node went."""
    known = progress.claim.condition(CONSISTENT)
    gone = not progress.view.nodes_of(progress.claim)
    if known is None or (known.reason == NODE_NOT_FOUND) == gone:
        return progress
    return progress.without_condition(CONSISTENT)


def _lacking(claim: NodeClaim, node: Node) -> str:
    """For a person, what the Node has too little of; empty when that is nothing."""
    promised, found = Resources.parse(claim.status.capacity), Resources.parse(node.status.capacity)
    wanted = (name for name, amount in sorted(claim.requests().items()) if amount and promised[name])
    short = [name for name in wanted if found[name] * 100 < promised[name] * _PERCENT]
    have, said = found.texts(), promised.texts()
    return "; ".join(f"expected {said[name]} of {name}, but the node has {have.get(name, '0')}" for name in short)
