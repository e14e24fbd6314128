"""A claim that does not get anywhere is given up: five minutes to launch, fifteen to register.

The clocks start at creation, or when the condition last changed its status. Its finalizer ends the instance, its pods
become pending again, and new capacity is looked for.
"""

from __future__ import annotations

from datetime import timedelta

from api import durations
from reconciler.lifecycle.progress import Progress
from reconciler.lifecycle.writes import act, deletion
from reconciler.model.plan import NOTHING, Plan, Reason, Source


def give_up(progress: Progress) -> Plan:
    """The claim's deletion when its time is over, else when to look again."""
    settings = progress.view.snapshot.settings
    if progress.claim.is_true("Registered"):
        return NOTHING
    if not progress.claim.is_true("Launched"):
        return _expire(progress, "Launched", settings.launch_timeout, "LaunchTimeout")
    return _expire(progress, "Registered", settings.registration_timeout, "RegistrationTimeout")


def _expire(progress: Progress, condition: str, limit: timedelta, code: str) -> Plan:
    known = progress.claim.condition(condition)
    if known is None or known.last_transition_time is None:
        return NOTHING
    due = known.last_transition_time + limit
    if progress.view.snapshot.now < due:
        return Plan(next_due=due)
    last = f"; last: {known.reason}: {known.message}" if known.message else ""
    reason = Reason(code, f"not {condition} within {durations.go_text(limit)}{last}")
    return act(deletion(progress.claim, reason, Source.NODE_CLAIMS))
