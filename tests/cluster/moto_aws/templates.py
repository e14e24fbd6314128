"""What EC2 looks at before it makes a launch template, or an instance from one, dry run or not; moto does not.

Source: EC2 API reference, error codes (InvalidUserData.Malformed, InvalidLaunchTemplateName.NotFoundException,
InvalidParameterValue) and "Dry run"; EC2 user guide, "Run commands when you launch an instance" (16 KB of user data).
"""

from __future__ import annotations

import base64
from typing import Any, Final

from moto.ec2.exceptions import EC2ClientError

from .fleet import no_profile

MOST_USER_DATA: Final = 16384


def check_template(response: Any) -> None:
    """Of CreateLaunchTemplate: how much user data there is. Raises EC2ClientError."""
    text = response._get_param("LaunchTemplateData.UserData") or ""
    if len(base64.b64decode(text)) > MOST_USER_DATA:
        raise EC2ClientError("InvalidUserData.Malformed", f"User data is limited to {MOST_USER_DATA} bytes")


def check_instance(response: Any) -> None:
    """Of RunInstances from a launch template: that it is there, and its instance profile. Raises EC2ClientError."""
    name = response._get_param("LaunchTemplate.LaunchTemplateName")
    if not name:
        return
    template = response.ec2_backend.get_launch_template_by_name(name)
    if refusal := no_profile(template.latest_version().data):
        raise EC2ClientError(*refusal)
