"""What a plan says, without whom it is about: by that seeds are told apart (choosing.py)."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.model.plan import Plan


def things(plan: Plan) -> Iterator[str]:
    """Each action, refusal and event with its reason's code, as often as it is there."""
    for action in plan.actions:
        yield f"{type(action).__name__} {getattr(action, 'verb', '')} {action.reason.code}"
    for refusal in plan.refusals:
        yield f"refusal {refusal.subject.partition('/')[0]} {refusal.reason.code}"
    for event in plan.events:
        yield f"event {event.reason}"
