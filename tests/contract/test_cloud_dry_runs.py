"""A launch that is tried dry, on both sides."""

from __future__ import annotations

from .cloud_accounts import Account
from .launches import request


def test_a_dry_run_launches_nothing_and_says_that_it_could(account: Account, group: str) -> None:
    before = {instance.id for instance in account.cloud.instances()}
    wanted = request(account, group, types=["m5.large"])
    assert account.cloud.dry_run(wanted) is None
    assert account.cloud.dry_run(wanted) is None
    assert {instance.id for instance in account.cloud.instances()} == before
    assert len(account.cloud.create_fleet(wanted).instances) == 1


def test_what_a_policy_denies_is_told(account: Account, group: str) -> None:
    account.deny_launches()
    problem = account.cloud.dry_run(request(account, group, types=["m5.large"]))
    assert problem is not None
    assert problem[0] == "RunInstancesAuthCheckFailed"
    assert "AWS does not authorize the action" in problem[1]
