"""What is kept in AWS for launches goes when nothing needs it any more, and not before, from end to end."""

from __future__ import annotations

from datetime import timedelta

from kerf.lifecycle.nodeclass.unused import KEPT
from kerf.model import kinds
from kerf.runtime.observe.observer import INVENTORIES_EVERY
from tests.simulation.stage import Stage

LONG = (KEPT + 2 * INVENTORIES_EVERY + timedelta(minutes=1)).total_seconds()


def with_role(stage: Stage, role: str) -> str:
    """The class has this role from now on; the profile that it gets for it."""
    before = set(stage.world.cloud.profiles)
    stage.world.server.patch(kinds.NODE_CLASS, "", "default", {"spec": {"role": role}})
    stage.run(300, until=lambda: len(stage.world.cloud.profiles) > len(before))
    (made,) = set(stage.world.cloud.profiles) - before
    return made


def test_the_profile_of_a_former_role_stays_for_as_long_as_a_node_has_it() -> None:
    """No node drifts: no budget allows it."""
    stage = Stage(
        disruption={"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}
    )
    stage.settle()
    (old,) = stage.world.cloud.profiles
    new = with_role(stage, "another-role")
    stage.run(3 * LONG)
    assert set(stage.world.cloud.profiles) == {old, new}
    stage.world.server.patch(kinds.NODE_POOL, "", "general", {"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}})
    stage.run(LONG, until=lambda: set(stage.world.cloud.profiles) == {new})
    assert {machine.profile for machine in stage.machines} == {new}


def test_a_template_goes_and_the_next_launch_makes_it_again() -> None:
    stage = Stage()
    stage.settle()
    assert stage.world.cloud.templates
    stage.run(LONG, until=lambda: not stage.world.cloud.templates)
    stage.world.server.patch(kinds.DEPLOYMENT, "default", "web", {"spec": {"replicas": 2}})
    stage.run(300, until=lambda: len(stage.machines) == 2 and stage.all_run())
    assert stage.world.cloud.templates


def test_who_has_begun_anew_waits_anew() -> None:
    stage = Stage()
    stage.settle()
    stage.world.server.patch(kinds.DEPLOYMENT, "default", "web", {"spec": {"replicas": 0}})
    stage.run(KEPT.total_seconds() / 2)
    stage.restart()
    kept = dict(stage.world.cloud.templates)
    stage.run(KEPT.total_seconds() - 120)
    assert stage.world.cloud.templates == kept
