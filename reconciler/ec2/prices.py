"""On-demand prices for when AWS does not tell: our own compact table, an estimate to rank types by.

The Pricing API is always preferred; a price from here is the one of us-east-1.
"""

from __future__ import annotations

from reconciler.ec2.price_table import EXCEPTIONS, PER_VCPU

#: A general-purpose family that is newer than the table costs about this (least squares over c, m and r families).
_UNKNOWN_CATEGORIES = ("c", "m", "r")
_UNKNOWN_PER_VCPU, _UNKNOWN_PER_GIB = 34_800, 3_500


def on_demand(instance_type: str, vcpus: int, memory_mib: int) -> int | None:
    """The estimated price in millionths of a US dollar per hour; None for a special family that is not in the table."""
    if instance_type in EXCEPTIONS:
        return EXCEPTIONS[instance_type]
    family = instance_type.partition(".")[0]
    if family in PER_VCPU:
        return PER_VCPU[family] * vcpus
    if family[:1] in _UNKNOWN_CATEGORIES and family[1:2].isdigit():
        return _UNKNOWN_PER_VCPU * vcpus + _UNKNOWN_PER_GIB * memory_mib // 1024
    return None
