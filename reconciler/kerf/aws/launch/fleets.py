"""Fleets: one CreateFleet call of type `instant` for a group of NodeClaims that the same types hold.

The group is the client token, so the same request sent twice launches once; it is also a tag of every instance, by
which a restarted controller finds its own. What EC2 answers, together with the override it chose, says everything
about the new instances, so that no launch waits for DescribeInstances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kerf.aws.launch.launch_templates import LaunchTemplates
from kerf.aws.requests.clients import Clients, tag_list
from kerf.aws.requests.errors import translated
from kerf.ec2.errors import lacks_capacity
from kerf.model.aws.cloud import (
    EFA,
    EFA_ONLY,
    INTERRUPTIBLE,
    FleetError,
    FleetRequest,
    FleetResult,
    Instance,
    Override,
)
from kerf.ports import NotLeading, TemplateMissing
from kerf_api import labels
from kerf_api.texts import counted

MICRO: Final = 1_000_000
TAGGED: Final = ("instance", "volume", "fleet")
TOO_FEW: Final = "TooFewInstances"


def create_fleet(
    clients: Clients, templates: LaunchTemplates, request: FleetRequest, may_act: Callable[[], bool]
) -> FleetResult:
    """Ensure the request's templates and launch; if EC2 has lost a template meanwhile, make it again once."""
    templates.ensure(request.templates)
    try:
        return _call(clients, request, may_act)
    except TemplateMissing:
        templates.forget(request.templates)
        templates.ensure(request.templates)
        return _call(clients, request, may_act)


def _call(clients: Clients, request: FleetRequest, may_act: Callable[[], bool]) -> FleetResult:
    if not may_act():
        raise NotLeading("ec2:CreateFleet: not called, because creating the launch templates took too long")
    with translated("ec2:CreateFleet"):
        answer = clients.get("ec2").create_fleet(**parameters(request))
    return result(request, answer, datetime.now(UTC).replace(microsecond=0))


def parameters(request: FleetRequest) -> dict[str, Any]:
    """The CreateFleet call. Equal requests give equal calls, to the byte: a client token demands it."""
    tags = tag_list(launch_tags(request))
    call: dict[str, Any] = {
        "Type": "instant",
        "ClientToken": request.group,
        "LaunchTemplateConfigs": [_config(request, template.name) for template in request.templates],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": len(request.members),
            "DefaultTargetCapacityType": _target_type(request),
        },
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in TAGGED],
    }
    if request.capacity_type == labels.SPOT:
        strategy = "capacity-optimized-prioritized" if request.prioritized else "price-capacity-optimized"
        call["SpotOptions"] = {"AllocationStrategy": strategy}
    elif _target_type(request) == "reserved-capacity":
        call["ReservedCapacityOptions"] = {"ReservationTypes": [INTERRUPTIBLE]}
    elif _target_type(request) == labels.ON_DEMAND:
        call["OnDemandOptions"] = {"AllocationStrategy": "prioritized" if request.prioritized else "lowest-price"}
    if request.context:
        call["Context"] = request.context
    return call


def _target_type(request: FleetRequest) -> str:
    """What EC2 calls the capacity type; a launch into an ordinary reservation is one on demand. All are of one kind."""
    held = next((t.reservation for t in request.templates if t.reservation is not None), None)
    if held is None:
        return request.capacity_type
    if held.interruptible:
        return "reserved-capacity"
    return "capacity-block" if held.type == "capacity-block" else labels.ON_DEMAND


def launch_tags(request: FleetRequest) -> dict[str, str]:
    """The tags of everything the fleet makes: the request's, and the group."""
    return {**request.tags, labels.LAUNCH_GROUP: request.group}


def _config(request: FleetRequest, template: str) -> dict[str, Any]:
    return {
        "LaunchTemplateSpecification": {"LaunchTemplateName": template, "Version": "$Latest"},
        "Overrides": [
            {
                "InstanceType": one.instance_type,
                "SubnetId": one.subnet_id,
                "ImageId": one.image_id,
                "AvailabilityZone": one.zone,
                "Priority": one.price / MICRO,
            }
            for one in request.overrides
            if one.template == template
        ],
    }


def result(request: FleetRequest, answer: Mapping[str, Any], launched: datetime) -> FleetResult:
    """What came of it. When EC2 gave fewer instances than asked for and no reason, one error says so."""
    instances = tuple(sorted(_instances(request, answer, launched), key=lambda one: one.id))
    errors = tuple(_error(row) for row in answer.get("Errors", ()))
    if len(instances) < len(request.members) and not errors:
        text = f"EC2 launched {len(instances)} of {counted(len(request.members), 'instance')} and gave no reason"
        errors = (FleetError(code=TOO_FEW, message=text),)
    return FleetResult(instances=instances, errors=errors)


def _instances(request: FleetRequest, answer: Mapping[str, Any], launched: datetime) -> Iterator[Instance]:
    groups = {template.name: template.security_group_ids for template in request.templates}
    tags = launch_tags(request)
    for row in answer.get("Instances", ()):
        override = _chosen(request, row)
        for instance_id in row.get("InstanceIds", ()):
            yield Instance(
                id=instance_id,
                instance_type=row.get("InstanceType") or override.instance_type,
                zone=override.zone,
                state="pending",
                capacity_type=request.capacity_type,
                launched=launched,
                image_id=override.image_id,
                subnet_id=override.subnet_id,
                security_group_ids=tuple(sorted(groups.get(override.template, ()))),
                tags=tags,
                reservation=request.reservation(override),
                **_made(request, override),
            )


def _made(request: FleetRequest, override: Override) -> dict[str, Any]:
    """What the template of an override makes of a machine."""
    template = next((one for one in request.templates if one.name == override.template), None)
    if template is None:
        return {}
    efa = sum(one.interface_type in (EFA, EFA_ONLY) for one in template.network_interfaces)
    placed = {"placement_group": template.placement_group, "partition": template.partition}
    return {"tenancy": template.tenancy, "efa": efa, "profile": template.instance_profile, **placed}


def _chosen(request: FleetRequest, row: Mapping[str, Any]) -> Override:
    """The override that EC2 took, as we asked for it: the one of this type and subnet."""
    said = row.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    kind, subnet = row.get("InstanceType") or said.get("InstanceType"), said.get("SubnetId")
    for one in request.overrides:
        if one.instance_type == kind and one.subnet_id == subnet:
            return one
    return Override(
        instance_type=kind or "",
        zone=said.get("AvailabilityZone", ""),
        subnet_id=subnet or "",
        image_id=said.get("ImageId", ""),
        template="",
    )


def _error(row: Mapping[str, Any]) -> FleetError:
    override = row.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    code, message = row.get("ErrorCode", ""), row.get("ErrorMessage", "")
    return FleetError(
        code=code,
        message=message,
        instance_type=override.get("InstanceType", ""),
        zone=override.get("AvailabilityZone", ""),
        capacity=lacks_capacity(code, message),
        subnet_id=override.get("SubnetId", ""),
    )
