"""The limits of EC2's capacity that a test or a scenario sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kerf.model.aws.cloud import InstanceTypeInfo
from kerf.sandbox.aws.machines import Machine


@dataclass(slots=True)
class Stocks:
    """Offerings (type, zone, capacity type) without capacity until a time, and quotas of vCPUs by capacity type."""

    outs: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    quotas: dict[str, int] = field(default_factory=dict)


def vcpus_in_use(machines: Iterable[Machine], types: Mapping[str, InstanceTypeInfo], capacity_type: str) -> int:
    """The vCPUs of the instances that run or start. EC2 may have withdrawn the type of one: it counts none."""
    alive = (one for one in machines if one.state in ("pending", "running") and one.capacity_type == capacity_type)
    return sum(types[one.instance_type].vcpus for one in alive if one.instance_type in types)
