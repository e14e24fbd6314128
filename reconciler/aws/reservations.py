"""Capacity reservations that a node class selects, and how many machines may still be launched into each.

Terms are alternatives, as with subnets; a term with an ID asks for that one, any other for its tags, owner and matching
criteria together. Only active reservations count. Source: EC2 API reference, DescribeCapacityReservations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from api import bounds
from api.v1.ec2nodeclass import SelectorTerm
from reconciler.aws.answers import Ask
from reconciler.aws.clients import pages
from reconciler.aws.errors import translated
from reconciler.aws.networks import PAGE, Filters, tag_filters
from reconciler.aws.parallel import each
from reconciler.model.cloud import CapacityReservation

_OPERATION: Final = "describe_capacity_reservations"
_ACTIVE: Final = {"Name": "state", "Values": ["active"]}
_TYPES: Final = ("default", "capacity-block")
_CRITERIA: Final = ("open", "targeted")
#: EC2 ends the instances of a capacity block half an hour before it ends; nothing new starts there from then on.
LAST_CALL: Final = timedelta(minutes=40)


def read_reservations(
    ec2: Any, terms: Sequence[SelectorTerm], now: datetime, ask: Ask
) -> tuple[CapacityReservation, ...]:
    """The reservations that the terms select, by ID."""
    answers = each(lambda asked: ask((_OPERATION, repr(asked)), lambda: _describe(ec2, asked)), questions(terms))
    return of_rows((row for answer in answers for row in answer), now)


def of_rows(rows: Iterable[Mapping[str, Any]], now: datetime) -> tuple[CapacityReservation, ...]:
    """Those that EC2 describes so, each once, by ID; what is over, or of a kind that nobody here knows, is left out."""
    by_id = {row["CapacityReservationId"]: row for row in rows}
    found = (_reservation(by_id[id_], now) for id_ in sorted(by_id))
    return tuple(one for one in found if one is not None)


def questions(terms: Sequence[SelectorTerm]) -> list[Filters]:
    """One list of filters per query: all IDs share one (a filter answers an unknown ID with nothing, not an error)."""
    ids = sorted({term.id for term in terms if term.id})
    asked: list[Filters] = [[{"Name": "capacity-reservation-id", "Values": ids}, _ACTIVE]] if ids else []
    for term in terms:
        if not term.id:
            told = (("owner-id", term.owner_id), ("instance-match-criteria", term.instance_match_criteria))
            own: Filters = [{"Name": name, "Values": [value]} for name, value in told if value]
            asked.append([*tag_filters(term.tags), *own, _ACTIVE])
    return asked


def _describe(ec2: Any, filters: Filters) -> list[Any]:
    with translated("ec2:DescribeCapacityReservations"):
        return pages(ec2, _OPERATION, "CapacityReservations", Filters=filters, PaginationConfig=PAGE)


def _reservation(row: Mapping[str, Any], now: datetime) -> CapacityReservation | None:
    ends = bounds.instant(row["EndDate"]) if row.get("EndDate") is not None else None
    kind, criteria = row.get("ReservationType") or "default", row.get("InstanceMatchCriteria", "")
    over = ends is not None and ends <= now
    if over or row.get("State") != "active" or kind not in _TYPES or criteria not in _CRITERIA:
        return None
    return CapacityReservation(
        id=row["CapacityReservationId"],
        instance_type=row["InstanceType"],
        zone=row["AvailabilityZone"],
        left=row.get("AvailableInstanceCount", 0),
        owner=row.get("OwnerId", ""),
        criteria=criteria,
        type=kind,
        interruptible=bool(row.get("Interruptible")),
        ends=ends,
        expiring=kind == "capacity-block" and ends is not None and ends - LAST_CALL <= now,
    )
