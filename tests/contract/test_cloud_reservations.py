"""What every adapter of the Cloud port promises of capacity reservations."""

from __future__ import annotations

import msgspec

from kerf.model.aws.cloud import ONLY_RESERVED, HeldReservation
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import SelectorTerm

from .cloud_accounts import OWNER, Account
from .launches import ZONES, listed, node_class, request


def reservations(account: Account, *terms: SelectorTerm) -> dict[str, int]:
    """What a class with these terms selects: how many machines are left, by ID."""
    plain = node_class(account)
    wanted = msgspec.structs.replace(plain.spec, capacity_reservation_selector_terms=terms)
    facts = account.cloud.resolve(msgspec.structs.replace(plain, spec=wanted), account.cloud.cluster())
    assert all(
        (one.instance_type, one.zone, one.type) == ("m5.large", ZONES[0], "default") for one in facts.reservations
    )
    return {one.id: one.left for one in facts.reservations}


def test_capacity_reservations_are_selected(account: Account) -> None:
    """By ID, tags, owner, criteria; a term's conditions together, terms as alternatives; by ID in order."""
    for id_, team in (("cr-0000000000000002a", "red"), ("cr-0000000000000001a", "blue")):
        account.reserve(id_, "m5.large", ZONES[0], 3, {"team": team, "group": "selected"})
    both = {"cr-0000000000000001a": 3, "cr-0000000000000002a": 3}
    assert reservations(account) == {}
    assert reservations(account, SelectorTerm(tags={"team": "red"})) == {"cr-0000000000000002a": 3}
    assert list(reservations(account, SelectorTerm(tags={"team": "*", "group": "selected"})).items()) == list(
        both.items()
    )
    assert reservations(account, SelectorTerm(id="cr-0000000000000001a"), SelectorTerm(tags={"team": "red"})) == both
    nowhere = SelectorTerm(id="cr-00000000000000000")
    assert reservations(account, nowhere) == {}
    assert reservations(account, nowhere, *(SelectorTerm(id=id_) for id_ in both)) == both
    tags = {"group": "selected"}
    assert reservations(account, SelectorTerm(tags=tags, owner_id=OWNER, instance_match_criteria="targeted")) == both
    assert reservations(account, SelectorTerm(tags=tags, instance_match_criteria="open")) == {}
    assert reservations(account, SelectorTerm(tags=tags, owner_id="210987654321")) == {}


def test_a_reservation_gives_what_it_has_and_its_machines_say_so(account: Account, group: str) -> None:
    """It is not out of stock when others are; one machine too many is an error of its type and zone."""
    term, held = SelectorTerm(id="cr-00000000000000f11"), HeldReservation(id="cr-00000000000000f11")
    account.reserve(held.id, "m5.large", ZONES[0], 2, {})
    account.stock_out("*", "*", "*")
    plain = request(account, group, members=("a", "b", "c"), capacity_type=labels.RESERVED, types=("m5.large",))
    (template,) = plain.templates
    wanted = msgspec.structs.replace(
        plain,
        templates=(msgspec.structs.replace(template, capacity_reservations=ONLY_RESERVED, reservation=held),),
        overrides=tuple(one for one in plain.overrides if one.zone == ZONES[0]),
    )
    result = account.cloud.create_fleet(wanted)
    assert [(one.capacity_type, one.reservation, one.zone) for one in result.instances] == [
        (labels.RESERVED, held, ZONES[0])
    ] * 2
    (error,) = result.errors
    assert (error.code, error.capacity) == ("ReservationCapacityExceeded", True)
    assert (error.instance_type, error.zone) == ("m5.large", ZONES[0])
    one, other = result.instances
    account.eventually(lambda: listed(account, one.id) is not None and listed(account, other.id) is not None)
    shown = listed(account, one.id)
    assert shown is not None
    assert (shown.capacity_type, shown.reservation) == (labels.RESERVED, held)
    assert reservations(account, term) == {"cr-00000000000000f11": 0}
    account.cloud.terminate(other.id)
    assert reservations(account, term) == {"cr-00000000000000f11": 1}
