"""What every adapter of the Cloud port promises of zonal shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kerf.model.aws.cloud import ZonalShift
from kerf.ports import AlreadyGone, Forbidden, Invalid
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import Account, MotoAccount

HOUR = 3600.0


def shifts(account: Account) -> Sequence[ZonalShift]:
    return account.cloud.zonal_shifts(account.cloud.cluster())


def test_zones_that_traffic_is_shifted_away_from_are_told_with_the_end(account: Account) -> None:
    assert list(shifts(account)) == []
    account.shift_away("usw2-az2", HOUR)
    account.shift_away("usw2-az1", HOUR)
    found = shifts(account)
    assert [one.zone_id for one in found] == ["usw2-az1", "usw2-az2"]
    assert all(one.until is not None and one.until.tzinfo is not None for one in found)


@pytest.mark.only_real("shifts that are not in force, and AWS's own (in the sandbox there are neither)")
def test_what_is_not_in_force_does_not_count_and_aws_s_own_shifts_have_no_end(aws: MotoAws) -> None:
    real = MotoAccount(aws)
    aws.shift("usw2-az1", HOUR, status="NOT_APPLIED")
    assert list(shifts(real)) == []
    aws.shift("usw2-az3", 0, auto=True)
    assert list(shifts(real)) == [ZonalShift("usw2-az3")]


@pytest.mark.only_real("errors of the service (in the sandbox a test of the loop makes calls fail)")
@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [("AccessDeniedException", 403, Forbidden), ("ResourceNotFoundException", 404, AlreadyGone)],
)
def test_that_it_may_not_be_asked_or_that_the_cluster_takes_no_part_is_said(
    aws: MotoAws, code: str, status: int, expected: type[Exception]
) -> None:
    real = MotoAccount(aws)
    aws.fail("GetManagedResource", code, status=status)
    with pytest.raises(expected):
        shifts(real)


@pytest.mark.only_real("clusters that are none of EKS (the sandbox has no other)")
def test_of_a_cluster_without_an_arn_nothing_can_be_asked(aws: MotoAws) -> None:
    real = MotoAccount(aws)
    with pytest.raises(Invalid):
        real.cloud.zonal_shifts(replace(real.cloud.cluster(), arn=""))
