"""A drain with a deadline, and the answers of evictions (163 to 165 and 167 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.kubernetes.objects import PodDisruptionBudget
from kerf.model.plan import EvictPod
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.drains import CRITICAL, draining, evicted, forced
from tests.unit.lifecycle.world import NOW, World, pod, text
from tests.unit.runtime.test_executor import WHY, Setting

PROTECTED = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
REQUESTS = "karpenter_pods_eviction_requests_total"


def until(world: World, seconds: int) -> None:
    """Somebody writes another deadline, so many seconds after the beginning."""
    claim = world.claim()
    notes = {**claim.metadata.annotations, labels.TERMINATION_TIMESTAMP: text(NOW + timedelta(seconds=seconds))}
    world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))
    world.settle()


def ends(world: World, name: str = "web") -> float:
    """When the pod will have ended, in seconds after the beginning."""
    found = next(value for ref, value in world.objects.items() if ref.name == name)
    return float((found.metadata.deletion_timestamp - NOW).total_seconds())


@pytest.mark.parametrize(
    ("own_grace", "after", "given"), [(300, 0, 300), (400, 0, 300), (60, 0, None), (60, 239, None), (60, 240, 60)]
)
def test_163_a_pod_is_deleted_when_its_grace_would_end_with_the_node(
    own_grace: int, after: int, given: int | None
) -> None:
    """Of 300 seconds; whatever protects it."""
    world = draining(pod("web", "node-a", meta=PROTECTED, terminationGracePeriodSeconds=own_grace), grace="300s")
    world.pass_time(after)
    plan = world.decide()
    assert forced(plan) == ([] if given is None else [("web", given)])
    assert ("Disrupted" in [event.reason for event in plan.events]) == (given is not None)


def test_163_a_pod_that_would_end_too_late_is_given_what_is_left() -> None:
    late = {"deletionTimestamp": text(NOW + timedelta(seconds=6000))}
    world = draining(pod("slow", "node-a", meta=late), grace="300s")
    world.pass_time(100)
    plan = world.decide()
    assert forced(plan) == [("slow", 200)]
    world.obey(plan)
    assert forced(world.decide()) == [], "once"


def test_164_a_critical_pod_does_not_wait_for_its_wave_when_its_time_is_over() -> None:
    """A budget keeps the pod of the first wave."""
    world = draining(
        pod("web", "node-a", terminationGracePeriodSeconds=1),
        pod("dns", "node-a", priorityClassName=CRITICAL, terminationGracePeriodSeconds=90),
        grace="60s",
    )
    world.facts["not_before"] = {"eviction/default/web": NOW + timedelta(hours=1)}
    plan = world.decide()
    assert (forced(plan), evicted(plan)) == ([("dns", 60)], [])


@pytest.mark.parametrize("after", [0, 500])
def test_165_a_pod_has_a_second_at_least(after: int) -> None:
    """Deadlines that are past, and one that is now."""
    world = draining(pod("web", "node-a"), grace="0s")
    world.pass_time(after)
    assert forced(world.decide()) == [("web", 1)]


def test_165_a_deadline_that_is_brought_forward_counts_and_one_that_is_put_off_gives_no_time_back() -> None:
    world = draining(pod("web", "node-a", meta=PROTECTED, terminationGracePeriodSeconds=600), grace="600s")
    world.settle()
    assert ends(world) == 600
    until(world, 100)
    assert ends(world) == 100
    until(world, 5000)
    assert ends(world) == 100
    assert forced(world.decide()) == []


# --- 167 --------------------------------------------------------------------------------------------------------
def budget(name: str, allowed: int = 0) -> PodDisruptionBudget:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return decode(
        PodDisruptionBudget,
        {"metadata": meta, "spec": {"selector": {}}, "status": {"disruptionsAllowed": allowed}},
    )


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        (["one"], "PodDisruptionBudget default/one does not allow the eviction of pod default/web"),
        (["one", "two"], "several PodDisruptionBudgets, which eviction does not support: default/one, default/two"),
    ],
)
def test_167_the_reason_of_a_refused_eviction_is_reported_on_the_node(budgets: list[str], words: str) -> None:
    """Beside how many pods it waits for."""
    world = draining(pod("web", "node-a"))
    for name in budgets:
        world.put(budget(name))
    assert len(world.decide().events) == 1, "it has not been asked for"
    world.facts["not_before"] = {"eviction/default/web": world.now + timedelta(seconds=3)}
    events = [event for event in world.decide().events if event.reason == "FailedDraining"]
    assert {(str(event.ref), event.type) for event in events} == {("node/node-a", "Warning")}
    assert len({event.dedupe for event in events}) == 2
    assert [words in event.message for event in events] == [False, True]


@pytest.mark.parametrize(("budgets", "code"), [([], "200"), (["one"], "429"), (["one", "two"], "500"), (None, "404")])
def test_167_answers_are_counted_by_their_code(budgets: list[str] | None, code: str) -> None:
    """Without a budget, with one, with two, and of a pod that is gone."""
    setting = Setting()
    if budgets is not None:
        setting.pod("web", "n")
        running: dict[str, Any] = {"status": {"phase": "Running"}}
        setting.world.server.patch(kinds.POD, "default", "web", running, subresource="status")
    for name in budgets or ():
        meta = {"name": name, "namespace": "default"}
        setting.world.kube.create(kinds.PDB, {"metadata": meta, "spec": {"selector": {}}})
    action = EvictPod(ref=kinds.Ref("Pod", "default", "web"), uid="", node_name="n", reason=WHY)
    (done,) = setting.do(action)
    telemetry = Telemetry.quiet(setting.world.kube, setting.world.clock)
    telemetry.done(action, done.outcome, done.value, done.error, None)
    value = telemetry.metrics.registry.get_sample_value
    counted = {each: value(REQUESTS, {"code": each}) for each in ("200", "404", "429", "500")}
    assert counted == {each: 1 if each == code else None for each in counted}
