"""A claim that does not get anywhere is given up: five minutes to launch, fifteen to register.

The clocks start at creation, or when the condition last changed its status. Its finalizer ends the instance, its pods
become pending again, and new capacity is looked for. That no Node has joined is for a complete list of Nodes to say.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kerf.lifecycle.nodeclaim.progress import Progress, begin
from kerf.lifecycle.view import View
from kerf.model.claims import since
from kerf.model.plan import NOTHING, Plan, Reason, Source
from kerf.model.writes import act, deletion, stale
from kerf_api import durations
from kerf_api.v1.conditions import UNKNOWN
from kerf_api.v1.nodeclaim import NodeClaim


def give_up(progress: Progress) -> Plan:
    """The claim's deletion when its time is over, else when to look again."""
    settings = progress.view.snapshot.settings
    if progress.claim.is_true("Registered") or joins_late(progress):
        return NOTHING
    if not progress.claim.is_true("Launched"):
        return _expire(progress, "Launched", settings.launch_timeout, "LaunchTimeout")
    return _expire(progress, "Registered", settings.registration_timeout, "RegistrationTimeout", Source.NODES)


def given_up_at(view: View, claim: NodeClaim) -> datetime | None:
    """When a claim that gets no further is given up; None when it never is."""
    if claim.is_true("Registered"):
        return None
    settings, progress = view.snapshot.settings, begin(view, claim)
    if not claim.is_true("Launched"):
        return _due(progress, "Launched", settings.launch_timeout)
    return _due(progress, "Registered", settings.registration_timeout)


def joins_late(progress: Progress) -> bool:
    """The time is over and yet there is a Node, so no reconcile ran for long: it is registered all the same."""
    view, known = progress.view, progress.claim.condition("Registered")
    node = view.node_of(progress.claim)
    if known is None or known.status != UNKNOWN or node is None or node.metadata.deleting:
        return False
    due = _due(progress, "Registered", view.snapshot.settings.registration_timeout)
    return due is not None and due <= view.snapshot.now


def _due(progress: Progress, condition: str, limit: timedelta) -> datetime | None:
    at = since(progress.claim, condition, progress.view.now)
    return None if at is None else at + limit


def _expire(progress: Progress, condition: str, limit: timedelta, code: str, *sources: Source) -> Plan:
    """The deletion rests on the list of claims, and on these."""
    claim, snapshot = progress.claim, progress.view.snapshot
    known, due = claim.condition(condition), _due(progress, condition, limit)
    if known is None or due is None:
        return NOTHING
    if snapshot.now < due:
        return Plan(next_due=due)
    refusal = stale(snapshot, f"nodeclaim/{claim.name}", (Source.NODE_CLAIMS, *sources))
    if refusal is not None:
        return refusal
    last = f"; last: {known.reason}: {known.message}" if known.message else ""
    reason = Reason(code, f"not {condition} within {durations.go_text(limit)}{last}")
    return act(deletion(claim, reason, Source.NODE_CLAIMS, *sources))
