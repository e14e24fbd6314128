"""Drains that never end by themselves, as with PodDisruptionBudgets that allow no eviction, or that take very long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.judgement.draining import never_drained
from kerf.judgement.troubles import REMOVED_WITHIN
from kerf.model.failures import Failure, key
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


def test_the_grace_period_of_the_node_pool_is_no_fix_for_a_drain_under_way() -> None:
    """A NodeClaim keeps its own."""
    (found,) = never_drained(snapshot((pool(), *ending(), pod("db", "a"), never("keep"))))
    assert found.fix == (
        "correct the budget or delete the pod; "
        "spec.template.spec.terminationGracePeriod in the NodePool limits the drains of later nodes"
    )


def test_a_drain_that_ends_is_none() -> None:
    deadline = {labels.TERMINATION_TIMESTAMP: stamp(NOW + HOUR)}
    assert not told(pool(), *ending(**deadline), pod("db", "a"), never("keep"))
    assert not told(pool(), *ending(), pod("db", "a", labels_={"app": "x"}), never("keep", app="db"))


@pytest.mark.parametrize(("more", "count"), [(timedelta(0), 1), (-MINUTE, 0)], ids=["two hours", "nearly"])
def test_a_removal_of_hours_is_told_with_its_state(more: timedelta, count: int) -> None:
    protected = pod("job", "a", annotations={labels.DO_NOT_DISRUPT: "true"})
    world = snapshot((pool(), *ending(), protected))
    rows = list(never_drained(replace(world, now=NOW - MINUTE + REMOVED_WITHIN + more)))
    words = "is not removed: is being drained: 1 pod left; pod shop/job is annotated karpenter.sh/do-not-disrupt"
    assert [one.text for one in rows] == [words] * count
    assert [one.since for one in rows] == [NOW - MINUTE] * count


def test_a_deadline_that_has_passed_long_ago_is_told() -> None:
    deadline = {labels.TERMINATION_TIMESTAMP: stamp(NOW + HOUR)}
    world = snapshot((pool(), *ending(**deadline)))
    assert not list(never_drained(replace(world, now=NOW + HOUR + REMOVED_WITHIN - MINUTE)))
    (found,) = never_drained(replace(world, now=NOW + HOUR + REMOVED_WITHIN))
    assert "is not removed: is drained; its instance is about to be terminated" in found.text


def test_a_removal_that_fails_for_long_is_told_with_its_failure_once() -> None:
    going, its = ending()
    about = f"instance/{going.assigned_instance}"
    failed = Failure("TerminateInstance", about, "forbidden", "no permission", NOW, NOW, 3)
    world = snapshot((pool(), going, its), failures={key(failed.verb, about): failed})
    (found,) = never_drained(replace(world, now=NOW + REMOVED_WITHIN))
    assert found.text.startswith("is not removed: is drained, but TerminateInstance is forbidden: no permission; give ")
    assert found.text.count("no permission") == 1
