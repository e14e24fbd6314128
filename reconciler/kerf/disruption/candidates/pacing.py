"""When a method may begin something, and when it looks again: what all methods of voluntary disruption share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from kerf.disruption.candidates.candidates import Blocker, refused
from kerf.disruption.command import Failure, failure_due, failure_of
from kerf.disruption.view import View
from kerf.model.instants import rfc3339
from kerf.model.plan import Plan, Reason, Refusal
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1.nodeclaim import NodeClaim

T = TypeVar("T")

#: A replacement that failed so long ago says nothing of the next one.
_FORGOTTEN_AFTER: Final = timedelta(hours=2)


def settled(view: View) -> bool:
    """Whether every command's replacements can be seen, so that a simulation reckons with them."""
    return all(command.created for command in view.commands.values())


def failed_lately(view: View, state: StateNode) -> Blocker | None:
    """Of a node whose last replacement failed a short while ago: until when it is left alone."""
    failure = failure_of(state.claim.metadata.annotations, view.snapshot.now) if state.claim is not None else None
    if failure is None or failure.until <= view.snapshot.now:
        return None
    if failure.template and failure.template != template_of(view.snapshot, state.pool_name):
        return None
    how = "came up other than planned" if failure.template else "failed"
    words = f"its replacement {how} {counted(failure.count, 'time')}"
    return Blocker("BackingOff", words, quiet=True, until=failure.until)


def failed_now(snapshot: Snapshot, claim: NodeClaim, *, differs: bool) -> Failure:
    """The failure of a replacement of this claim, with those before it; `differs`: it came up other than planned."""
    before = failure_of(claim.metadata.annotations, snapshot.now)
    template = template_of(snapshot, claim.pool_name) if differs else ""
    in_a_row = before is not None and (
        snapshot.now - before.at < _FORGOTTEN_AFTER or (differs and before.template == template)
    )
    return Failure(at=snapshot.now, count=before.count + 1 if before is not None and in_a_row else 1, template=template)


def template_of(snapshot: Snapshot, pool_name: str) -> str:
    """The hashes of what the NodePool makes nodes from now."""
    pool = snapshot.node_pools.get(pool_name)
    node_class = snapshot.node_classes.get(pool.class_name) if pool is not None else None
    own = pool.metadata.annotations.get(labels.NODEPOOL_HASH, "") if pool is not None else ""
    its = node_class.metadata.annotations.get(labels.NODECLASS_HASH, "") if node_class is not None else ""
    return f"{own}/{its}"


def next_try(view: View, state: StateNode) -> Blocker | None:
    """The same, with the instant in its words."""
    found = failed_lately(view, state)
    if found is None or found.until is None:
        return None
    return replace(found, text=f"{found.text}; next try at {rfc3339(found.until)}")


def next_change(view: View, state: StateNode) -> datetime | None:
    """When the failure of such a node counts in another way; None without one, or if it counts no more."""
    return failure_due(state.claim.metadata.annotations, view.snapshot.now) if state.claim is not None else None


def backing_off(view: View, state: StateNode) -> Plan | None:
    """The refusal of such a node."""
    found = next_try(view, state)
    return refused(state, found, found.until) if found is not None else None


def probed(order: Sequence[T], view: View, always: int, most: int) -> Sequence[T]:
    """The first ones, and a window of the others that moves on with time, so that none is starved."""
    head, rest = list(order[:always]), list(order[always:])
    room = most - len(head)
    if len(rest) <= room:
        return order
    step = int(view.snapshot.now.timestamp() // period(view).total_seconds())
    first = step * room % len(rest)
    return head + (rest[first:] + rest[:first])[:room]


def no_budget(view: View, state: StateNode, reason: str) -> Plan:
    """The refusal of a node that its NodePool's budgets keep."""
    text = f"the budgets of NodePool {state.pool_name} allow no more disruptions for reason {reason} now"
    return Plan(refusals=(Refusal(f"node/{state.name}", Reason("Budget", text)),), next_due=soon(view))


def soon(view: View) -> datetime:
    return view.snapshot.now + period(view)


def period(view: View) -> timedelta:
    return view.snapshot.settings.disruption_period
