"""Refused launches: the error of each code, since when, and whether that is the begin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kerf.ec2.errors import launch_condition, said
from kerf.ec2.refused_launches import following, refused
from kerf.lifecycle.nodeclaim.outcomes import condition
from kerf.model.aws.cloud import FleetError
from kerf.model.snapshot import LaunchFailure

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
VCPUS = FleetError("VcpuLimitExceeded", "your limit is 32", "m5.large", "a", capacity=True)
SUBNET = FleetError("InsufficientFreeAddressesInSubnet", "subnet-1 has no free addresses", "m5.large", "a", True)


def failure(error: FleetError, ago: float, pool: str = "general", **known: object) -> LaunchFailure:
    return LaunchFailure((error,), NOW - ago * MINUTE, pool=pool, **known)  # type: ignore[arg-type]


def test_the_latest_message_of_each_code_with_its_time_and_fix() -> None:
    first = failure(SUBNET, 2, since=NOW - 9 * MINUTE, at_least=True)
    quota, subnets = refused([failure(VCPUS, 1), first, failure(SUBNET, 1, "other")], NOW)[::-1]
    assert quota.standing("general", NOW) == (
        "EC2 refuses launches of NodePool general: The account's vCPU quota is used up: VcpuLimitExceeded: your limit "
        "is 32 (1 launch, since 2026-01-01T11:59:00Z, 1m ago); request a higher quota (Service Quotas, EC2); kerf "
        "preflight shows its use"
    )
    assert (subnets.since, subnets.at_least, subnets.times) == (NOW - 9 * MINUTE, True, 2)
    assert "(2 launches, since at least 2026-01-01T11:51:00Z, 9m ago); let spec.subnet" in subnets.standing("x", NOW)


def test_of_several_messages_of_a_launch_the_first_one_is_reported_as_an_event_does() -> None:
    """An event is cut at its end."""
    several = tuple(FleetError("VcpuLimitExceeded", text) for text in ("no c5", "no a1", "no m5"))
    known = LaunchFailure(several, NOW, pool="general")
    of_event = LaunchFailure(tuple(said(launch_condition(several)[1])), NOW, pool="general")
    assert [one.message for one in refused([known], NOW)] == ["no a1"]
    assert refused([known], NOW) == refused([of_event], NOW)


def test_launches_of_other_nodepools_and_of_long_ago_are_left_out() -> None:
    rows = [failure(VCPUS, 1), failure(SUBNET, 1, "other"), failure(SUBNET, 4)]
    assert [one.code for one in refused(rows, NOW, "general")] == ["VcpuLimitExceeded"]


@pytest.mark.parametrize(
    ("rows", "watched", "expected"),
    [
        ([], 60, (NOW, False)),
        ([], 3, (NOW, True)),
        ([failure(VCPUS, 3, since=NOW - 50 * MINUTE)], 3, (NOW - 50 * MINUTE, False)),
        ([failure(VCPUS, 3, at_least=True)], 60, (NOW - 3 * MINUTE, True)),
        ([failure(VCPUS, 5)], 60, (NOW, False)),
        ([failure(SUBNET, 1)], 60, (NOW, False)),
    ],
    ids=["the first", "the first of a process", "one after another", "of a process", "a pause", "another error"],
)
def test_a_launch_fails_since_the_first_of_those_that_failed_one_after_another(
    rows: list[LaunchFailure], watched: float, expected: tuple[datetime, bool]
) -> None:
    assert following(rows, (VCPUS,), NOW, watched * MINUTE) == expected


def test_the_errors_are_read_back_from_the_words_of_an_event() -> None:
    several = FleetError("VcpuLimitExceeded", "no more; ask: support")
    _, words = launch_condition((VCPUS, SUBNET, several))
    assert {(one.code, one.message) for one in said(words)} == {
        (one.code, one.message) for one in (VCPUS, SUBNET, several)
    }


def test_a_message_that_is_cut_is_left_out_unless_it_is_the_only_one_of_its_code() -> None:
    several = [FleetError("VcpuLimitExceeded", f"{n} is too large: {'x' * 120}") for n in range(4)]
    failure = LaunchFailure((*several, SUBNET), NOW)
    _, words = condition(failure)
    assert words.endswith("...")
    assert [one.code for one in said(words)] == [SUBNET.code, *["VcpuLimitExceeded"]]
    alone = LaunchFailure((FleetError("VcpuLimitExceeded", "x" * 400),), NOW)
    assert [one.message[-5:] for one in said(condition(alone)[1])] == ["xx..."]


@pytest.mark.parametrize(
    "text", ["", "EC2NodeClass default does not exist or is being deleted", "no offering: it is out of stock", "a: b"]
)
def test_a_text_without_an_error_of_ec2_has_none(text: str) -> None:
    assert not list(said(text))
