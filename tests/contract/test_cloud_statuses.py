"""What every adapter of the Cloud port promises of the health of instances."""

from __future__ import annotations

import pytest

from kerf.model.aws.cloud import INSTANCE_CHECK, SCHEDULED, SYSTEM_CHECK, Impairment
from kerf.ports import Forbidden
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import Account, MotoAccount
from .launches import request


def found(account: Account, instance_id: str) -> list[Impairment]:
    return [one for one in account.cloud.impairments() if one.instance_id == instance_id]


def launched(account: Account, group: str) -> str:
    """An instance that runs."""
    id_ = account.cloud.create_fleet(request(account, group)).instances[0].id
    account.eventually(lambda: any(one.id == id_ and one.state == "running" for one in account.cloud.instances()))
    return id_


def test_an_instance_whose_check_fails_is_told_until_it_recovers(account: Account, group: str) -> None:
    id_ = launched(account, group)
    assert found(account, id_) == []
    account.ail(id_)
    (one,) = found(account, id_)
    assert (one.category, one.since is not None) == (SYSTEM_CHECK, True)
    assert "failed" in one.text
    account.recover(id_)
    assert found(account, id_) == []


def test_those_that_are_asked_about_are_told_whoever_else_is_gone(account: Account, group: str) -> None:
    id_ = launched(account, group)
    account.ail(id_)
    for of in ((id_,), (id_, "i-0123456789abcdef0"), None):
        assert [one.instance_id for one in account.cloud.impairments(of) if one.instance_id == id_] == [id_]
    assert list(account.cloud.impairments(())) == []
    account.recover(id_)


@pytest.mark.only_real("checks of both sorts and scheduled events (the sandbox has one sort)")
def test_checks_and_events_of_one_instance_are_told_apart(aws: MotoAws) -> None:
    real = MotoAccount(aws)
    id_ = launched(real, "ailing")
    aws.ail(id_, "instance", seconds=300)
    aws.ail(id_, "instance-retirement")
    aws.ail(id_, "instance-stop", description="[Completed] stopped")
    aws.ail(id_, "something-new")
    assert [(one.category, one.text) for one in found(real, id_)] == [
        (SCHEDULED, "instance-retirement: The instance is running on degraded hardware"),
        (INSTANCE_CHECK, "reachability failed"),
    ]
    aws.recover(id_)


@pytest.mark.only_real("permissions (in the sandbox there are none)")
def test_without_leave_to_look_it_is_said_so(aws: MotoAws) -> None:
    aws.fail("DescribeInstanceStatus", "UnauthorizedOperation", status=403, times=3)
    with pytest.raises(Forbidden):
        MotoAccount(aws).cloud.impairments()
