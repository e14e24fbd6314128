"""When something happened to the pods of a node, and what follows (134 and 135 of the disruption catalogue)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.drift.conditions import conditions
from kerf.disruption.view import view
from kerf.model.plan import PatchObject, Plan
from tests.unit.disruption import worlds as w
from tests.unit.lifecycle import world as life

DAEMON = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]}


def after(seconds: int) -> datetime:
    return life.NOW + timedelta(seconds=seconds)


def usable(seconds: int = 100) -> life.World:
    """A node that is usable since so many seconds."""
    world = life.running(life.node_claim("a"))
    world.pass_time(seconds)
    return world


def pod(name: str, came: int = 0, *, ended: int | None = None, told: int | None = None, **more: Any) -> Any:
    """A pod that came, ended by itself and was told to go after so many seconds; it has 600 to do that."""
    status: dict[str, Any] = {"startTime": life.text(after(came))}
    if ended is not None:
        over = {"type": "Ready", "status": "False", "lastTransitionTime": life.text(after(ended))}
        status |= {"phase": "Succeeded", "conditions": [over]}
    meta = more.pop("meta", {})
    if told is not None:
        going = {"deletionTimestamp": life.text(after(told + 600)), "deletionGracePeriodSeconds": 600}
        meta = {**meta, **going}
    return life.pod(name, "node-a", status={**status, **more.pop("status", {})}, meta=meta, **more)


def noted(world: life.World, *pods: Any) -> datetime | None:
    for each in pods:
        world.put(each)
    world.settle()
    return world.claim().status.last_pod_event_time


@pytest.mark.parametrize(
    ("event", "at"),
    [
        ({"came": 40}, 40),
        ({"came": 20, "ended": 60}, 60),
        ({"came": 20, "told": 70}, 70),
        ({"came": 20, "ended": 60, "told": 70}, 70),
    ],
)
def test_134_the_latest_event_of_a_pod_is_noted(event: dict[str, int], at: int) -> None:
    """That it came, ended or was told to go; not that it is gone."""
    world = usable()
    assert noted(world, pod("early", 10), pod("late", **event)) == after(at)
    world.objects = {ref: value for ref, value in world.objects.items() if ref.name != "late"}
    assert noted(world) == after(at)


def test_134_a_pod_that_no_kubelet_has_taken_up_counts_from_its_binding() -> None:
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": life.text(after(50))}
    assert noted(usable(), pod("one", status={"startTime": None, "conditions": [bound]})) == after(50)


def test_134_events_within_ten_seconds_are_one() -> None:
    world = usable()
    assert noted(world, pod("one", 20)) == after(20)
    world.put(pod("two", 29))
    assert world.decide() == Plan()
    assert noted(world, pod("three", 30)) == after(30)


def test_134_what_a_daemon_set_does_is_no_event() -> None:
    world = usable()
    assert noted(world, pod("log", 20, told=60, meta=DAEMON)) is None
    assert world.decide() == Plan()


def test_134_a_pod_that_takes_its_time_to_go_is_one_event() -> None:
    """Nobody hears of it again, nor does a controller that has just begun: it reads the same pods."""
    world = usable()
    assert noted(world, pod("slow", 20, told=70)) == after(70)
    world.pass_time(300)
    assert world.decide().actions == ()


def test_134_without_a_node_or_a_claim_nothing_is_noted() -> None:
    world = life.prepared(life.node_claim("a"))
    world.settle()
    assert noted(world, pod("one", 20)) is None
    assert noted(world, life.pod("two", "node-of-nobody")) is None


# --- Consolidatable ---------------------------------------------------------------------------------------------
def said(after: str, event: datetime | None, initialized: datetime | None, **more: Any) -> tuple[bool, Plan]:
    """Whether a claim ends up consolidatable, and the plan that sees to it."""
    one = w.claim("a", since=w.NOW - 9 * w.HOUR, **more)
    rows = [
        replace(c, last_transition_time=initialized) if c.type == "Initialized" else c for c in one.status.conditions
    ]
    rows = [c for c in rows if initialized is not None or c.type != "Initialized"]
    one = replace(one, status=replace(one.status, conditions=tuple(rows), last_pod_event_time=event))
    plan = conditions(view(w.snapshot([w.pool(consolidateAfter=after), one, w.node(one)])))
    for patch in plan.actions:
        assert isinstance(patch, PatchObject)
        found = patch.patch["status"]["conditions"]
        return any(row["type"] == "Consolidatable" and row["status"] == "True" for row in found), plan
    return one.is_true("Consolidatable"), plan


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("after", "event", "initialized", "expected"),
    [
        ("1m", w.NOW - w.MINUTE, w.NOW - w.HOUR, True),
        ("1m", w.NOW - 59 * w.MINUTE / 60, w.NOW - w.HOUR, False),
        ("1m", w.NOW - w.MINUTE, w.NOW, True),
        ("1m", None, w.NOW - w.MINUTE, True),
        ("1m", None, w.NOW - w.MINUTE / 2, False),
        ("0s", w.NOW, w.NOW, True),
        ("Never", None, w.NOW - w.HOUR, False),
        ("nonsense", None, w.NOW - w.HOUR, False),
        ("1m", w.NOW - w.HOUR, None, False),
    ],
)
def test_135_a_claim_is_consolidatable_when_its_pods_have_been_quiet(
    after: str, event: datetime | None, initialized: datetime | None, expected: bool, before: bool
) -> None:
    """Without any event of a pod since it was initialised; what was said before does not matter."""
    assert said(after, event, initialized, consolidatable=before)[0] is expected


def test_135_it_is_looked_at_again_when_the_time_has_passed() -> None:
    found, plan = said("5m", w.NOW - w.MINUTE, w.NOW - w.HOUR, consolidatable=False)
    assert (found, plan.actions, plan.next_due) == (False, (), w.NOW + 4 * w.MINUTE)
