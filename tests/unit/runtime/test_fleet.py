"""An instance that was ended before Describe ever showed it is believed in a little longer, not a minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kerf.model.aws.cloud import SHOWN_AFTER, FleetError, FleetRequest, FleetResult, Instance
from kerf.runtime.state.fleet import ENDED_UNSEEN, REOPENED_AFTER, Fleet

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
REQUEST = FleetRequest(group="g", capacity_type="spot", members=("a",), templates=(), overrides=())


def launched() -> Fleet:
    fleet = Fleet()
    instance = Instance("i-1", "m5.large", "z", "pending", "spot", NOW)
    fleet.launched(REQUEST, FleetResult((instance,)), NOW)
    return fleet


def test_ended_before_it_was_shown() -> None:
    fleet = launched()
    fleet.terminated("i-1", NOW + SECOND)
    fleet.described((), NOW + ENDED_UNSEEN)
    assert fleet.instances["i-1"].state == "shutting-down"
    fleet.described((), NOW + SECOND + ENDED_UNSEEN)
    assert not fleet.instances


def test_one_that_nobody_ended_is_waited_for() -> None:
    fleet = launched()
    fleet.described((), NOW + SECOND + ENDED_UNSEEN)
    assert fleet.instances["i-1"].state == "pending"
    fleet.described((), NOW + SHOWN_AFTER)
    assert not fleet.instances


# --- quotas of vCPUs ----------------------------------------------------------------------------------------------
ZONE = "us-west-2a"
CLOSED = ("m5.4xlarge", ZONE, "on-demand")


def refused(fleet: Fleet, at: datetime, code: str = "VcpuLimitExceeded") -> None:
    call = FleetRequest(group="h", capacity_type="on-demand", members=("b",), templates=(), overrides=())
    fleet.launched(call, FleetResult((), (FleetError(code, "no", CLOSED[0], ZONE, capacity=True),)), at)


def running(*names: str, instance_type: str = "c5.large", capacity_type: str = "on-demand") -> list[Instance]:
    return [Instance(name, instance_type, ZONE, "running", capacity_type, NOW) for name in names]


def test_the_end_of_an_instance_opens_what_a_quota_has_closed() -> None:
    fleet = Fleet()
    fleet.described(running("i-1", "i-2"), NOW)
    refused(fleet, NOW + SECOND)
    assert set(fleet.out_of_stock(NOW + 2 * SECOND)) == {CLOSED}
    fleet.described(running("i-1", "i-2"), NOW + 3 * SECOND)
    assert set(fleet.out_of_stock(NOW + 3 * SECOND)) == {CLOSED}
    fleet.described(running("i-2"), NOW + 4 * SECOND)
    assert not fleet.out_of_stock(NOW + 4 * SECOND)


def test_an_instance_that_ec2_does_not_know_any_more_has_freed_its_quota() -> None:
    fleet = Fleet()
    fleet.described(running("i-1"), NOW)
    refused(fleet, NOW + SECOND)
    fleet.terminated("i-1", NOW + 2 * SECOND, gone=True)
    assert not fleet.out_of_stock(NOW + 2 * SECOND)


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (running("i-1", capacity_type="spot"), "VcpuLimitExceeded"),
        (running("i-1", instance_type="g5.xlarge"), "VcpuLimitExceeded"),
        (running("i-1"), "InsufficientInstanceCapacity"),
    ],
    ids=["another market", "families of another quota", "a stock-out"],
)
def test_what_another_end_frees_stays_closed_for_three_minutes(ended: list[Instance], code: str) -> None:
    fleet = Fleet()
    fleet.described(ended, NOW)
    refused(fleet, NOW + SECOND, code)
    fleet.described((), NOW + 2 * SECOND)
    assert set(fleet.out_of_stock(NOW + 180 * SECOND)) == {CLOSED}
    assert not fleet.out_of_stock(NOW + 181 * SECOND)


def test_an_end_before_the_refusal_opens_nothing() -> None:
    fleet = Fleet()
    fleet.described(running("i-1"), NOW)
    fleet.described((), NOW + SECOND)
    refused(fleet, NOW + 2 * SECOND)
    assert set(fleet.out_of_stock(NOW + 2 * SECOND)) == {CLOSED}


def test_instances_that_end_one_after_another_open_it_twice_a_minute_at_most() -> None:
    fleet, ids = Fleet(), [f"i-{number}" for number in range(120)]
    fleet.described(running(*ids), NOW)
    refused(fleet, NOW)
    opened = []
    for second in range(1, 121):
        now = NOW + second * SECOND
        fleet.described(running(*ids[second:]), now)
        if not fleet.out_of_stock(now):
            opened.append(second)
            refused(fleet, now)
    assert opened == [1, 31, 61, 91]
    assert REOPENED_AFTER == 30 * SECOND


def test_a_stock_out_after_the_quota_is_no_closure_of_the_quota() -> None:
    fleet = Fleet()
    fleet.described(running("i-1"), NOW)
    refused(fleet, NOW + SECOND)
    refused(fleet, NOW + 2 * SECOND, "InsufficientInstanceCapacity")
    fleet.described((), NOW + 3 * SECOND)
    assert set(fleet.out_of_stock(NOW + 3 * SECOND)) == {CLOSED}


def test_a_clock_that_is_set_back_keeps_the_times_of_quotas() -> None:
    fleet = Fleet()
    fleet.described(running("i-1", "i-2"), NOW)
    refused(fleet, NOW)
    fleet.described(running("i-2"), NOW + SECOND)
    assert not fleet.out_of_stock(NOW + SECOND)
    refused(fleet, NOW + 2 * SECOND)
    fleet.described((), NOW + 3 * SECOND)
    hour = timedelta(hours=1)
    fleet.set_back(hour)
    assert set(fleet.out_of_stock(NOW + 4 * SECOND - hour)) == {CLOSED}
    assert not fleet.out_of_stock(NOW + 31 * SECOND - hour)
