"""RunInstances, TerminateInstances and the deletion of launch templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .rule import API, Call, given, rule

RUN: Final = "ec2:RunInstances"
_RUN: Final = f"{API}RunInstances.html"


@rule(RUN, address=_RUN)
def instance_counts(call: Call) -> Iterator[str]:
    """The counts of instances are at least 1, and the minimum is not above the maximum."""
    low, high = call.parameters.get("MinCount", 1), call.parameters.get("MaxCount", 1)
    if not 1 <= low <= high:
        yield f"MinCount {low}, MaxCount {high}"


@rule(RUN, address=_RUN)
def run_token(call: Call) -> Iterator[str]:
    """The client token of RunInstances has a maximum of 64 ASCII characters."""
    token = str(call.parameters.get("ClientToken", ""))
    if len(token) > 64 or not token.isascii():
        yield f"the client token has {len(token)} characters"


@rule(RUN, address=f"{API}LaunchTemplateSpecification.html", code="InvalidParameterCombination")
def run_template(call: Call) -> Iterator[str]:
    """A launch template is named by its ID or by its name, not by both."""
    template = call.parameters.get("LaunchTemplate")
    if template is not None and len(given(template, "LaunchTemplateId", "LaunchTemplateName")) != 1:
        yield "one of LaunchTemplateId and LaunchTemplateName is needed"


@rule("ec2:DeleteLaunchTemplate", address=f"{API}DeleteLaunchTemplate.html", code="InvalidParameterCombination")
def deleted_template(call: Call) -> Iterator[str]:
    """The launch template to delete is named by its ID or by its name, not by both."""
    if len(given(call.parameters, "LaunchTemplateId", "LaunchTemplateName")) != 1:
        yield "one of LaunchTemplateId and LaunchTemplateName is needed"


@rule("ec2:TerminateInstances", address=f"{API}TerminateInstances.html")
def terminated_instances(call: Call) -> Iterator[str]:
    """TerminateInstances takes up to 1000 instance IDs."""
    ids = call.parameters.get("InstanceIds", ())
    if not 1 <= len(ids) <= 1000:
        yield f"{len(ids)} instance IDs"
