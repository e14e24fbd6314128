"""ARC zonal shift: the zones that an operator, or AWS itself, has shifted the cluster's traffic away from.

Source: ARC zonal shift API reference, GetManagedResource; AWS provider reference §9.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from kerf.aws.requests.errors import translated
from kerf.model.aws.cloud import ZonalShift
from kerf.ports import Invalid
from kerf_api import bounds

_APPLIED: Final = "APPLIED"


def read_zonal_shifts(client: Any, cluster_arn: str) -> tuple[ZonalShift, ...]:
    """Those that are in force, each zone once, with the latest of its ends. Raises Invalid without an ARN."""
    if not cluster_arn:
        raise Invalid("arc-zonal-shift:GetManagedResource: EKS has not returned the ARN of the cluster")
    with translated("arc-zonal-shift:GetManagedResource"):
        answer = client.get_managed_resource(resourceIdentifier=cluster_arn)
    latest: dict[str, datetime | None] = {}
    for zone_id, until in _applied(answer):
        known = latest.get(zone_id, until)
        latest[zone_id] = None if known is None or until is None else max(known, until)
    return tuple(ZonalShift(zone_id, latest[zone_id]) for zone_id in sorted(latest))


def _applied(answer: Mapping[str, Any]) -> Iterator[tuple[str, datetime | None]]:
    """Zone IDs and when it is over; AWS's own shifts do not say when."""
    for row in (*answer.get("zonalShifts", ()), *answer.get("autoshifts", ())):
        if row.get("appliedStatus") == _APPLIED:
            ends = row.get("expiryTime")
            yield row["awayFrom"], None if ends is None else bounds.instant(ends)
