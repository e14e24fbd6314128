"""Drains that never end by themselves: PodDisruptionBudgets that allow no eviction at all."""

from __future__ import annotations

from typing import Any

from kerf.judgement.draining import never_drained
from kerf_api import labels
from tests.unit.disruption.worlds import HOUR, NOW, pdb, pod, pool, snapshot, stamp
from tests.unit.judgement.test_stages import MINUTE, ending


def told(*objects: Any) -> list[str]:
    return [str(one) for one in never_drained(snapshot(objects))]


def never(name: str, app: str = "web") -> Any:
    """A budget that never allows an eviction, as maxUnavailable 0 does."""
    return pdb(name, app=app, maxUnavailable=0)


def test_a_budget_of_none_is_named_with_its_pods() -> None:
    (found,) = never_drained(snapshot((pool(), *ending(), pod("db", "a"), pod("web", "a"), never("keep"))))
    assert (found.object, found.since, found.times) == ("nodeclaim/a", NOW - MINUTE, 2)
    assert found.text == (
        "does not drain: PodDisruptionBudget shop/keep never allows the eviction of 2 pods (shop/db, shop/web)"
    )


def test_two_budgets_of_one_pod_are_both_named() -> None:
    (found,) = told(pool(), *ending(), pod("db", "a"), pdb("one", 1), pdb("two", 1))
    assert "PodDisruptionBudgets shop/one, shop/two never allow the eviction of pod shop/db" in found


def test_a_drain_that_ends_is_none() -> None:
    deadline = {labels.TERMINATION_TIMESTAMP: stamp(NOW + HOUR)}
    assert not told(pool(), *ending(**deadline), pod("db", "a"), never("keep"))
    assert not told(pool(), *ending(), pod("db", "a", labels_={"app": "x"}), never("keep", app="db"))
