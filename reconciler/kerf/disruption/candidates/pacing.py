"""When a method may begin something, and when it looks again: what all methods of voluntary disruption share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from kerf.disruption.candidates.candidates import Blocker, refused
from kerf.disruption.command import failure_due, failure_of
from kerf.disruption.view import View
from kerf.model.instants import rfc3339
from kerf.model.plan import Plan, Reason, Refusal
from kerf.model.snapshot import StateNode

T = TypeVar("T")


def settled(view: View) -> bool:
    """Whether every command's replacements can be seen, so that a simulation reckons with them."""
    return all(command.created for command in view.commands.values())


def failed_lately(view: View, state: StateNode) -> Blocker | None:
    """Of a node whose last replacement failed a short while ago: until when it is left alone."""
    failure = failure_of(state.claim.metadata.annotations, view.snapshot.now) if state.claim is not None else None
    if failure is None or failure.until <= view.snapshot.now:
        return None
    return Blocker("BackingOff", f"its replacement failed {failure.count} times", quiet=True, until=failure.until)


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
