"""What every adapter of the Cloud port promises of the queue of interruptions."""

from __future__ import annotations

from kerf.ec2 import interruptions
from kerf.model.aws.interruptions import Message
from kerf_api import labels

from .cloud_accounts import Account
from .launches import request


def test_an_interruption_arrives_and_stays_away_once_deleted(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    account.interrupt(told.id)
    parsed = [interruptions.parse(message) for message in account.cloud.receive()]
    mine = [one for one in parsed if one and one.kind == "spot_interrupted" and told.id in one.instance_ids]
    assert len(mine) == 1
    assert mine[0].message.receipt
    assert mine[0].message.sent is not None
    account.cloud.delete_message(mine[0].message)
    assert mine[0].message.id not in {message.id for message in account.cloud.receive()}


def mine(account: Account, instance_id: str) -> list[Message]:
    """What the queue gives now about the interruption of an instance."""
    parsed = [interruptions.parse(message) for message in account.cloud.receive()]
    found = [one for one in parsed if one and one.kind == "spot_interrupted" and instance_id in one.instance_ids]
    return [one.message for one in found]


def empty_queue(account: Account) -> None:
    while messages := account.cloud.receive():
        for message in messages:
            account.cloud.delete_message(message)


def test_a_message_that_nobody_deletes_is_hidden_and_comes_again(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    empty_queue(account)
    account.interrupt(told.id)
    (first,) = mine(account, told.id)
    assert mine(account, told.id) == []
    account.time_out(first)
    (second,) = mine(account, told.id)
    assert (second.id, second.body) == (first.id, first.body)
    account.cloud.delete_message(second)


def test_messages_come_once_each_until_there_are_no_more(account: Account, group: str) -> None:
    told = account.cloud.create_fleet(request(account, group, capacity_type=labels.SPOT)).instances[0]
    empty_queue(account)
    for _ in range(12):
        account.interrupt(told.id)
    seen = set[str]()
    while found := mine(account, told.id):
        assert not seen & {message.id for message in found}
        seen |= {message.id for message in found}
    assert len(seen) == 12
