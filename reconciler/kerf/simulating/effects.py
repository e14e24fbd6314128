"""Whether weather can have an effect: on the offerings that NodePools allow, on instances that are launched."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from kerf.ec2 import families
from kerf.ec2.instance_types import type_labels
from kerf.model.aws.cloud import InstanceTypeInfo, Region
from kerf.sandbox.aws.machines import Machine
from kerf.simulating.scenario import NodeTimes, Offerings
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.v1.nodepool import NodePool

#: Labels that a type has only with an image: any is taken for allowed.
_OF_IMAGES: Final = frozenset({labels.OS, labels.WINDOWS_BUILD})


def is_usable(given: Offerings, region: Region, pools: Iterable[NodePool]) -> bool:
    """Whether a NodePool allows one of these offerings. A NodePool that cannot be read allows all."""
    wanted = [allowed(pool) for pool in pools]
    for name in given.instance_types or region.types:
        zones = {zone: "" for zone in region.zones_by_type.get(name, ()) if zone in (given.zones or (zone,))}
        if zones and name in region.types:
            own = _of_type(region.types[name], region.name, zones, given)
            if any(own.conflict(one) is None for one in wanted):
                return True
    return False


def is_met(given: NodeTimes, machines: Iterable[Machine], since: datetime) -> bool:
    """Whether an instance was launched since a change of the behaviour of new instances; True for other changes."""
    if any(one is not None for one in (given.pod_start, given.spot_interruptions_per_hour, given.out_of_stock_share)):
        return True
    return any(one.launched >= since for one in machines)


def allowed(pool: NodePool) -> Requirements:
    """The requirements of a NodePool on instance types. One that cannot be read has none."""
    try:
        found = pool.requirements()
    except ValueError:
        found = Requirements(())
    return found.without(*_OF_IMAGES)


def _of_type(info: InstanceTypeInfo, region: str, zones: dict[str, str], given: Offerings) -> Requirements:
    """The labels of the selected offerings of a type."""
    found = type_labels.requirements(info, families.AL2023, region, zones)
    if not given.capacity_types:
        return found
    return found & (requirement(labels.CAPACITY_TYPE, IN, given.capacity_types),)
