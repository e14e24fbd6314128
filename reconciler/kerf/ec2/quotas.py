"""Used-up quotas of vCPUs: a quota counts all zones and several families, so it excludes every larger type, too.

Source: EC2 user guide, "On-Demand Instance quotas" and "Spot Instance quotas".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from kerf.ec2.errors import OUT_OF_STOCK, REFUSED_WITHIN, closed
from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult, Instance, Region
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.snapshot import LaunchFailure
from kerf_api.labels import ON_DEMAND, RESERVED, SPOT

#: The group of the families that most instances are of.
STANDARD: Final = "standard"
#: By capacity type, the code of the quota of these families in Service Quotas. Its unit is vCPUs.
QUOTAS: Final = {ON_DEMAND: "L-1216C47A", SPOT: "L-34B43A08"}
#: EC2's errors for a launch beyond a quota of vCPUs, with the capacity type that the quota counts.
_CODES: Final = {"VcpuLimitExceeded": ON_DEMAND, "MaxSpotInstanceCountExceeded": SPOT}
_STANDARD_LETTERS: Final = tuple("acdhimrtz")
#: Families that begin with such a letter and have quotas of their own.
_OTHERS: Final = ("dl", "inf", "trn", "hpc", "high", "mac")
#: Families that share the quota of another one, and one that has its own on spot, by the beginning of the name.
_SHARED: Final = {"vt": "g", "p5": "p5"}
#: More vCPUs than an instance type has: the sizes of the refused types are not known.
_ALL: Final = 10_000
#: Capacity type and group of families.
QuotaKey = tuple[str, str]
_LETTERS: Final = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class UsedUp:
    """A quota of vCPUs because of which EC2 refuses launches.

    Attributes:
        code: EC2's error code.
        capacity_type: `on-demand` or `spot`.
        group: the group of families that the quota counts.
        vcpus: Kerf requests no instance type with so many vCPUs; of smaller ones, it may not request those that EC2
            has refused by name.
        since: the first of the launches that failed one after another; failures are known for half an hour.
        until: the time of the next request.
        message: EC2's message for the latest launch.
    """

    code: str
    capacity_type: str
    group: str
    vcpus: int
    since: datetime
    until: datetime
    message: str

    @property
    def key(self) -> QuotaKey:
        """The quota among others."""
        return self.capacity_type, self.group

    @property
    def sized(self) -> bool:
        """Whether it is known how many vCPUs are too many."""
        return self.vcpus < _ALL

    @property
    def service_quota(self) -> str:
        """The code in Service Quotas; empty for groups of which Kerf does not know it."""
        return QUOTAS.get(self.capacity_type, "") if self.group == STANDARD else ""

    @property
    def name(self) -> str:
        """The quota in words."""
        code = f" ({self.service_quota})" if self.service_quota else ""
        return f"the quota of {self.capacity_type} vCPUs of the {self.group} families{code}"

    def __str__(self) -> str:
        sizes = f"no types with {self.vcpus} or more vCPUs" if self.sized else "none of the types that EC2 refused"
        closed = f"Kerf requests {sizes} until {self.until:%H:%M:%S} UTC"
        return f"{self.name} is used up since {self.since:%H:%M:%S} UTC; {closed}: {self.code}: {self.message}"


def group_of(instance_type: str) -> str:
    """The group of families that a quota counts together. Rather two groups for one quota than one for two."""
    if instance_type.startswith(_STANDARD_LETTERS) and not instance_type.startswith(_OTHERS):
        return STANDARD
    shared = next((group for start, group in _SHARED.items() if instance_type.startswith(start)), None)
    letters = _LETTERS.match(instance_type)
    return shared or (letters[0] if letters else instance_type)


def of_vcpus(error: FleetError) -> bool:
    """Whether the error is about a quota of vCPUs."""
    return error.code in _CODES


def closed_by_quota(request: FleetRequest, result: FleetResult, region: Region) -> Iterator[OfferingKey]:
    """The offerings that cannot be had either, after the errors of a fleet call about quotas.

    Where the vCPUs that were not launched were too many together, a type with as many alone is too large, in each zone.
    """
    missing = len(request.members) - len(result.instances)
    sizes = {name: info.vcpus for name, info in region.types.items()}
    least = _least(result.errors, missing, sizes)
    for name, vcpus in sizes.items() if least else ():
        if vcpus >= least.get(group_of(name), float("inf")):
            yield from ((name, zone, request.capacity_type) for zone in region.zones_by_type.get(name, ()))


def quota_of(instance_type: str, capacity_type: str) -> QuotaKey:
    """The quota that counts an offering or an instance; reservations are on-demand."""
    return _counted_as(capacity_type), group_of(instance_type)


def _counted_as(capacity_type: str) -> str:
    counted = capacity_type.split(" ")[0]
    return ON_DEMAND if counted == RESERVED else counted


def in_use(instances: Iterable[Instance], vcpus: Mapping[str, int]) -> dict[QuotaKey, int]:
    """The vCPUs of these instances by quota; a type of unknown size counts one."""
    found: dict[QuotaKey, int] = {}
    for one in instances:
        quota = quota_of(one.instance_type, one.capacity_type)
        found[quota] = found.get(quota, 0) + vcpus.get(one.instance_type, 1)
    return found


@dataclass(frozen=True, slots=True)
class Refusals:
    """What refused launches say of quotas for a while.

    Attributes:
        bounds: by quota the times of refusals, each with the most vCPUs that the instances of this cluster can have.
        needs: by closed offering the vCPUs that a launch of it needs: of several that were refused together, all.
        vcpus: the vCPUs of the instance types by name.
    """

    bounds: Mapping[QuotaKey, tuple[tuple[datetime, int], ...]] = field(default_factory=dict)
    needs: Mapping[OfferingKey, int] = field(default_factory=dict)
    vcpus: Mapping[str, int] = field(default_factory=dict)

    def after(
        self, request: FleetRequest, result: FleetResult, region: Region, instances: Iterable[Instance], at: datetime
    ) -> Refusals:
        """The same after a fleet call, with the instances of the cluster after it."""
        missing = len(request.members) - len(result.instances)
        sizes = {name: info.vcpus for name, info in region.types.items()}
        least, used = _least(result.errors, missing, sizes), in_use(instances, sizes)
        if not least:
            return self
        bounds = {
            quota: tuple(row for row in rows if at - row[0] < OUT_OF_STOCK) for quota, rows in self.bounds.items()
        }
        for group, vcpus in least.items():
            quota = _counted_as(request.capacity_type), group
            bounds[quota] = (*bounds.get(quota, ()), (at, used.get(quota, 0) + vcpus - 1))
        named = {
            key: sizes[error.instance_type] * missing
            for error in result.errors
            if of_vcpus(error) and error.instance_type in sizes
            for key in closed(request, error)
        }
        return Refusals(bounds, {**self.needs, **named}, sizes)

    def excludes(self, key: OfferingKey, used: Mapping[QuotaKey, int], now: datetime) -> bool:
        """Whether no launch of an offering can succeed, by refusals and the vCPUs that are in use now.

        More vCPUs in use than a refusal allows: the quota was raised, or other users of the account need less.
        """
        quota = quota_of(key[0], key[2])
        own, need = used.get(quota, 0), self.needs.get(key, self.vcpus.get(key[0], 0))
        known = (most for at, most in self.bounds.get(quota, ()) if now - at < OUT_OF_STOCK and most >= own)
        return any(own + need > most for most in known)

    def set_back(self, by: timedelta) -> Refusals:
        """The same under a clock that was set back."""
        bounds = {quota: tuple((at - by, most) for at, most in rows) for quota, rows in self.bounds.items()}
        return replace(self, bounds=bounds)


def _least(errors: Iterable[FleetError], missing: int, vcpus: Mapping[str, int]) -> Mapping[str, int]:
    """By group of families, the fewest vCPUs of which a quota says that they are too many."""
    found: dict[str, int] = {}
    for error in errors:
        size = vcpus.get(error.instance_type)
        if of_vcpus(error) and size is not None and missing > 0:
            group = group_of(error.instance_type)
            found[group] = min(found.get(group, size * missing), size * missing)
    return found


def used_up(
    failures: Iterable[LaunchFailure],
    out_of_stock: Mapping[OfferingKey, datetime],
    vcpus: Mapping[str, int],
    now: datetime,
) -> Mapping[UsedUp, frozenset[OfferingKey]]:
    """The used-up quotas, each with the offerings that Kerf does not request because of it.

    Args:
        failures: the launches that failed, of all launch groups.
        out_of_stock: the offerings that Kerf does not request, until when.
        vcpus: the vCPUs of the instance types by name.
        now: the time.
    """
    rows: dict[tuple[str, str], list[tuple[LaunchFailure, str]]] = {}
    keys_of: dict[tuple[str, str], set[OfferingKey]] = {}
    sizes: dict[tuple[str, str], int] = {}
    by_end: dict[datetime, list[OfferingKey]] = {}
    for key, until in out_of_stock.items():
        by_end.setdefault(until, []).append(key)
    for one in failures:
        messages = {
            (error.code, group_of(error.instance_type)): error.message for error in filter(of_vcpus, one.errors)
        }
        for quota, message in messages.items():
            rows.setdefault(quota, []).append((one, message))
            ended = by_end.get(one.at + OUT_OF_STOCK, ()) if one.at + OUT_OF_STOCK > now else ()
            if ended:
                least = _least(one.errors, one.missing, vcpus).get(quota[1])
                keys_of.setdefault(quota, set()).update(_closed(one, quota, ended, vcpus, least))
                sizes[quota] = min(size for size in (sizes.get(quota), least, _ALL) if size is not None)
    return {
        UsedUp(
            *(code, _CODES[code], group, sizes[code, group], _since(rows[code, group])),
            *(max(out_of_stock[key] for key in keys), max(rows[code, group], key=lambda row: row[0].at)[1]),
        ): frozenset(keys)
        for (code, group), keys in sorted(keys_of.items())
        if keys
    }


def _closed(
    failure: LaunchFailure,
    quota: tuple[str, str],
    ended: Iterable[OfferingKey],
    vcpus: Mapping[str, int],
    least: int | None,
) -> Iterator[OfferingKey]:
    """The offerings that one failure has closed because of a quota; what the same call lacked otherwise is not.

    Types with `least` vCPUs or more are too large; None: only the named ones are.
    """
    code, group = quota
    named = {(error.instance_type, error.zone): error.code for error in failure.errors}
    for key in ended:
        name, zone, sold = key
        if sold.split(" ")[0] != _CODES[code] or group_of(name) != group:
            continue
        if named.get((name, zone), code if least is not None and vcpus.get(name, 0) >= least else "") == code:
            yield key


def _since(rows: Iterable[tuple[LaunchFailure, str]]) -> datetime:
    """The first of the failures that follow each other closely, up to the latest."""
    known = sorted((one for one, _ in rows), key=lambda one: one.at, reverse=True)
    since = known[0].began
    for one in known:
        if since - one.at > REFUSED_WITHIN:
            break
        since = min(since, one.began)
    return since
