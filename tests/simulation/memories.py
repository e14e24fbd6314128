"""The law of memory: a plan that was made with one says the same as a plan that was made from nothing.

Only the instant of the next look may differ: what is remembered may be due a little earlier, never later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kerf.model.plan import Plan

_SHOWN = 3


def difference(plan: Plan, anew: Plan) -> Iterator[str]:
    """What the plan with memory says otherwise; nothing when all is well."""
    if anew.next_due is not None and (plan.next_due is None or plan.next_due > anew.next_due):
        yield f"memory: due {plan.next_due}, without it {anew.next_due}"
    if replace(plan, next_due=None) == replace(anew, next_due=None):
        return
    for name in ("actions", "refusals", "events", "nominations", "gauges", "provisioned", "buffer_pods"):
        mine, theirs = getattr(plan, name), getattr(anew, name)
        if mine == theirs:
            continue
        if not isinstance(mine, tuple):
            yield f"memory: {name} are {mine}, without it {theirs}"
            continue
        more, less = [row for row in mine if row not in theirs], [row for row in theirs if row not in mine]
        yield f"memory: {name} has {more[:_SHOWN]}, lacks {less[:_SHOWN]}, or has another order"
