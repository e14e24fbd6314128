"""Refusals with their full account, over the small worlds of the scheduling tests."""

from __future__ import annotations

from typing import Any

from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.explanation import Account, PoolAccount
from kerf.scheduling.answers.solution import PodRefusal, Solution
from kerf.scheduling.fixes import with_fixes
from kerf.scheduling.solve import SolveOptions, context_of, solve
from tests.unit.scheduling import worlds as w

PLENTY = 1_000_000


def explained(snapshot: Snapshot, *, accounts: int = 50, spend: int = PLENTY, only: str = "") -> Solution:
    """The solution for all pending pods, with accounts and what helps in them."""
    pods, context = list(snapshot.pods.pending.values()), context_of(snapshot)
    solution = solve(snapshot, pods, SolveOptions(accounts=accounts), context=context)
    return with_fixes(snapshot, pods, solution, context, spend=spend, only=only)


def refusal(*objects: Any, name: str = "p", **facts: Any) -> PodRefusal:
    """The refusal of one pod of a world."""
    return explained(w.world(*objects, **facts)).unplaced[f"default/{name}"]


def account(*objects: Any, name: str = "p", **facts: Any) -> Account:
    found = refusal(*objects, name=name, **facts).account
    assert found is not None
    return found


def only_pool(*objects: Any, name: str = "p", **facts: Any) -> PoolAccount:
    (found,) = account(*objects, name=name, **facts).pools
    return found


def fixes(*objects: Any, name: str = "p", **facts: Any) -> list[str]:
    return [str(fix) for fix in account(*objects, name=name, **facts).fixes]
