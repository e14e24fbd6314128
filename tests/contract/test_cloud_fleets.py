"""What every adapter of the Cloud port promises of fleets: who is launched, and what is said of those that are not."""

from __future__ import annotations

import msgspec
import pytest

from kerf.ports import IdempotencyMismatch, Invalid, NotLeading
from kerf_api import labels

from .cloud_accounts import Account
from .launches import ZONES, listed, request


def test_a_fleet_that_may_not_be_asked_for_any_more_makes_nothing(account: Account, group: str) -> None:
    wanted = request(account, group)
    with pytest.raises(NotLeading):
        account.cloud.create_fleet(wanted, lambda: False)
    (launched,) = account.cloud.create_fleet(wanted, lambda: True).instances
    account.eventually(lambda: listed(account, launched.id) is not None)
    assert [one.id for one in account.cloud.instances() if one.tags[labels.LAUNCH_GROUP] == group] == [launched.id]


def test_a_fleet_gives_one_instance_per_member_of_the_cheapest_type(account: Account, group: str) -> None:
    wanted = request(account, group, members=("a", "b", "c"))
    result = account.cloud.create_fleet(wanted)
    assert len({one.id for one in result.instances}) == 3
    assert result.errors == ()
    chosen = {(one.instance_type, one.zone): one for one in wanted.overrides}
    for one in result.instances:
        override = chosen["c5.large", one.zone]
        assert (one.instance_type, one.subnet_id, one.image_id) == ("c5.large", override.subnet_id, override.image_id)
        assert one.capacity_type == labels.ON_DEMAND
        assert one.live
        assert one.tags[labels.LAUNCH_GROUP] == group
        assert one.security_group_ids == wanted.templates[0].security_group_ids
        assert one.launched.utcoffset() is not None


@pytest.mark.parametrize("capacity_type", [labels.ON_DEMAND, labels.SPOT])
@pytest.mark.parametrize("prioritized", [False, True])
def test_a_fleet_goes_by_ec2s_prices_unless_it_is_told_to_go_by_those_of_the_request(
    account: Account, group: str, capacity_type: str, prioritized: bool
) -> None:
    """Which a NodeOverlay may have made others."""
    asked = request(account, f"{group[:40]}-{capacity_type}-{prioritized}", capacity_type=capacity_type)
    turned = tuple(msgspec.structs.replace(o, price=1 if o.instance_type == "m5.large" else 2) for o in asked.overrides)
    wanted = msgspec.structs.replace(asked, overrides=turned, prioritized=prioritized)
    (launched,) = account.cloud.create_fleet(wanted).instances
    assert launched.instance_type == ("m5.large" if prioritized else "c5.large")


def test_what_a_fleet_says_of_an_instance_is_what_is_listed_later(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    for field in ("instance_type", "zone", "subnet_id", "image_id", "capacity_type", "security_group_ids"):
        assert getattr(shown, field) == getattr(told, field), field
    assert told.tags.items() <= shown.tags.items()
    assert abs((shown.launched - told.launched).total_seconds()) < 5
    assert shown.provider_id == f"aws:///{told.zone}/{told.id}"


def test_the_same_request_twice_launches_once(account: Account, group: str) -> None:
    wanted = request(account, group, members=("a", "b"))
    first, second = account.cloud.create_fleet(wanted), account.cloud.create_fleet(wanted)
    assert [one.id for one in first.instances] == [one.id for one in second.instances]


def test_another_request_of_the_same_group_is_refused(account: Account, group: str) -> None:
    wanted = request(account, group)
    account.cloud.create_fleet(wanted)
    with pytest.raises(IdempotencyMismatch):
        account.cloud.create_fleet(msgspec.structs.replace(wanted, members=("a", "b")))


def test_what_is_out_of_stock_is_an_error_and_the_next_type_is_taken(account: Account, group: str) -> None:
    account.stock_out("c5.large", "*", labels.ON_DEMAND)
    result = account.cloud.create_fleet(request(account, group))
    assert [one.instance_type for one in result.instances] == ["m5.large"]
    assert {(one.instance_type, one.zone) for one in result.errors} == {("c5.large", zone) for zone in ZONES}
    assert all(one.capacity and one.code for one in result.errors)


def test_when_nothing_is_to_be_had_every_override_is_an_error(account: Account, group: str) -> None:
    account.stock_out("*", "*", labels.ON_DEMAND)
    wanted = request(account, group)
    result = account.cloud.create_fleet(wanted)
    assert result.instances == ()
    found = {(one.instance_type, one.zone) for one in result.errors}
    assert found == {(one.instance_type, one.zone) for one in wanted.overrides}


def test_a_stock_out_of_one_zone_spares_the_others(account: Account, group: str) -> None:
    account.stock_out("c5.large", "us-west-2a", "*")
    account.stock_out("c5.large", "us-west-2b", "*")
    result = account.cloud.create_fleet(request(account, group, members=("a", "b")))
    assert [(one.instance_type, one.zone) for one in result.instances] == [("c5.large", "us-west-2c")] * 2


def test_a_partial_fleet_gives_what_there_is_and_says_what_is_missing(account: Account, group: str) -> None:
    account.stock_out("m5.large", "*", labels.ON_DEMAND)
    account.stock_out("c5.large", "us-west-2a", labels.ON_DEMAND)
    account.stock_out("c5.large", "us-west-2b", labels.ON_DEMAND, left=1)
    account.stock_out("c5.large", "us-west-2c", labels.ON_DEMAND)
    wanted = request(account, group, members=("a", "b"))
    result = account.cloud.create_fleet(wanted)
    assert [(one.instance_type, one.zone) for one in result.instances] == [("c5.large", "us-west-2b")]
    found = {(one.instance_type, one.zone) for one in result.errors}
    assert found == {(one.instance_type, one.zone) for one in wanted.overrides}
    assert all(one.capacity for one in result.errors)
    again = account.cloud.create_fleet(wanted)  # the same call gets the same answer, not the rest
    assert [one.id for one in again.instances] == [one.id for one in result.instances]


def test_what_is_not_offered_is_an_error_and_the_next_type_is_taken(account: Account, group: str) -> None:
    wanted = request(account, group)
    strange = [msgspec.structs.replace(one, instance_type="z1d.large", price=1) for one in wanted.overrides[:3]]
    result = account.cloud.create_fleet(msgspec.structs.replace(wanted, overrides=(*strange, *wanted.overrides)))
    assert [one.instance_type for one in result.instances] == ["c5.large"]


def test_a_pool_that_is_named_twice_spoils_the_request(account: Account, group: str) -> None:
    wanted = request(account, group)
    with pytest.raises(Invalid):
        account.cloud.create_fleet(msgspec.structs.replace(wanted, overrides=(*wanted.overrides, wanted.overrides[0])))


def test_spot_is_spot_and_has_a_stock_of_its_own(account: Account, group: str) -> None:
    account.stock_out("*", "*", labels.ON_DEMAND)
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    assert told.capacity_type == labels.SPOT
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert shown.capacity_type == labels.SPOT
