"""Offerings that a used-up quota has closed: the end of an instance opens those that its vCPUs may be enough for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kerf.ec2.errors import OUT_OF_STOCK
from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult, Instance
from kerf.runtime.state.fleet import Fleet
from kerf.sandbox.aws.catalogue import region
from kerf_api import labels

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ZONE = "us-west-2a"
REGION = region((ZONE,))


def refused(fleet: Fleet, name: str, at: datetime, members: int = 1) -> None:
    """EC2 refuses a launch of so many instances of a type because of the quota."""
    names, tags = tuple(f"c-{number}" for number in range(members)), {labels.TAG_NODEPOOL: "general"}
    call = FleetRequest(
        group=f"{name} {at}", capacity_type="on-demand", members=names, templates=(), overrides=(), tags=tags
    )
    result = FleetResult((), (FleetError("VcpuLimitExceeded", "no", name, ZONE, capacity=True),))
    fleet.launched(call, result, at)
    fleet.over_quota(call, result, REGION, at)


def running(*names: str) -> list[Instance]:
    """Instances of these types; a name of a type may have a number behind it."""
    return [Instance(f"i-{name}", name.split("#")[0], ZONE, "running", "on-demand", NOW) for name in names]


def closed(fleet: Fleet, at: datetime) -> set[int]:
    """The sizes that Kerf does not request, in vCPUs."""
    return {REGION.types[name].vcpus for name, _, _ in fleet.out_of_stock(at)}


def test_the_end_of_an_instance_opens_only_sizes_that_may_fit_then() -> None:
    """Less than 4 vCPUs were free, and 2 more are: 5 at most."""
    fleet = Fleet()
    fleet.described(running("c5.large", "c5.2xlarge"), NOW)
    refused(fleet, "m5.xlarge", NOW + SECOND)
    assert {4, 8, 16} <= closed(fleet, NOW + SECOND)
    fleet.described(running("c5.2xlarge"), NOW + 2 * SECOND)
    assert closed(fleet, NOW + 2 * SECOND) & {4, 8, 16} == {8, 16}
    fleet.described([], NOW + 33 * SECOND)
    assert closed(fleet, NOW + 33 * SECOND) & {8, 16} == {16}


def test_an_instance_that_ends_again_and_again_causes_no_more_launches() -> None:
    """Its successor takes the freed vCPUs each time; the large type is refused twice, not each half a minute."""
    fleet, launches = Fleet(), 0
    fleet.described(running("c5.large#0", "c5.4xlarge"), NOW)
    refused(fleet, "m5.4xlarge", NOW)
    for second in range(0, 175, 5):
        now = NOW + second * SECOND
        fleet.described(running("c5.4xlarge"), now)
        if 16 not in closed(fleet, now):
            launches += 1
            refused(fleet, "m5.4xlarge", now)
        fleet.described(running(f"c5.large#{second}", "c5.4xlarge"), now + 2 * SECOND)
    assert launches == 1


def test_more_instances_that_end_open_it_again() -> None:
    fleet = Fleet()
    fleet.described(running("c5.large#1", "c5.large#2"), NOW)
    refused(fleet, "m5.4xlarge", NOW)
    fleet.described(running("c5.large#2"), NOW + SECOND)
    assert 16 not in closed(fleet, NOW + SECOND)
    refused(fleet, "m5.4xlarge", NOW + SECOND)
    fleet.described([], NOW + 32 * SECOND)
    assert 16 not in closed(fleet, NOW + 32 * SECOND)


def test_several_that_were_refused_together_need_the_vcpus_of_all() -> None:
    """Four of 2 vCPUs are too many, of which one may not be: the end of one instance is tried once."""
    fleet = Fleet()
    fleet.described(running("c5.large#1"), NOW)
    refused(fleet, "m5.large", NOW, members=4)
    fleet.described([], NOW + SECOND)
    assert 2 not in closed(fleet, NOW + SECOND)
    refused(fleet, "m5.large", NOW + SECOND, members=4)
    fleet.described(running("c5.large#2"), NOW + 2 * SECOND)
    fleet.described([], NOW + 40 * SECOND)
    assert 2 in closed(fleet, NOW + 40 * SECOND)


def test_a_refusal_counts_for_three_minutes() -> None:
    fleet = Fleet()
    fleet.described(running("c5.large"), NOW)
    refused(fleet, "m5.4xlarge", NOW)
    refused(fleet, "m5.large", NOW + 170 * SECOND)
    fleet.described([], NOW + 171 * SECOND)
    assert closed(fleet, NOW + 171 * SECOND) & {2, 4, 16} == {4, 16}
    fleet.set_back(timedelta(hours=1))
    earlier = NOW - timedelta(hours=1)
    assert closed(fleet, earlier + 172 * SECOND) & {4, 16} == {4, 16}
    assert not closed(fleet, earlier + 170 * SECOND + OUT_OF_STOCK)


def test_a_quota_that_was_raised_is_used() -> None:
    """More runs than the refusal allowed: it says nothing any more."""
    fleet = Fleet()
    fleet.described(running("c5.large"), NOW)
    refused(fleet, "m5.xlarge", NOW)
    fleet.described(running("c5.large", "c5.4xlarge"), NOW + SECOND)
    fleet.described(running("c5.4xlarge"), NOW + 2 * SECOND)
    assert not closed(fleet, NOW + 2 * SECOND)


# --- since when launches fail -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("minutes", "least"), [(0, True), (10, False)])
def test_a_process_that_begins_with_a_refusal_does_not_know_the_first_one(minutes: float, least: bool) -> None:
    fleet, began = Fleet(), NOW + timedelta(minutes=minutes)
    if minutes:
        call = FleetRequest(group="ok", capacity_type="on-demand", members=("a",), templates=(), overrides=())
        fleet.launched(call, FleetResult(tuple(running("c5.large"))), NOW)
    for minute in range(0, 60, 3):
        refused(fleet, "m5.xlarge", began + timedelta(minutes=minute))
    at = began + timedelta(minutes=58)
    latest = max(fleet.failures(at).values(), key=lambda one: one.at)
    assert (latest.pool, latest.since, latest.at_least) == ("general", began, least)
