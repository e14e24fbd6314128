"""What a scenario is judged by can fail: each law is broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model import kinds
from kerf.sandbox.faults import Call
from kerf_api import labels
from tests.scenarios.story import Broken, Story
from tests.simulation.invariants import Violation

QUIET = {"pools": {"general": {"expireAfter": "Never", "budgets": [{"nodes": "0"}]}}}


def settled(**deployment: Any) -> Story:
    """A pod on a node that nobody wants to end."""
    story = Story()
    story.do_stage(QUIET)
    story.do_deploy({"web": {"replicas": 1, **deployment}})
    story.do_expect({"running": {"web": 1}, "within": "3m"})
    story.do_run("10m")
    return story


def in_its_name(story: Story) -> Any:
    """What happens now is said to be the controller's doing."""
    story.player.invariants.acting = 1
    return story.world.server


def pod_of(story: Story) -> Any:
    (record,) = story.world.server.records(kinds.POD)
    return record.value


def test_an_idle_world_is_idle() -> None:
    settled().do_idle("720h")


def test_a_write_in_an_idle_world_is_found() -> None:
    story = settled()
    story.world.agenda.after(3600.0, lambda: story.trouble.before(Call("kube", "patch", "node/any")))
    with pytest.raises(Broken, match="1 writes, 0 events in 2h"):
        story.do_idle("2h")


def test_an_event_in_an_idle_world_is_found() -> None:
    story = settled()
    story.world.agenda.after(3600.0, lambda: story.trouble.before(Call("kube", "emit", "node/any")))
    with pytest.raises(Broken, match="0 writes, 1 events in 2h"):
        story.do_idle("2h")


def test_something_due_in_a_calm_world_is_not_passed_by() -> None:
    """A controller that sleeps for hours wakes for what happens, and for what its plan says is due."""
    story = settled(annotations={labels.DO_NOT_DISRUPT: "4h"})
    story.do_edit({"general": {"labels": {"version": "two"}, "budgets": [{"nodes": "100%"}]}})
    story.do_expect({"conditions": {"NodePool general UpToDate": "False Blocked"}, "within": "1m"})
    started = story.world.clock.now()
    story.do_always({"running": {"web": 1}})
    story.do_run("3h")
    story.do_always({})
    story.do_expect({"labelled": {"version": ["two"]}, "running": {"web": 1}, "within": "90m"})
    assert (story.world.clock.now() - started).total_seconds() < 4 * 3600 + 180


def test_who_was_evicted_for_good_is_found() -> None:
    story = settled(nodeSelector={labels.NODEPOOL: "general"})
    story.world.delete("NodePool", "general")
    story.do_run("1m")
    with pytest.raises(Broken, match=r"evicted for good: web-\w+ has 0 of 1 pods"):
        story.end()
    story.do_no_place(["web"])
    story.end()


def test_who_was_scaled_to_nothing_is_not_missed() -> None:
    story = settled()
    story.do_delete({"Node": "first"})
    story.do_run("20s")
    assert story.player.evictions.count == 1
    story.do_scale({"web": 0})
    story.end()


def test_what_is_not_always_so_is_found() -> None:
    story = settled()
    story.do_always({"running": {"web": ">= 1"}})
    story.do_delete({"Node": "first"})
    with pytest.raises(Broken, match=r"not always so: .*wanted {'web': '>= 1'}, found {'web': 0}"):
        story.do_run("10m")


def test_invariants_are_looked_at_in_between() -> None:
    story = settled()
    server, pod = in_its_name(story), pod_of(story)
    story.trouble.before(Call("kube", "evict", f"pod/{pod.key}"))
    server.delete(kinds.POD, pod.metadata.namespace, pod.metadata.name)
    with pytest.raises(Violation, match="taint: pod/default/web"):
        story.do_run("1m")
