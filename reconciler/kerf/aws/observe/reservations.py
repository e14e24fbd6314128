"""Capacity reservations that a node class selects, and how many machines may still be launched into each.

Terms are alternatives, as with subnets; a term with an ID asks for that one, any other for its tags, owner and matching
criteria together. Only active reservations count. EC2 has no filter for the ID of a reservation: IDs are a parameter,
without a page size, and one that EC2 does not know fails the whole call. Source: EC2 API reference,
DescribeCapacityReservations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.aws.observe.networks import PAGE, Filters, tag_filters
from kerf.aws.requests.answers import Ask
from kerf.aws.requests.clients import pages
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.model.aws.cloud import CapacityReservation
from kerf.ports import AlreadyGone, Invalid
from kerf_api import bounds
from kerf_api.v1.ec2nodeclass import SelectorTerm

_OPERATION: Final = "describe_capacity_reservations"
_ACTIVE: Final = {"Name": "state", "Values": ["active"]}
#: How the error codes about an ID begin.
_NOT_KNOWN: Final = "InvalidCapacityReservationId"
_TYPES: Final = ("default", "capacity-block")
_CRITERIA: Final = ("open", "targeted")
#: EC2 ends the instances of a capacity block half an hour before it ends; nothing new starts there from then on.
LAST_CALL: Final = timedelta(minutes=40)


def read_reservations(
    ec2: Any, terms: Sequence[SelectorTerm], now: datetime, ask: Ask
) -> tuple[CapacityReservation, ...]:
    """The reservations that the terms select, by ID."""

    def read(asked: Mapping[str, Any]) -> list[Any]:
        ids = asked.get("CapacityReservationIds")
        return _of_ids(ec2, ids) if ids else _describe(ec2, PaginationConfig=PAGE, **asked)

    answers = each(lambda asked: ask((_OPERATION, repr(asked)), lambda: read(asked)), questions(terms))
    return of_rows((row for answer in answers for row in answer), now)


def of_rows(rows: Iterable[Mapping[str, Any]], now: datetime) -> tuple[CapacityReservation, ...]:
    """Those that EC2 describes so, each once, by ID; what is over, or of an unknown kind, is left out."""
    by_id = {row["CapacityReservationId"]: row for row in rows}
    found = (_reservation(by_id[id_], now) for id_ in sorted(by_id))
    return tuple(one for one in found if one is not None)


def questions(terms: Sequence[SelectorTerm]) -> list[dict[str, Any]]:
    """The parameters of each query; all IDs share one."""
    ids = sorted({term.id for term in terms if term.id})
    asked: list[dict[str, Any]] = [{"CapacityReservationIds": ids, "Filters": [_ACTIVE]}] if ids else []
    for term in terms:
        if not term.id:
            told = (("owner-id", term.owner_id), ("instance-match-criteria", term.instance_match_criteria))
            own: Filters = [{"Name": name, "Values": [value]} for name, value in told if value]
            asked.append({"Filters": [*tag_filters(term.tags), *own, _ACTIVE]})
    return asked


def _of_ids(ec2: Any, ids: Sequence[str]) -> list[Any]:
    """The active ones of these IDs. When EC2 does not know one of several, each is asked for alone."""
    try:
        return _describe(ec2, CapacityReservationIds=list(ids), Filters=[_ACTIVE])
    except (AlreadyGone, Invalid) as error:
        if _NOT_KNOWN not in str(error):
            raise
    return [row for rows in each(lambda id_: _of_ids(ec2, [id_]), ids) for row in rows] if len(ids) > 1 else []


def _describe(ec2: Any, **parameters: Any) -> list[Any]:
    with translated("ec2:DescribeCapacityReservations"):
        return pages(ec2, _OPERATION, "CapacityReservations", **parameters)


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
