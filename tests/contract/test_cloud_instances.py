"""What every adapter of the Cloud port promises of instances: when they are listed, their states, tags and ends."""

from __future__ import annotations

import pytest

from kerf.ports import AlreadyGone
from kerf_api import labels

from .cloud_accounts import Account
from .launches import listed, request, resolved

UNKNOWN = "i-0123456789abcdef0"


def test_a_new_instance_may_be_listed_late(account: Account, group: str) -> None:
    account.hide_new_instances()
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    assert listed(account, told.id) is None
    account.eventually(lambda: listed(account, told.id) is not None)


def test_an_instance_starts_running(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: getattr(listed(account, told.id), "state", "") == "running")


def test_a_terminated_instance_shuts_down_and_is_gone(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    account.cloud.terminate(told.id)
    account.cloud.terminate(told.id)  # a repeat does no harm while it shuts down
    shown = listed(account, told.id)
    assert shown is None or not shown.live
    account.eventually(lambda: listed(account, told.id) is None)


def test_tags_are_added_to_those_there(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.cloud.tag(told.id, {labels.TAG_NAME: "node-1", labels.TAG_NODECLAIM: "claim-1"})
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert shown.tags[labels.TAG_NAME] == "node-1"
    assert shown.tags[labels.TAG_NODEPOOL] == "default"


def test_a_tag_of_the_same_key_is_overwritten(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    for name in ("first", "second"):
        account.cloud.tag(told.id, {labels.TAG_NAME: name})
    account.eventually(lambda: getattr(listed(account, told.id), "tags", {}).get(labels.TAG_NAME) == "second")


def test_an_instance_that_has_ended_can_be_ended_again(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    account.cloud.terminate(told.id)
    account.eventually(lambda: listed(account, told.id) is None)
    account.cloud.terminate(told.id)
    assert listed(account, told.id) is None


def test_instances_of_another_cluster_are_not_listed(account: Account, group: str) -> None:
    theirs = account.cloud.create_fleet(request(account, f"{group}-1", cluster_name="another")).instances[0]
    ours = account.cloud.create_fleet(request(account, f"{group}-2")).instances[0]
    account.eventually(lambda: listed(account, ours.id) is not None)
    assert listed(account, theirs.id) is None


def test_a_zone_has_an_id_that_instances_and_subnets_share(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group)).instances[0]
    account.eventually(lambda: listed(account, told.id) is not None)
    shown = listed(account, told.id)
    assert shown is not None
    assert shown.zone_id == next(one.zone_id for one in resolved(account).subnets if one.id == shown.subnet_id)


def test_an_unknown_instance_is_gone_already(account: Account) -> None:
    with pytest.raises(AlreadyGone):
        account.cloud.terminate(UNKNOWN)
    with pytest.raises(AlreadyGone):
        account.cloud.tag(UNKNOWN, {labels.TAG_NAME: "nobody"})
