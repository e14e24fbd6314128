"""The limits of EC2's capacity that a test or a scenario sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kerf.ec2.quotas import QuotaKey, quota_of
from kerf.model.aws.cloud import InstanceTypeInfo
from kerf.sandbox.aws.machines import Machine


@dataclass(slots=True)
class Stocks:
    """Offerings (type, zone, capacity type) without capacity until a time, and quotas of vCPUs.

    `quotas` are by capacity type for all families together, `group_quotas` by capacity type and group of families.
    """

    outs: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    quotas: dict[str, int] = field(default_factory=dict)
    group_quotas: dict[QuotaKey, int] = field(default_factory=dict)

    def over_quota(
        self, machines: Iterable[Machine], types: Mapping[str, InstanceTypeInfo], kind: str, capacity_type: str
    ) -> tuple[int, int] | None:
        """The vCPUs in use and the quota that is too small for one more instance of a type; None when none is."""
        quota, alive = quota_of(kind, capacity_type), [one for one in machines if one.state in ("pending", "running")]
        for most, counted in (
            (self.quotas.get(capacity_type), (one for one in alive if one.capacity_type == capacity_type)),
            (
                self.group_quotas.get(quota),
                (one for one in alive if quota_of(one.instance_type, one.capacity_type) == quota),
            ),
        ):
            used = 0 if most is None else _vcpus(counted, types)
            if most is not None and used + types[kind].vcpus > most:
                return used, most
        return None


def _vcpus(machines: Iterable[Machine], types: Mapping[str, InstanceTypeInfo]) -> int:
    """The vCPUs of instances. EC2 may have withdrawn the type of one: it counts none."""
    return sum(types[one.instance_type].vcpus for one in machines if one.instance_type in types)
