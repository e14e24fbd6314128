"""The interruption queue: what messages end, what they only tell, and what they say of stock (205 to 208)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.forced.interruption import interrupt
from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.interruptions import parse
from kerf.model.aws.cloud import HeldReservation, Instance
from kerf.model.aws.interruptions import Interruption, Message
from kerf.model.plan import DeleteMessage, DeleteObject, Plan
from kerf.model.settings import Settings
from kerf.runtime.inbox import Described, Received
from kerf.runtime.state.state import State
from tests.unit.disruption.worlds import NOW, ZONE, claim, node, snapshot
from tests.unit.ec2.test_interruptions import event, health, state

SPOT, STOCK = "EC2 Spot Instance Interruption Warning", "EC2 Capacity Reservation Instance Interruption Warning"


def message(body: Any, id_: str = "m") -> Message:
    return Message(id_, f"receipt-{id_}", body if isinstance(body, str) else json.dumps(body))


def warning(kind: str, instance: str) -> dict[str, Any]:
    return event("aws.ec2", kind, **{"instance-id": instance})


def told(*messages: Message) -> State:
    """What the controller knows once these have been received; i-1 is on spot, i-2 in a reservation."""
    known = State(Settings("test"), build=lambda *_: (), interpret=parse)
    spot = Instance("i-1", "m5.large", ZONE, "running", "spot", NOW)
    held = Instance("i-2", "c5.large", ZONE, "running", "reserved", NOW, reservation=HeldReservation(id="cr-1"))
    known.take(Described((spot, held), NOW), NOW)
    known.take(Received(messages, NOW), NOW)
    return known


def looked(*messages: Message, objects: Any = None) -> Plan:
    found: tuple[Interruption, ...] = told(*messages).snapshot(NOW).interruptions
    world = [value for one in (claim("1"), claim("2")) for value in (one, node(one))] if objects is None else objects
    return interrupt(snapshot(world, interruptions=found))


def ended(plan: Plan) -> list[str]:
    return [action.ref.name for action in plan.actions if isinstance(action, DeleteObject)]


def taken_off(plan: Plan) -> list[str]:
    return [action.message.id for action in plan.actions if isinstance(action, DeleteMessage)]


def going(name: str) -> Any:
    one = claim(name)
    return replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW))


ENDS = [
    warning(SPOT, "i-1"),
    warning(STOCK, "i-1"),
    health(affectedEntities=[{"entityValue": "i-1"}]),
    *(state(name) for name in ("stopping", "Stopped", "shutting-down", "TERMINATED")),
]


@pytest.mark.parametrize("body", ENDS)
def test_205_the_claim_goes_and_then_the_message(body: Any) -> None:
    first = looked(message(body))
    assert (ended(first), taken_off(first)) == (["1"], [])
    second = looked(message(body), objects=[going("1")])
    assert (ended(second), taken_off(second)) == ([], ["m"])


def test_205_all_of_many_at_once() -> None:
    rows = [message(warning(SPOT, f"i-{n}"), f"m{n}") for n in range(30)]
    claims = [claim(str(n)) for n in range(30)]
    assert sorted(ended(looked(*rows, objects=claims))) == sorted(str(n) for n in range(30))
    gone = looked(*rows, objects=[going(str(n)) for n in range(30)])
    assert sorted(taken_off(gone)) == sorted(row.id for row in rows)


@pytest.mark.parametrize("body", ["", "not json", "{}", state("running"), state("pending"), health(service="RDS")])
def test_206_what_says_nothing_is_taken_off_and_nothing_goes(body: Any) -> None:
    found = looked(message(body))
    assert (ended(found), taken_off(found)) == ([], ["m"])


@pytest.mark.parametrize(
    ("kind", "instance", "closed"),
    [(SPOT, "i-1", ("m5.large", ZONE, "spot")), (STOCK, "i-2", ("c5.large", ZONE, "cr-1"))],
)
def test_207_what_ec2_takes_back_is_not_to_be_had_there_for_now(kind: str, instance: str, closed: Any) -> None:
    found = told(message(warning(kind, instance))).snapshot(NOW)
    assert dict(found.out_of_stock) == {closed: NOW + OUT_OF_STOCK}
    assert not told(message(state("stopping"))).snapshot(NOW).out_of_stock


def test_208_of_a_claim_that_is_going_already_the_message_is_taken_off() -> None:
    found = looked(message(warning(SPOT, "i-1")), objects=[going("1")])
    assert (ended(found), taken_off(found), found.refusals) == ([], ["m"], ())
