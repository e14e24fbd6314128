"""A Karpenter controller's lease, watched in the sandbox: who holds it has the right of way."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.ports import Forbidden, Lease, Unavailable
from kerf.runtime.leadership.announcing import Announcer
from kerf.runtime.leadership.karpenter import KarpenterLeases, Obstacle
from kerf.runtime.leadership.leader import Candidate, Leader, own_identity
from kerf.runtime.leadership.leases import KARPENTER, RENEW_DEADLINE, RETRY, LeaseName
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from kerf.telemetry.telemetry import Telemetry

THEIRS = LeaseName("kube-system")
HOLDER = "karpenter-7c9d_5b0f"


def watch(world: World, *leases: LeaseName, own: LeaseName | None = None) -> KarpenterLeases:
    return KarpenterLeases(world.kube, world.clock, leases or (THEIRS, LeaseName("karpenter")), own)


def renew(world: World, holder: str = HOLDER, lease: LeaseName = THEIRS, seconds: int = 15) -> None:
    known = world.kube.get_lease(lease.namespace, lease.name) or Lease(holder)
    now = world.clock.now()
    wanted = replace(known, holder=holder, acquired=now, renewed=now, duration_seconds=seconds)
    world.kube.put_lease(lease.namespace, lease.name, wanted)


def live(world: World, karpenter: KarpenterLeases, seconds: float) -> None:
    """Time passes, and the leases are read as often as they should be."""
    end = world.clock.monotonic() + seconds
    while world.clock.monotonic() < end:
        world.clock.sleep(min(karpenter.pause().total_seconds(), end - world.clock.monotonic()))
        karpenter.step()


def test_nobody_acts_before_the_leases_were_read() -> None:
    world = World()
    karpenter = watch(world)
    assert not karpenter.may_act()
    karpenter.step()
    assert karpenter.may_act()


def test_a_namespace_that_is_not_there_has_no_karpenter() -> None:
    world = World()
    karpenter = watch(world, LeaseName("never-there"))
    karpenter.step()
    assert karpenter.may_act()


def test_while_karpenter_renews_its_lease_we_only_watch() -> None:
    world = World()
    karpenter = watch(world)
    for _ in range(60):
        renew(world)
        live(world, karpenter, 2)
        assert karpenter.obstacles() == (Obstacle(THEIRS, holder=HOLDER),)
        assert not karpenter.may_act()


def test_a_lease_that_is_not_renewed_any_more_runs_out() -> None:
    world = World()
    renew(world)
    karpenter = watch(world)
    karpenter.step()
    live(world, karpenter, 14)
    assert not karpenter.may_act()
    live(world, karpenter, 1)
    assert karpenter.may_act()


def test_a_lease_that_was_given_up_or_deleted_is_free_at_the_next_look() -> None:
    for end in (lambda world: renew(world, holder=""), lambda world: world.delete("Lease", KARPENTER, "kube-system")):
        world = World()
        renew(world)
        karpenter = watch(world)
        karpenter.step()
        assert not karpenter.may_act()
        end(world)
        karpenter.step()
        assert karpenter.may_act()


def test_a_karpenter_that_comes_back_stops_us_within_two_seconds() -> None:
    world = World()
    karpenter = watch(world)
    karpenter.step()
    assert karpenter.may_act()
    renew(world)
    live(world, karpenter, RETRY.total_seconds())
    assert not karpenter.may_act()


def test_its_own_duration_counts_and_its_clock_does_not() -> None:
    world = World()
    renew(world, seconds=60)
    world.clock.sleep(3600)
    karpenter = watch(world)
    karpenter.step()
    live(world, karpenter, 59)
    assert not karpenter.may_act()
    live(world, karpenter, 1)
    assert karpenter.may_act()


def test_a_replica_of_ours_is_no_karpenter_whatever_the_lease_is_called() -> None:
    world = World()
    karpenter = watch(world, own=THEIRS)
    renew(world, holder=own_identity())
    karpenter.step()
    assert karpenter.may_act()


USUAL_ONE, USUAL_TWO = LeaseName("karpenter"), LeaseName("kube-system")
ELSEWHERE, FARTHER = LeaseName("alpha"), LeaseName("beta")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (USUAL_ONE, USUAL_TWO),
        (USUAL_TWO, ELSEWHERE),  # who is in kube-system does not look into any other namespace
        (ELSEWHERE, FARTHER),
        (ELSEWHERE, LeaseName("alpha", "a-lease-of-its-own")),  # the name that every release looks for
    ],
)
def test_of_two_releases_of_ours_exactly_one_acts(first: LeaseName, second: LeaseName) -> None:
    """As when Kerf moves from one namespace to another, and both are there for a while."""
    world = World()
    for name in {first.namespace, second.namespace} - {"kube-system"}:
        world.kube.create(kinds.NAMESPACE, {"metadata": {"name": name}})
    for lease in (first, second):
        renew(world, holder=own_identity(), lease=lease)
    one, two = watch(world, first, second, own=first), watch(world, first, second, own=second)
    for release in (one, two):
        release.step()
    assert one.may_act()
    assert [found.lease for found in two.obstacles()] == [first]
    renew(world, holder="", lease=first)
    two.step()
    assert two.may_act()


def test_who_vies_for_no_lease_is_seen_by_nobody_and_yields() -> None:
    world = World()
    renew(world, holder=own_identity())
    alone = watch(world)
    alone.step()
    assert not alone.may_act()
    renew(world, holder="")
    alone.step()
    assert alone.may_act()


def test_one_lease_for_both_lets_one_of_them_lead() -> None:
    world = World()
    karpenter = watch(world, own=THEIRS)
    leader = Leader(world.kube, world.clock, Candidate(THEIRS.namespace, THEIRS.name, own_identity()))
    renew(world)
    karpenter.step()
    assert not leader.step()
    assert not karpenter.may_act()
    renew(world, holder="")
    assert leader.step()
    karpenter.step()
    assert leader.may_act()
    assert karpenter.may_act()


# --- leases that cannot be read ---------------------------------------------------------------------------------
class Unreadable(Faults):
    """The lease in kube-system cannot be read while `error` is set."""

    error: Exception | None = None

    def before(self, call: Call) -> None:
        if self.error is not None and call.verb == "get_lease" and "kube-system" in call.subject:
            raise self.error


@pytest.mark.parametrize(
    "error", [Forbidden("403 leases is forbidden"), Unavailable("connection refused"), ZeroDivisionError("a bug")]
)
def test_a_lease_that_cannot_be_read_is_not_taken_for_free(error: Exception) -> None:
    faults = Unreadable()
    world = World(faults=faults)
    faults.error = error
    karpenter = watch(world)
    live(world, karpenter, 60)
    assert karpenter.obstacles() == (Obstacle(THEIRS, error=str(error)),)
    faults.error = None
    karpenter.step()
    assert karpenter.may_act()


def test_what_was_read_lately_holds_for_a_while() -> None:
    faults = Unreadable()
    world = World(faults=faults)
    karpenter = watch(world)
    karpenter.step()
    faults.error = Unavailable("connection refused")
    live(world, karpenter, RENEW_DEADLINE.total_seconds() - 1)
    assert karpenter.may_act()
    live(world, karpenter, 1)
    assert not karpenter.may_act()


# --- saying so --------------------------------------------------------------------------------------------------
def states(telemetry: Telemetry) -> set[tuple[str, str]]:
    """(namespace, state) of each lease."""
    read = telemetry.metrics.registry.get_sample_value
    rows = [(space, state) for space in ("kube-system", "karpenter") for state in ("free", "held", "unread")]
    return {
        (space, state)
        for space, state in rows
        if read("kerf_karpenter_lease", {"namespace": space, "name": KARPENTER, "state": state})
    }


def events(world: World) -> list[tuple[Any, ...]]:
    return [(e["involvedObject"]["namespace"], e["type"], e["reason"]) for e in world.objects("Event")]


def test_what_stands_in_the_way_is_an_event_on_the_lease_and_a_number() -> None:
    world = World()
    telemetry, karpenter = Telemetry.quiet(world.kube, world.clock), watch(world)
    announcer = Announcer(world.kube, telemetry, "kerf-0_kerf_1", karpenter.leases)
    held, unread = Obstacle(THEIRS, holder=HOLDER), Obstacle(THEIRS, error="403")
    announcer.tell(())
    assert states(telemetry) == {("kube-system", "free"), ("karpenter", "free")}
    announcer.tell((held,))
    assert states(telemetry) == {("kube-system", "held"), ("karpenter", "free")}
    assert events(world) == [("kube-system", "Normal", "WaitsForKarpenter")]
    assert HOLDER in world.objects("Event")[0]["message"]
    announcer.tell((replace(held, holder="another"),))
    assert len(events(world)) == 1  # the same again, under another name
    announcer.tell((unread,))
    assert states(telemetry) == {("kube-system", "unread"), ("karpenter", "free")}
    assert events(world)[1:] == [("kube-system", "Warning", "LeaseUnread")]
    announcer.tell(())
    announcer.tell((held,))
    assert len(events(world)) == 3
    announcer.tell((Obstacle(THEIRS, holder=own_identity()),))
    assert states(telemetry) == {("kube-system", "held"), ("karpenter", "free")}
    assert events(world)[3:] == [("kube-system", "Normal", "WaitsForKerf")]


def test_the_event_names_the_lease_by_its_uid_or_kubectl_describe_would_not_show_it() -> None:
    world = World()
    telemetry, karpenter = Telemetry.quiet(world.kube, world.clock), watch(world)
    announcer = Announcer(world.kube, telemetry, "kerf-0_kerf_1", karpenter.leases)
    renew(world)
    (uid,) = (one["metadata"]["uid"] for one in world.objects("Lease"))
    karpenter.step()
    announcer.tell(karpenter.obstacles())
    world.clock.sleep(60)  # and now it cannot be read
    announcer.tell(tuple(one for one in karpenter.obstacles() if one.lease == THEIRS))
    told = [(event["reason"], event["involvedObject"]["uid"]) for event in world.objects("Event")]
    assert told == [("WaitsForKarpenter", uid), ("LeaseUnread", uid)]


def test_an_event_that_cannot_be_written_does_not_matter() -> None:
    world = World()
    telemetry = Telemetry.quiet(world.kube, world.clock)
    lease = LeaseName("never-there")
    Announcer(world.kube, telemetry, "kerf-0_kerf_1", [lease]).tell((Obstacle(lease, error="403"),))
    assert telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": "events"}) == 1


@pytest.mark.parametrize(
    ("text", "lease"),
    [("ops", LeaseName("ops", KARPENTER)), ("ops/special", LeaseName("ops", "special"))],
)
def test_names_of_leases(text: str, lease: LeaseName) -> None:
    assert LeaseName.parse(text) == lease
    assert LeaseName.parse(str(lease)) == lease


@pytest.mark.parametrize("text", ["", "/special", "ops/", "a/b/c"])
def test_what_is_no_name_of_a_lease(text: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        LeaseName.parse(text)


def test_the_next_look_comes_when_a_lease_runs_out() -> None:
    world = World()
    renew(world)
    karpenter = watch(world)
    karpenter.step()
    assert karpenter.pause() == RETRY
    live(world, karpenter, 14.5)
    assert karpenter.pause() <= timedelta(seconds=0.5)
