"""When a method may begin something, and when it looks again: what all methods of voluntary disruption share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from kerf.disruption.candidates.candidates import Blocker, refused
from kerf.disruption.command import LATE_EVERY, Command, Failure, failure_due, failure_of
from kerf.disruption.view import View
from kerf.model.claims import true_since
from kerf.model.instants import rfc3339
from kerf.model.memory import Step
from kerf.model.plan import Plan, Reason, Refusal
from kerf.model.snapshot import Snapshot, StateNode
from kerf.scheduling.mismatch.inputs import inputs_of
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
    if failure.inputs and failure.inputs != inputs_of(view.snapshot):
        return None
    words = f"its replacement {_how(failure)} {counted(failure.count, 'time')}"
    return Blocker("BackingOff", words, quiet=True, until=failure.until)


def _how(failure: Failure) -> str:
    if failure.late:
        return "was not initialized in time"
    return "came up other than planned" if failure.inputs else "failed"


def pool_blocker(view: View, pool_name: str) -> Blocker | None:
    """Of a NodePool of which two nodes each had two replacements in a row that came up other than planned, or one that
    was not initialized in time and after which none was: until when the roll-out leaves its other nodes alone, too. One
    node may have pods that are a case of their own, and nodes that were replaced together had one case."""
    rows = view.turn.all(_DIFFERING, view.each).spoken.items()
    cases = {row[1].command or name: row[1] for name, row in rows if row is not None and row[0] == pool_name}
    known = [*cases.values()]
    inputs, latest = (inputs_of(view.snapshot), _initialized_at(view, pool_name)) if len(known) > 1 else ("", None)
    same = (one for one in known if one.inputs == inputs and not (one.late and latest is not None and latest > one.at))
    ends = sorted((_held_until(one), one.late) for one in same)
    if len(ends) < 2:
        return None
    how = "were not initialized in time" if ends[-1][1] else "came up other than planned"
    until = ends[-2][0]
    text = f"replacements of nodes of NodePool {pool_name} {how}; next try at {rfc3339(until)}"
    return Blocker("BackingOff", text, quiet=True, until=until)


def _initialized_at(view: View, pool_name: str) -> datetime | None:
    """When the latest node of the NodePool was initialized."""
    claims = view.snapshot.claims_by_pool.get(pool_name, ())
    return max((at for claim in claims if (at := true_since(claim, "Initialized")) is not None), default=None)


def _held_until(failure: Failure) -> datetime:
    return failure.at + LATE_EVERY if failure.late else failure.until


def _differs(view: View, name: str) -> tuple[tuple[str, Failure] | None, datetime | None]:
    claim = view.snapshot.node_claims[name]
    failure = failure_of(claim.metadata.annotations, view.snapshot.now)
    if failure is None or not failure.inputs or (failure.count < 2 and not failure.late):
        return None, failure_due(claim.metadata.annotations, view.snapshot.now)
    until = _held_until(failure)
    return ((claim.pool_name, failure), until) if until > view.snapshot.now else (None, None)


_DIFFERING: Final[Step[View, tuple[str, Failure] | None]] = Step(
    "replacements that came up other than planned", "node_claims", _differs, speaks=lambda found: found is not None
)


def failed_now(
    snapshot: Snapshot, claim: NodeClaim, command: Command, *, differs: bool = False, late: bool = False
) -> Failure:
    """The failure of a replacement of this claim by a command, with those before it.

    `differs`: it came up other than planned. `late`: it was not initialized in time.
    """
    known = differs or late
    before, inputs = failure_of(claim.metadata.annotations, snapshot.now), inputs_of(snapshot) if known else ""
    if before is None or (before.inputs != inputs if known else snapshot.now - before.at >= _FORGOTTEN_AFTER):
        return Failure(at=snapshot.now, inputs=inputs, late=late, command=command.id)
    count = before.count + 1
    return Failure(at=snapshot.now, count=count, inputs=inputs, late=late, command=command.id)


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
