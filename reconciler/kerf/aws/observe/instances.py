"""Instances: listing those of this cluster, tagging one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kerf.aws.observe import instance_rows
from kerf.aws.requests.clients import pages, tag_list
from kerf.aws.requests.errors import translated
from kerf.model.aws.cloud import EFA, EFA_ONLY, INTERRUPTIBLE, ONLY_RESERVED, HeldReservation, Instance
from kerf.telemetry.precedence import GiveWay, at_once, in_steps
from kerf_api import bounds, labels

#: Every state but `terminated`, in which EC2 still shows an instance for an hour.
STATES: Final = ("pending", "running", "stopping", "stopped", "shutting-down")


def read_instances(ec2: Any, cluster_name: str, give_way: GiveWay = at_once) -> tuple[Instance, ...]:
    """All instances launched for node pools of this cluster that are not terminated, by ID."""
    filters = [
        {"Name": "tag-key", "Values": [labels.TAG_NODEPOOL]},
        {"Name": "tag-key", "Values": [labels.TAG_NODECLASS]},
        {"Name": f"tag:{labels.TAG_EKS_CLUSTER}", "Values": [cluster_name]},
        {"Name": "instance-state-name", "Values": list(STATES)},
    ]
    instance_rows.install(ec2, give_way)
    with translated("ec2:DescribeInstances"):
        reservations = pages(
            ec2, "describe_instances", "Reservations", Filters=filters, PaginationConfig={"PageSize": 1000}
        )
    rows = (row for reservation in reservations for row in reservation.get("Instances", ()))
    found = (instance(row) for row in in_steps(rows, give_way, 5 * instance_rows.ROWS))
    return tuple(sorted(found, key=lambda one: one.id))


def instance(row: Mapping[str, Any]) -> Instance:
    """One element of `Instances`. Source: EC2 API reference, Instance."""
    placement, kind = row.get("Placement", {}), capacity_type(row)
    return Instance(
        id=row["InstanceId"],
        instance_type=row["InstanceType"],
        zone=placement.get("AvailabilityZone", ""),
        zone_id=placement.get("AvailabilityZoneId", ""),
        state=row["State"]["Name"],
        capacity_type=kind,
        launched=bounds.instant(row["LaunchTime"]),
        image_id=row.get("ImageId", ""),
        subnet_id=row.get("SubnetId", ""),
        security_group_ids=tuple(sorted(group["GroupId"] for group in row.get("SecurityGroups", ()))),
        tags={tag["Key"]: tag["Value"] for tag in row.get("Tags", ())},
        reservation=_reservation(row) if kind == labels.RESERVED else None,
        tenancy=placement.get("Tenancy") or "default",
        placement_group=placement.get("GroupId", ""),
        partition=int(placement.get("PartitionNumber") or 0),
        efa=sum(one.get("InterfaceType") in (EFA, EFA_ONLY) for one in row.get("NetworkInterfaces", ())),
        profile=row.get("IamInstanceProfile", {}).get("Arn", "").rpartition("/")[2],
    )


def _reservation(row: Mapping[str, Any]) -> HeldReservation:
    lifecycle = row.get("InstanceLifecycle")
    return HeldReservation(
        id=row["CapacityReservationId"],
        type="capacity-block" if lifecycle == "capacity-block" else "default",
        interruptible=lifecycle == INTERRUPTIBLE,
    )


def capacity_type(row: Mapping[str, Any]) -> str:
    """How an instance is paid for: spot by its request, reserved when it may run on reserved capacity only."""
    if row.get("SpotInstanceRequestId") or row.get("InstanceLifecycle") == "spot":
        return labels.SPOT
    preference = row.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference")
    if row.get("CapacityReservationId") and preference == ONLY_RESERVED:
        return labels.RESERVED
    return labels.ON_DEMAND


def tag(ec2: Any, instance_id: str, tags: Mapping[str, str]) -> None:
    """Add or overwrite tags of one instance. Raises AlreadyGone when EC2 does not know the ID."""
    with translated("ec2:CreateTags"):
        ec2.create_tags(Resources=[instance_id], Tags=tag_list(tags))
