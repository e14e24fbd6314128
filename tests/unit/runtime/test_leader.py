"""Leader election on the sandbox's leases, with clocks that a test moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kerf.model.instants import rfc3339
from kerf.ports import Lease, Unavailable
from kerf.runtime.leadership.leader import Candidate, Leader
from kerf.runtime.leadership.leases import LOOK, RENEW_DEADLINE, RETRY, leading_since
from kerf.sandbox.api.kube import SandboxKube
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf_api import labels

NAME = "karpenter-leader-election"


def candidate(world: World, who: str, clock: VirtualClock | None = None) -> Leader:
    return Leader(world.kube, clock or world.clock, Candidate("default", NAME, who))


def lease(world: World) -> Lease:
    found = world.kube.get_lease("default", NAME)
    assert found is not None
    return found


def test_the_first_leads_and_the_second_waits_until_the_lease_has_run_out() -> None:
    world = World()
    one, two = candidate(world, "one"), candidate(world, "two")
    assert one.step()
    assert not two.step()
    assert (one.may_act(), two.may_act()) == (True, False)
    for _ in range(7):
        world.clock.sleep(2)
        assert not two.step()
    assert not one.may_act()
    world.clock.sleep(2)
    assert two.step()
    assert (lease(world).holder, lease(world).transitions) == ("two", 1)


def test_a_renewed_lease_is_kept() -> None:
    world = World()
    one, two = candidate(world, "one"), candidate(world, "two")
    for _ in range(20):
        assert one.step()
        assert not two.step()
        world.clock.sleep(2)
    assert lease(world).transitions == 0
    assert one.may_act()
    assert not one.lost


def test_nothing_may_start_after_the_renew_deadline() -> None:
    world = World()
    one = candidate(world, "one")
    one.step()
    world.clock.jump(world.clock.now() + RENEW_DEADLINE - timedelta(seconds=1))
    assert one.may_act()
    world.clock.sleep(1)
    assert not one.may_act()
    assert one.lost


def test_a_released_lease_is_taken_at_once() -> None:
    world = World()
    one, two = candidate(world, "one"), candidate(world, "two")
    one.step()
    two.step()
    one.release()
    assert not one.may_act()
    assert two.step()
    assert lease(world).holder == "two"


def test_a_lease_that_was_lost_is_given_up_unless_another_has_it() -> None:
    world = World()
    one, two, three = (candidate(world, who) for who in ("one", "two", "three"))
    one.step()
    world.clock.sleep(12)
    assert one.lost
    one.release()
    assert two.step()
    world.clock.sleep(15)
    assert not three.step()
    world.clock.sleep(15)
    assert three.step()
    two.release()
    assert lease(world).holder == "three"


def test_the_clock_of_another_is_not_believed() -> None:
    world = World()
    behind = VirtualClock(world.clock.now() - timedelta(hours=1))
    one, two = candidate(world, "one", behind), candidate(world, "two")
    one.step()
    assert not two.step()
    assert not two.may_act()


class Unreachable:
    """A Kube whose leases cannot be reached when a test says so."""

    def __init__(self, kube: SandboxKube) -> None:
        self.kube, self.down = kube, False

    def get_lease(self, namespace: str, name: str) -> Lease | None:
        if self.down:
            raise Unavailable("down")
        return self.kube.get_lease(namespace, name)

    def put_lease(self, namespace: str, name: str, lease: Lease) -> Lease:
        return self.kube.put_lease(namespace, name, lease)


def test_a_leader_that_cannot_reach_the_server_stops_acting_in_time() -> None:
    world = World()
    kube = Unreachable(world.kube)
    errors: list[Exception] = []
    one = Leader(kube, world.clock, Candidate("default", NAME, "one"), on_error=errors.append)  # type: ignore[arg-type]
    assert one.step()
    kube.down = True
    acted_until: datetime = world.clock.now()
    while one.step():
        acted_until = world.clock.now()
        world.clock.sleep(2)
    assert acted_until - lease(world).renewed < RENEW_DEADLINE  # type: ignore[operator]
    assert errors


def test_who_waits_sees_soon_that_the_lease_was_given_up() -> None:
    world = World()
    one, other = (Leader(world.kube, world.clock, Candidate("default", NAME, name)) for name in ("one", "other"))
    assert one.step()
    assert not other.step()
    assert other.pause() == LOOK
    one.release()
    world.clock.sleep(LOOK.total_seconds())
    assert other.step()


def test_a_renewal_that_failed_is_tried_again_sooner_while_it_still_counts() -> None:
    world = World()
    kube = Unreachable(world.kube)
    one = Leader(kube, world.clock, Candidate("default", NAME, "one"))  # type: ignore[arg-type]
    kube.down = True
    one.step()
    assert one.pause() == RETRY
    kube.down = False
    one.step()
    assert one.pause() == RETRY
    kube.down = True
    one.step()
    assert one.pause() < RETRY
    world.clock.sleep(10)
    one.step()
    assert one.pause() == RETRY


class Odd:
    """A Kube in which a bug shows when a test says so."""

    def __init__(self, kube: SandboxKube) -> None:
        self.kube, self.broken = kube, False

    def get_lease(self, namespace: str, name: str) -> Lease | None:
        if self.broken:
            raise ZeroDivisionError
        return self.kube.get_lease(namespace, name)

    def put_lease(self, namespace: str, name: str, lease: Lease) -> Lease:
        if self.broken:
            raise ZeroDivisionError
        return self.kube.put_lease(namespace, name, lease)


def test_a_bug_is_a_renewal_that_failed() -> None:
    world = World()
    kube, errors = Odd(world.kube), list[Exception]()
    one = Leader(kube, world.clock, Candidate("default", NAME, "one"), on_error=errors.append)  # type: ignore[arg-type]
    kube.broken = True
    assert not one.step()
    kube.broken = False
    assert one.step()
    kube.broken = True
    assert one.step()
    world.clock.sleep(10)
    assert not one.step()
    assert one.lost
    one.release()
    assert [type(error) for error in errors] == [ZeroDivisionError] * 4


class SetBack(VirtualClock):
    """A clock whose time of day somebody corrects, by an hour."""

    wrong = timedelta(hours=1)

    def now(self) -> datetime:
        return super().now() + self.wrong


def test_a_time_of_day_that_is_set_back_prolongs_no_lease() -> None:
    world, clock = World(), SetBack()
    one = candidate(world, "one", clock)
    assert one.step()
    clock.wrong = timedelta(0)
    clock.sleep(9)
    assert one.may_act()
    clock.sleep(1)
    assert not one.may_act()


def test_a_holder_whose_clock_is_wrong_is_watched_by_ours() -> None:
    world, clock = World(), SetBack()
    one, two = candidate(world, "one"), candidate(world, "two", clock)
    assert one.step()
    assert not two.step()
    clock.wrong = timedelta(0)
    clock.sleep(14)
    assert not two.step()
    clock.sleep(1)
    assert two.step()


def test_the_version_on_the_lease_outlives_the_leader_and_reaches_the_next_one() -> None:
    world, noted = World(), list[str]()
    one = Leader(world.kube, world.clock, Candidate("default", NAME, "one"), kubernetes_version=lambda: "1.36")
    other = Leader(world.kube, world.clock, Candidate("default", NAME, "other"), on_version=noted.append)
    assert one.step()
    for _ in range(2):
        assert not other.step()
    assert noted == ["1.36"]
    one.release()
    assert other.step()  # it does not know a version of its own yet
    assert lease(world).annotations[labels.KUBERNETES_VERSION] == "1.36"
    assert noted == ["1.36", ""]
    assert other.step()
    assert noted == ["1.36", ""]


# --- since when Kerf leads --------------------------------------------------------------------------------------
def test_since_when_kerf_leads_outlives_its_processes() -> None:
    world = World()
    one, two = candidate(world, "one"), candidate(world, "two")
    began = world.clock.now()
    assert one.since is None
    assert one.step()
    world.clock.sleep(5)
    assert one.step()
    one.release()
    world.clock.sleep(3600)
    assert two.step()
    assert one.since == two.since == began.replace(microsecond=0)
    assert leading_since(lease(world)) == began.replace(microsecond=0)


def test_another_controller_in_between_ends_it() -> None:
    """Karpenter keeps the annotations of a lease that it takes, and counts the transition."""
    world = World()
    one, two = candidate(world, "one"), candidate(world, "two")
    assert one.step()
    one.release()
    ours = lease(world)
    theirs = replace(ours, holder="karpenter-6d4b75cb6d-hx8bp_9ae", transitions=ours.transitions + 1)
    taken = world.kube.put_lease("default", NAME, theirs)
    assert leading_since(lease(world)) is None
    world.kube.put_lease("default", NAME, replace(taken, holder=""))
    world.clock.sleep(3600)
    assert two.step()
    assert two.since == world.clock.now()


@pytest.mark.parametrize(
    ("note", "since"),
    [
        ("2026-01-01T00:00:00Z/1", "2026-01-01T00:00:00Z"),
        ("2126-01-01T00:00:00Z/1", ""),
        ("2026-01-01T00:00:00Z/0", ""),
        ("2026-01-01T00:00:00Z", ""),
        ("yesterday/1", ""),
        ("/1", ""),
    ],
)
def test_a_note_that_cannot_be_true_counts_as_none(note: str, since: str) -> None:
    """As of a lease of an earlier version, or one that a person has edited."""
    world = World(start=datetime(2026, 3, 4, 12, tzinfo=UTC))
    world.kube.put_lease("default", NAME, Lease("", transitions=1, annotations={labels.LEADING_SINCE: note, "a": "b"}))
    one = candidate(world, "one")
    assert one.step()
    assert one.since is not None
    assert rfc3339(one.since) == (since or "2026-03-04T12:00:00Z")
    assert lease(world).annotations["a"] == "b"
