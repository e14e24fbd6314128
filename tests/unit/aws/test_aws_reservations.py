"""Capacity reservations: selector terms as questions to EC2, and what its rows say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.aws.observe.reservations import of_rows, questions
from kerf.model.aws.cloud import CapacityReservation
from kerf_api.v1.ec2nodeclass import SelectorTerm

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ACTIVE = {"Name": "state", "Values": ["active"]}


def row(id_: str = "cr-1", **changes: Any) -> dict[str, Any]:
    """As DescribeCapacityReservations writes it."""
    return {
        "CapacityReservationId": id_,
        "OwnerId": "123456789012",
        "InstanceType": "m5.large",
        "AvailabilityZone": "us-west-2a",
        "TotalInstanceCount": 5,
        "AvailableInstanceCount": 3,
        "State": "active",
        "InstanceMatchCriteria": "targeted",
        "ReservationType": "default",
        **changes,
    }


def test_ids_are_pooled_and_all_else_is_asked_term_by_term() -> None:
    terms = (
        SelectorTerm(id="cr-2"),
        SelectorTerm(tags={"team": "red"}, owner_id="123456789012", instance_match_criteria="open"),
        SelectorTerm(id="cr-1"),
        SelectorTerm(tags={"any": "*"}),
    )
    assert questions(terms) == [
        {"CapacityReservationIds": ["cr-1", "cr-2"], "Filters": [ACTIVE]},
        {
            "Filters": [
                {"Name": "tag:team", "Values": ["red"]},
                {"Name": "owner-id", "Values": ["123456789012"]},
                {"Name": "instance-match-criteria", "Values": ["open"]},
                ACTIVE,
            ]
        },
        {"Filters": [{"Name": "tag-key", "Values": ["any"]}, ACTIVE]},
    ]
    assert questions(()) == []


def test_what_a_row_says() -> None:
    (found,) = of_rows([row(InstanceMatchCriteria="open", Interruptible=True)], NOW)
    assert found == CapacityReservation("cr-1", "m5.large", "us-west-2a", 3, "123456789012", "open", interruptible=True)


def test_each_once_by_id() -> None:
    assert [one.id for one in of_rows([row("cr-2"), row("cr-1"), row("cr-2")], NOW)] == ["cr-1", "cr-2"]


@pytest.mark.parametrize(
    "changes",
    [
        {"State": "expired"},
        {"EndDate": NOW},
        {"ReservationType": "of tomorrow"},
        {"InstanceMatchCriteria": "of tomorrow"},
    ],
)
def test_what_is_over_or_unheard_of_is_left_out(changes: dict[str, Any]) -> None:
    assert of_rows([row(**changes), row("cr-2")], NOW) == of_rows([row("cr-2")], NOW)


@pytest.mark.parametrize(
    ("kind", "minutes", "expiring"),
    [("capacity-block", 41, False), ("capacity-block", 40, True), ("default", 1, False), ("", 1, False)],
)
def test_a_capacity_block_expires_before_it_ends(kind: str, minutes: int, expiring: bool) -> None:
    (found,) = of_rows([row(ReservationType=kind, EndDate=NOW + timedelta(minutes=minutes))], NOW)
    assert (found.expiring, found.type) == (expiring, kind or "default")
