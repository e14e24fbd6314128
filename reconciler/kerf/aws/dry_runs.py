"""Whether EC2 would let us launch: the calls of a launch, done dry.

CreateFleet and RunInstances have to name a launch template that is there, so one is made and deleted again; with the
rest nothing happens. What a policy denies, user data that is too large and a profile that is not there are answers;
when EC2 is busy, or has lost the template, the result is unknown. Source: EC2 API reference, "Dry run"; AWS provider
reference §6.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from kerf.aws.launch.fleets import launch_tags, parameters
from kerf.aws.launch.launch_templates import LaunchTemplates, interfaces
from kerf.aws.probes import outcome
from kerf.aws.profiles import unfit
from kerf.aws.requests.clients import Clients, tag_list
from kerf.ec2.nodeclass import validation
from kerf.model.aws.cloud import FleetRequest, Override
from kerf.ports import Forbidden, PortError, TemplateMissing, Throttled, Unavailable

Problem = tuple[str, str]
TEMPLATE, FLEET, INSTANCES = validation.DENIALS
#: What a launch makes beside the fleet itself.
TAGGED: Final = ("instance", "volume", "network-interface")
#: EC2's code for what a policy does not allow; the other refusals are about credentials.
DENIED: Final = "UnauthorizedOperation"
_USER_DATA, _TOO_LARGE = "InvalidUserData.Malformed", "User data is limited to"


def dry_run(clients: Clients, templates: LaunchTemplates, request: FleetRequest) -> Problem | None:
    """What EC2 has against a launch by this request, which has one template; None when nothing.

    Raises PortError when it could not be found out.
    """
    [template] = request.templates
    try:
        templates.ensure(request.templates)
    except PortError as error:
        return _judged(TEMPLATE, error)
    try:
        ec2 = clients.get("ec2", attempts=1)
        if refusal := outcome(FLEET, lambda: ec2.create_fleet(**fleet(request), DryRun=True)):
            return _judged(FLEET, refusal)
        refusal = _instances(ec2, request)
        return None if refusal is None else _judged(INSTANCES, refusal)
    finally:
        with suppress(PortError):  # it goes with its class at the latest
            templates.withdraw(template)


def _instances(ec2: Any, request: FleetRequest) -> PortError | None:
    """What speaks against an instance in the first subnet; None when one could be run in any of them."""
    errors = []
    for override in request.overrides:
        error = _instance(ec2, request, override)
        if error is None:
            return None
        errors.append(error)
    return errors[0] if errors else None


def _instance(ec2: Any, request: FleetRequest, override: Override) -> PortError | None:
    return outcome(INSTANCES, lambda: ec2.run_instances(**instance(request, override), DryRun=True))


def fleet(request: FleetRequest) -> dict[str, Any]:
    """The CreateFleet call; it launches nothing, so that it needs no token."""
    return {name: value for name, value in parameters(request).items() if name != "ClientToken"}


def instance(request: FleetRequest, override: Override) -> dict[str, Any]:
    """The RunInstances call for one instance from an override; a subnet is named by its interfaces."""
    [template], tags = request.templates, tag_list(launch_tags(request))
    return {
        "LaunchTemplate": {"LaunchTemplateName": template.name, "Version": "$Latest"},
        "InstanceType": override.instance_type,
        "ImageId": override.image_id,
        "MinCount": 1,
        "MaxCount": 1,
        "NetworkInterfaces": [{**one, "SubnetId": override.subnet_id} for one in interfaces(template)],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in TAGGED],
    }


def _judged(call: str, error: PortError) -> Problem:
    """The verdict for the class. Raises the error again when it is not about a launch."""
    text = str(error)
    if isinstance(error, Forbidden) and DENIED in text:
        return validation.denial(call, text)
    if isinstance(error, (Forbidden, TemplateMissing, Throttled, Unavailable)):
        raise error
    if _USER_DATA in text and _TOO_LARGE in text:
        return validation.USER_DATA_TOO_LARGE, text
    if unfit(text):
        return validation.PROFILE_NOT_FOUND, text
    return validation.UNEXPECTED, text
