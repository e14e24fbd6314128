"""Checks of EC2 before it makes an instance from a launch template, dry run or not; moto has none of them.

Source: EC2 API reference, error codes (InvalidLaunchTemplateName.NotFoundException, InvalidParameterValue), "Dry run".
"""

from __future__ import annotations

from typing import Any

from moto.ec2.exceptions import EC2ClientError

from .fleet import no_profile


def check_instance(response: Any) -> None:
    """Of RunInstances from a launch template: that it is there, and its instance profile. Raises EC2ClientError."""
    name = response._get_param("LaunchTemplate.LaunchTemplateName")
    if not name:
        return
    template = response.ec2_backend.get_launch_template_by_name(name)
    if refusal := no_profile(template.latest_version().data):
        raise EC2ClientError(*refusal)
