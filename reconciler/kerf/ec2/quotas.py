"""What a used-up quota of vCPUs says: of all zones, of every family that it counts, and of every larger type.

Source: EC2 user guide, "On-Demand Instance quotas" and "Spot Instance quotas".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kerf.model.aws.cloud import FleetRequest, FleetResult, Region
from kerf.model.aws.instance_type import OfferingKey

#: The group of the families that most instances are of.
STANDARD: Final = "standard"
#: What EC2 answers when the instance would take the account over a quota that is counted in vCPUs.
_CODES: Final = frozenset({"VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"})
_STANDARD_LETTERS: Final = tuple("acdhimrtz")
#: Families that begin with such a letter and have quotas of their own.
_OTHERS: Final = ("dl", "inf", "trn", "hpc", "high", "mac")
#: Families that share the quota of another one, and one that has its own on spot, by the beginning of the name.
_SHARED: Final = {"vt": "g", "p5": "p5"}
_LETTERS: Final = re.compile(r"[a-z]+")


def group_of(instance_type: str) -> str:
    """The group of families that a quota counts together. Rather two groups for one quota than one for two."""
    if instance_type.startswith(_STANDARD_LETTERS) and not instance_type.startswith(_OTHERS):
        return STANDARD
    shared = next((group for start, group in _SHARED.items() if instance_type.startswith(start)), None)
    letters = _LETTERS.match(instance_type)
    return shared or (letters[0] if letters else instance_type)


def closed_by_quota(request: FleetRequest, result: FleetResult, region: Region) -> Iterator[OfferingKey]:
    """The offerings that cannot be had either, after the errors of a fleet call about quotas.

    Where the vCPUs that were not launched were too many together, a type with as many alone is too large, in each zone.
    """
    missing = len(request.members) - len(result.instances)
    least = _least(result, region, missing)
    for name, info in region.types.items() if least else ():
        if info.vcpus >= least.get(group_of(name), float("inf")):
            yield from ((name, zone, request.capacity_type) for zone in region.zones_by_type.get(name, ()))


def _least(result: FleetResult, region: Region, missing: int) -> Mapping[str, int]:
    """By group of families, the fewest vCPUs of which a quota says that they are too many."""
    found: dict[str, int] = {}
    for error in result.errors:
        info = region.types.get(error.instance_type)
        if error.code in _CODES and info is not None and missing > 0:
            group = group_of(info.name)
            found[group] = min(found.get(group, info.vcpus * missing), info.vcpus * missing)
    return found
