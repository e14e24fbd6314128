"""What a change of `spec.disruption` lets happen to a NodePool's nodes that could not happen before.

That nothing may be disrupted any more is reported for the NodePool as it is now (advice_budgets.py), whatever it was
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kerf_api import durations
from kerf_api.lint.problem import Problem, at, some
from kerf_api.lint.reading.reading import entries, part
from kerf_api.v1.budgets import REASONS, allowed_disruptions, problems

Manifest = Mapping[str, Any]

_DISRUPTION: Final = ("spec", "disruption")
_BUDGETS: Final = (*_DISRUPTION, "budgets")
#: Percentages are compared by what they allow of so many nodes.
_NODES: Final = 100
#: Budgets are compared without their schedules, at no hour in particular.
_ANY_TIME: Final = datetime(2025, 1, 1, tzinfo=UTC)


def check(before: Manifest, after: Manifest) -> Iterator[Problem]:
    """What a NodePool's nodes are open to now; the manifests have their defaults."""
    yield from _budgets(before, after)
    yield from _consolidation(before, after)


def _budgets(before: Manifest, after: Manifest) -> Iterator[Problem]:
    had, has = ([dict(budget) for _, budget in entries(m, *_BUDGETS)] for m in (before, after))
    if had == has or problems(had) or problems(has):
        return
    opened = [reason for reason in REASONS if _most(had, reason) == 0 < _most(has, reason)]
    unfrozen = [reason for reason in REASONS if reason not in opened and _least(had, reason) == 0 < _least(has, reason)]
    boundless = [reason for reason in REASONS if _most(had, reason) < _NODES <= _most(has, reason)]
    for reasons, what in (
        (opened, "until now no node was ever disrupted for it"),
        (unfrozen, "the hours without disruption for it are removed"),
        (boundless, "all nodes of the NodePool may be disrupted for it at once"),
    ):
        if reasons:
            message = f"the budgets are opened for {some(reasons)}: {what}"
            hint = "what has waited, such as drift, begins at once; open them in steps, 10% first"
            yield at(_BUDGETS, "KERF-DIFF-306", "warning", message, hint)


def _most(budgets: Sequence[Manifest], reason: str) -> int:
    """How many of 100 nodes may be removed while no schedule is on."""
    always = [budget for budget in budgets if budget.get("schedule") is None]
    return min(_NODES, allowed_disruptions(budgets=always, nodes=_NODES, now=_ANY_TIME, reason=reason))


def _least(budgets: Sequence[Manifest], reason: str) -> int:
    """How many of 100 nodes may be removed while all schedules are on."""
    on = [{name: value for name, value in b.items() if name not in ("schedule", "duration")} for b in budgets]
    return min(_NODES, allowed_disruptions(budgets=on, nodes=_NODES, now=_ANY_TIME, reason=reason))


def _consolidation(before: Manifest, after: Manifest) -> Iterator[Problem]:
    """That nodes with pods are consolidated where they were not."""
    moved, moves = (_moves_pods(manifest) for manifest in (before, after))
    if moves and not moved:
        policy = part(after, *_DISRUPTION, "consolidationPolicy")
        was = f"{part(before, *_DISRUPTION, 'consolidationPolicy')}, {part(before, *_DISRUPTION, 'consolidateAfter')}"
        message = f"consolidation moves pods from now on ({policy}; before it was {was})"
        field = (
            "consolidateAfter" if part(before, *_DISRUPTION, "consolidationPolicy") == policy else "consolidationPolicy"
        )
        hint = "begin with a budget for Underutilized, 10% or less"
        yield at((*_DISRUPTION, field), "KERF-DIFF-310", "warning", message, hint)


def _moves_pods(manifest: Manifest) -> bool:
    policy, after = (part(manifest, *_DISRUPTION, field) for field in ("consolidationPolicy", "consolidateAfter"))
    return policy not in ("WhenEmpty", None) and after != durations.NEVER
