"""ARC zonal shift, which moto does not have.

Source: ARC zonal shift API reference, GetManagedResource; times are seconds since the epoch (restJson1).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec


class Shift(msgspec.Struct, frozen=True):
    """Traffic is shifted away from a zone (ID) for so many seconds; one that is `auto` is AWS's own, without an end."""

    zone_id: str
    seconds: float
    status: str = "APPLIED"
    auto: bool = False
    asked: float = msgspec.field(default_factory=time.time)


def managed_resource(arn: str, shifts: Sequence[Shift]) -> dict[str, Any]:
    return {
        "arn": arn,
        "name": arn.rpartition("/")[2],
        "appliedWeights": {one.zone_id: 0.0 for one in shifts if one.status == "APPLIED"},
        "zonalShifts": [_row(arn, number, one) for number, one in enumerate(shifts) if not one.auto],
        "autoshifts": [
            {"appliedStatus": one.status, "awayFrom": one.zone_id, "startTime": one.asked} for one in shifts if one.auto
        ],
    }


def _row(arn: str, number: int, one: Shift) -> dict[str, Any]:
    return {
        "appliedStatus": one.status,
        "zonalShiftId": f"00000000-0000-0000-0000-{number:012}",
        "resourceIdentifier": arn,
        "awayFrom": one.zone_id,
        "startTime": one.asked,
        "expiryTime": one.asked + one.seconds,
        "comment": "by a test",
    }
