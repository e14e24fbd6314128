"""How many addresses each subnet has left while machines are launched: EC2 is asked once a minute, launches are not.

A machine may come to need as many addresses as it can have pods. What has been launched since EC2 was asked has taken
them, and a call that is under way takes them wherever it may launch; when it fails they are free again. Source: AWS
provider reference §2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kerf.model.aws.cloud import FleetRequest, Instance, Subnet
from kerf.model.aws.instance_type import Catalogue


def pods_by_type(types: Catalogue) -> dict[str, int]:
    """How many pods a machine of each type can have."""
    return {kind.name: kind.capacity["pods"] for kind in types}


def left(
    subnets: Iterable[Subnet], launched: Iterable[Instance], calls: Iterable[FleetRequest], pods: Mapping[str, int]
) -> dict[str, int]:
    """By subnet, what EC2 said less what has been `launched` since and what `calls` may take; it may be negative."""
    free = {subnet.id: subnet.free_addresses for subnet in subnets}
    for instance in launched:
        if instance.subnet_id in free:
            free[instance.subnet_id] -= pods.get(instance.instance_type, 0)
    for call in calls:
        take(free, call, pods)
    return free


def take(free: dict[str, int], call: FleetRequest, pods: Mapping[str, int]) -> None:
    """Count a call: in each subnet that it names so many machines of the type with fewest pods."""
    least: dict[str, int] = {}
    for override in call.overrides:
        number = pods.get(override.instance_type, 0)
        least[override.subnet_id] = min(number, least.get(override.subnet_id, number))
    for subnet_id, number in least.items():
        if subnet_id in free:
            free[subnet_id] -= number * len(call.members)
