"""Whether this process may act, and since when Kerf does, beside other controllers' leases."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kerf.model.instants import ALWAYS
from kerf.ports import Clock, Forbidden, Lease
from kerf.runtime.leadership.karpenter import KarpenterLeases
from kerf.runtime.leadership.leader import Candidate, Leader, own_identity
from kerf.runtime.leadership.leading import Leading
from kerf.runtime.leadership.leases import LeaseName, leading_note
from kerf.runtime.observe.looking import stored_since
from kerf.sandbox.api import kinds
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf_api import labels

OWN, THEIRS = LeaseName("default"), LeaseName("kube-system")


class Ahead:
    """The Clock port; its time of day is ahead until it is set back."""

    def __init__(self, real: VirtualClock) -> None:
        self._real, self.ahead = real, timedelta(days=9)

    def now(self) -> datetime:
        return self._real.now() + self.ahead

    def monotonic(self) -> float:
        return self._real.monotonic()

    def sleep(self, seconds: float) -> None:
        self._real.sleep(seconds)


class Process:
    """A controller that vies for its own lease, and gives way to Karpenter's."""

    def __init__(self, world: World, *, elected: bool = True, clock: Clock | None = None) -> None:
        self._world, self._clock = world, clock or world.clock
        self.karpenter = KarpenterLeases(world.kube, self._clock, {OWN, THEIRS}, OWN if elected else None)
        self.leader = self._candidate() if elected else None
        self.leading = Leading(self.leader, self.karpenter, self._clock)

    def _candidate(self) -> Leader:
        kube = self._world.kube
        return Leader(kube, self._clock, Candidate(*_address(OWN), own_identity()), not_before=self.karpenter.last_led)

    def since(self, seconds: int = 0) -> datetime | None:
        """Since when Kerf leads, after so many seconds of both threads."""
        for number in range(seconds + 1):
            if self.leader is not None:
                self.leader.step()
            self.karpenter.step()
            if number < seconds:
                self._world.clock.sleep(1)
        return self.leading.since()


def _address(name: LeaseName) -> tuple[str, str]:
    return name.namespace, name.name


def renew(world: World, holder: str = "karpenter-0_1", name: LeaseName = THEIRS, at: datetime | None = None) -> None:
    """The holder does; Karpenter, unless another one is given."""
    known = world.kube.get_lease(*_address(name))
    version, now = ("" if known is None else known.resource_version), at or world.clock.now()
    world.kube.put_lease(*_address(name), Lease(holder, now, now, 15, resource_version=version))


def test_kerf_leads_since_it_took_its_lease() -> None:
    world = World()
    one, began = Process(world), world.clock.now()
    assert one.leading.since() is None
    assert one.since() == began
    assert one.since(seconds=20) == began


def test_while_karpenter_leads_kerf_does_not_and_its_time_begins_when_that_ends() -> None:
    world = World()
    one = Process(world)
    one.since()
    world.clock.sleep(100)
    renew(world)
    left = world.clock.now()
    assert one.since() is None
    assert not one.leading.may_act()
    assert one.leading.has_lease()
    assert Process(world).since() is None  # another replica
    assert one.since(seconds=16) == left


def test_a_replica_that_waits_says_the_same_and_so_it_does_when_it_leads() -> None:
    """Else its memory, with which it is quick, would rest on another value, and be of no use."""
    world = World()
    one, two = Process(world), Process(world)
    began = one.since()
    assert began is not None
    world.clock.sleep(7)
    assert one.since() == began
    assert two.since() == began.replace(microsecond=0)
    assert not two.leading.may_act()
    assert one.leader is not None
    one.leader.release()
    assert two.since() == began.replace(microsecond=0)
    assert two.leading.may_act()


def test_another_process_knows_when_karpenter_led_last() -> None:
    """It had another lease, whose transitions Kerf's own does not count."""
    world = World()
    one = Process(world)
    began = one.since()
    world.clock.sleep(3600)
    renew(world)
    left = world.clock.now()
    world.clock.sleep(3600)
    assert one.leader is not None
    one.leader.release()
    two = Process(world)
    assert began is not None
    assert began < left
    assert two.since(seconds=16) == left


def test_the_time_outlives_the_lease_of_karpenter() -> None:
    """The guide has it deleted after the take-over. Lives that were over before Kerf led keep their day."""
    world = World()
    one = Process(world)
    one.since()
    world.clock.sleep(3600)
    renew(world)
    left = world.clock.now()
    assert one.since(seconds=20) == left
    world.server.delete(kinds.LEASE, *_address(THEIRS))
    assert one.leader is not None
    one.leader.release()
    assert Process(world).since(seconds=2) == left.replace(microsecond=0)


def test_a_replica_that_yields_to_this_one_does_not_move_the_time() -> None:
    """Else it would begin again with each of its renewals, and what waits for a day would wait for ever."""
    world = World()
    usual = KarpenterLeases(world.kube, world.clock, {THEIRS, OWN}, own=THEIRS)
    renew(world, own_identity(), OWN)
    usual.step()
    assert usual.may_act()
    assert usual.last_led() == ALWAYS
    renew(world, "karpenter-0_1", OWN)
    usual.step()
    assert usual.last_led() == world.clock.now()


@pytest.mark.parametrize("elected", [True, False])
def test_a_clock_that_was_ahead_and_is_set_back_does_not_leave_the_time_ahead(*, elected: bool) -> None:
    world = World()
    clock = Ahead(world.clock)
    one = Process(world, elected=elected, clock=clock)
    renew(world, at=clock.now())
    one.since(seconds=16)
    clock.ahead = timedelta(0)
    now = clock.now()
    assert one.since() == now
    world.clock.sleep(5)
    assert one.since() == now


def test_a_lease_whose_note_is_ahead_says_now_to_a_replica_that_waits() -> None:
    """A day after the end of all times is none."""
    world = World()
    renew(world, own_identity(), OWN)
    held = world.kube.get_lease(*_address(OWN))
    assert held is not None
    notes = {labels.LEADING_SINCE: "9999-12-31T23:59:59Z/0"}
    world.kube.put_lease(*_address(OWN), replace(held, annotations=notes))
    assert Process(world).since() == world.clock.now()


def test_without_election_it_is_since_the_process_began() -> None:
    world = World()
    one, began = Process(world, elected=False), world.clock.now()
    world.clock.sleep(50)
    assert one.since() == began


def test_a_renewal_that_is_stamped_ahead_counts_as_now() -> None:
    world = World()
    ahead = world.clock.now() + timedelta(days=9)
    world.kube.put_lease(*_address(THEIRS), Lease("", ahead, ahead))
    assert Process(world).since() == world.clock.now()


def test_what_is_stored_is_found_by_who_only_looks() -> None:
    world, since = World(), datetime.fromisoformat("2026-02-01T00:00:00Z")
    places = [OWN, THEIRS, LeaseName("elsewhere")]
    assert stored_since(world.kube, places) is None
    notes = {labels.LEADING_SINCE: leading_note(since, 0)}
    world.kube.put_lease(*_address(OWN), Lease("x", annotations=notes))
    assert stored_since(world.kube, places) == since
    assert since > ALWAYS


def test_leases_that_may_not_be_read_say_nothing() -> None:
    class Refusing:
        def get_lease(self, namespace: str, name: str) -> Lease | None:
            raise Forbidden(f"{namespace}/{name}")

    assert stored_since(Refusing(), [OWN]) is None
