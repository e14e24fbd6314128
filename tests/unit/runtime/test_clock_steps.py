"""A clock that is ahead for a while and is set right, in a whole sandbox and in each part that counts time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.cli.demonstration.demo import manifests
from kerf.model.aws.cloud import FleetError, FleetRequest
from kerf.model.aws.inventory import TEMPLATE
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import CreateNodeClaim, DeleteObject, Nomination, Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf.ports import Ports
from kerf.runtime.controller import Controller
from kerf.runtime.process.clock import SMALL_STEP, STEP_LASTS, SteadyClock
from kerf.runtime.state.backoff import ACTION_STEPS, Backoff
from kerf.runtime.state.batching import AGAIN, BatchWindow
from kerf.runtime.state.fleet import Fleet
from kerf.runtime.state.inventories import Inventories
from kerf.runtime.state.node_changes import NodeChanges
from kerf.runtime.state.promises import Promises
from kerf.runtime.state.state import State
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf_api.v1.meta import ObjectMeta

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, HOUR, YEAR = timedelta(seconds=1), timedelta(hours=1), timedelta(days=365)
SETTINGS = Settings(cluster_name="sandbox")


class Wrong:
    """The Clock port over another clock; its time of day is off by `off`, its monotonic time is not."""

    def __init__(self, right: Any) -> None:
        self._right, self.off = right, timedelta(0)

    def now(self) -> datetime:
        return self._right.now() + self.off  # type: ignore[no-any-return]

    def monotonic(self) -> float:
        return self._right.monotonic()  # type: ignore[no-any-return]

    def sleep(self, seconds: float) -> None:
        self._right.sleep(seconds)


class AllWrong(Wrong):
    """One whose monotonic time is off as well: nobody can tell a step from time that has passed."""

    def monotonic(self) -> float:
        return super().monotonic() + self.off.total_seconds()


def running(kind: type[Wrong] = Wrong) -> tuple[World, Controller, Wrong]:
    """A controller that has made nodes for all pods."""
    world = World()
    clock = kind(world.clock)
    loop = Controller(Ports(kube=world.kube, cloud=world.cloud, clock=clock), settings=SETTINGS, inline=True)
    for manifest in manifests("EC2NodeClass", "NodePool", "Deployment"):
        name = manifest["metadata"]["name"]
        if name == "web" or (name != "mistake" and manifest["kind"] != "Deployment"):
            world.apply(manifest)
    world.scale("default", "web", 2)
    world.run(loop, timedelta(minutes=2))
    return world, loop, clock


def ticks(world: World, loop: Controller, seconds: float) -> list[Plan]:
    """A look every half second, in which the world goes on, too."""
    plans = []
    for _ in range(int(seconds * 2)):
        world.clock.sleep(0.5)
        world.step()
        plans.append(loop.tick())
    return plans


@pytest.mark.parametrize("off", [HOUR, YEAR, -YEAR])
def test_nothing_ends_because_of_a_clock_that_is_wrong_for_two_seconds(off: timedelta) -> None:
    world, loop, clock = running()
    world.scale("default", "web", 20)
    ticks(world, loop, 20)  # nodes are on their way: an hour later they would have failed
    clock.off = off
    plans = ticks(world, loop, 2)
    clock.off = timedelta(0)
    plans += ticks(world, loop, 20)
    assert [action.key for plan in plans for action in plan.actions if isinstance(action, DeleteObject)] == []


def made(plans: list[Plan]) -> int:
    return sum(isinstance(action, CreateNodeClaim) for plan in plans for action in plan.actions)


@pytest.mark.parametrize(
    ("kind", "off", "before"),
    [
        (Wrong, HOUR, 0.5),
        (Wrong, YEAR, 1.5),
        (Wrong, -YEAR, 0.5),
        (Wrong, HOUR, STEP_LASTS.total_seconds() + 1),
        (AllWrong, HOUR, 1.5),
        (AllWrong, YEAR, 0.5),
        (AllWrong, -HOUR, 0.5),
    ],
)
def test_pods_that_came_while_the_clock_was_wrong_are_served_within_the_batch_window(
    kind: type[Wrong], off: timedelta, before: float
) -> None:
    """Whether the step of the clock counted already when they came, or not."""
    world, loop, clock = running(kind)
    clock.off = off
    ticks(world, loop, before)
    world.scale("default", "web", 20)
    during = ticks(world, loop, 0.5)
    clock.off = timedelta(0)
    after = ticks(world, loop, SETTINGS.batch_max.total_seconds() + 1)
    assert made([*during, *after]) > 0
    batch = loop.state.batch.at(clock.now())
    assert batch is None or batch.again, "all of them were served, and some wait for their nodes"


# --- the clock --------------------------------------------------------------------------------------------------
def test_a_step_of_the_time_of_day_counts_once_it_has_lasted() -> None:
    right = VirtualClock(NOW)
    wrong = Wrong(right)
    clock = SteadyClock(wrong)
    wrong.off = HOUR
    assert clock.now() == NOW
    right.sleep(STEP_LASTS.total_seconds() - 0.5)
    assert clock.now() == right.now()
    right.sleep(0.5)
    assert clock.now() == right.now() + HOUR
    wrong.off = timedelta(0)
    assert clock.now() == right.now() + HOUR
    right.sleep(STEP_LASTS.total_seconds())
    assert clock.now() == right.now()


def test_a_small_step_counts_at_once_and_one_that_is_taken_back_never() -> None:
    right = VirtualClock(NOW)
    wrong = Wrong(right)
    clock = SteadyClock(wrong)
    wrong.off = SMALL_STEP
    assert clock.now() == NOW + SMALL_STEP
    for _ in range(20):
        wrong.off = HOUR if wrong.off == SMALL_STEP else SMALL_STEP
        right.sleep(2.0)
        assert clock.now() == right.now() + SMALL_STEP


def test_a_steady_clock_is_not_made_steady_twice() -> None:
    clock = SteadyClock(VirtualClock(NOW))
    assert SteadyClock.over(clock) is clock
    assert SteadyClock.over(VirtualClock(NOW)).now() == NOW


# --- each part --------------------------------------------------------------------------------------------------
def test_a_batch_that_a_clock_ahead_opened_closes_in_time() -> None:
    window = BatchWindow()
    window.trigger("a", NOW + HOUR)
    window.trigger("b", NOW + HOUR + SECOND)
    window.set_back(HOUR)
    assert window.at(NOW + SECOND) == Batch(NOW, NOW + SECOND, maiden=True)
    assert window.asked_since(NOW + SECOND)
    window.served(NOW + 2 * SECOND + HOUR)
    window.set_back(HOUR)
    assert window.due(NOW + 3 * SECOND, SETTINGS) == NOW + 2 * SECOND + AGAIN


def test_a_back_off_lasts_no_longer_for_a_clock_that_was_ahead() -> None:
    failures = Backoff(ACTION_STEPS)
    until = failures.failed("x", NOW + HOUR)
    failures.set_back(HOUR)
    assert failures.until("x") == until - HOUR
    assert failures.holding(NOW) == {"x": until - HOUR}


def test_what_was_nominated_or_done_by_a_clock_ahead_lasts_as_long_as_ever() -> None:
    promises, ahead = Promises(), NOW + HOUR
    nominations = (Nomination("pod", "a", ahead + SECOND, since=ahead),)
    promises.planned(Plan(provisioned=True, nominations=nominations, unread_since={"n": ahead}))
    promises.settle("Deed a", "uid", ahead + SECOND)
    promises.set_back(HOUR)
    assert promises.nominated == {"a": NOW + SECOND}
    assert promises.latest.nominations == (Nomination("pod", "a", NOW + SECOND, since=NOW),)
    assert promises.latest.unread_since == {"n": NOW}
    assert promises.settles("Deed a", "uid") == NOW + SECOND
    promises.forget_old(NOW + SECOND)
    assert (promises.nominated, promises.settles("Deed a", "uid")) == ({}, None)


def test_a_stock_out_and_a_failed_launch_are_as_old_as_before() -> None:
    fleet = Fleet()
    fleet.close([("m5.large", "a", "spot")], NOW + HOUR)
    call = FleetRequest(group="group", capacity_type="spot", members=("a",), templates=(), overrides=())
    fleet.failed(call, [FleetError(code="x", message="")], NOW + HOUR)
    fleet.set_back(HOUR)
    assert list(fleet.out_of_stock(NOW).values()) == [NOW + timedelta(minutes=3)]
    assert (fleet.failures(NOW)["group"].at, fleet.failures(NOW)["group"].since) == (NOW, NOW)


def test_a_template_that_was_used_under_a_clock_ahead_is_not_kept_for_longer() -> None:
    known = Inventories()
    known.listed(TEMPLATE, (), NOW + HOUR)
    known.set_back(HOUR)
    assert TEMPLATE in known.told()


def test_a_change_of_a_node_is_as_long_ago_as_before() -> None:
    changes = NodeChanges()
    changes.noticed(None, Node(metadata=ObjectMeta(name="a")), NOW + HOUR)
    changes.set_back(HOUR)
    assert changes.at(NOW) == {"a": NOW}


def test_a_state_notices_a_clock_that_is_set_back_and_nothing_else() -> None:
    state = State(SETTINGS, build=lambda *given: (), interpret=lambda message: None)
    state.actions.failed("x", NOW)
    until = state.actions.until("x")
    assert until is not None
    for now in (NOW, NOW + SECOND, NOW + HOUR):
        state.notice(now)
        assert state.actions.until("x") == until
    state.notice(NOW + SECOND)
    assert state.actions.until("x") == until - HOUR + SECOND
