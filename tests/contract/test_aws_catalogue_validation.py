"""Behaviours of the AWS catalogue over the wire: launches that are tried dry (185 to 191)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.ec2.nodeclass import validation
from kerf.model.aws.cloud import FleetRequest
from kerf.ports import Forbidden, Throttled, Unavailable
from tests.cluster.moto_aws import MotoAws
from tests.cluster.moto_aws.settings import ZONES

from .cloud_accounts import MotoAccount
from .launches import request

BOTH = 2
DENIED = "UnauthorizedOperation"
BOUNDARY = "You may not run instances with an explicit deny in a permissions boundary"
SCP = "You may not run instances with an explicit deny in a service control policy"
pytestmark = pytest.mark.only_real("behaviours of the AWS catalogue: codes and calls of AWS's own API")


def wanted(real: MotoAccount) -> FleetRequest:
    """A launch of one type, with a template of its own, into a subnet of each zone."""
    usual = request(real, "tried", types=["m5.large"])
    name = "karpenter.k8s.aws/validation-1"
    overrides = tuple(replace(one, template=name) for one in usual.overrides)
    return replace(usual, templates=(replace(usual.templates[0], name=name),), overrides=overrides)


def templates(aws: MotoAws) -> set[str]:
    rows = aws.client("ec2").describe_launch_templates()["LaunchTemplates"]
    return {row["LaunchTemplateName"] for row in rows if "validation" in row["LaunchTemplateName"]}


@pytest.mark.parametrize(
    ("action", "reason", "times"),
    [
        ("CreateLaunchTemplate", "CreateLaunchTemplateAuthCheckFailed", 1),
        ("CreateFleet", "CreateFleetAuthCheckFailed", 1),
        ("RunInstances", "RunInstancesAuthCheckFailed", len(ZONES)),
    ],
)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOUNDARY, "A permissions boundary denies the action"),
        (SCP, "A service control policy denies the action"),
        ("no", "AWS does not authorize the action"),
    ],
)
def test_185_a_denied_call_is_reported_with_the_policy(
    aws: MotoAws, real: MotoAccount, action: str, reason: str, times: int, text: str, words: str
) -> None:
    aws.fail(action, DENIED, f"{text} Encoded authorization failure message: x1y2", status=403, times=times)
    problem = real.cloud.dry_run(wanted(real))
    assert problem is not None
    assert problem[0] == reason
    assert words in problem[1]
    assert text in problem[1]
    assert "x1y2" not in problem[1], "it would be another message each time"
    assert templates(aws) == set()
    assert real.cloud.dry_run(wanted(real)) is None


def test_185_a_template_is_made_the_others_only_tried_and_nothing_is_left(aws: MotoAws, real: MotoAccount) -> None:
    tried = wanted(real)
    aws.clear_calls()
    assert real.cloud.dry_run(tried) is None
    assert [call.action for call in aws.calls()] == [
        "CreateLaunchTemplate",
        "CreateFleet",
        "RunInstances",
        "DeleteLaunchTemplate",
    ]
    assert templates(aws) == set()


@pytest.mark.parametrize(
    ("action", "code", "status", "error"),
    [
        ("CreateLaunchTemplate", "RequestLimitExceeded", 503, Throttled),
        ("CreateFleet", "InternalError", 500, Unavailable),
        ("CreateFleet", "ExpiredToken", 403, Forbidden),
    ],
)
def test_185_what_says_nothing_about_the_class_is_an_error(
    aws: MotoAws, real: MotoAccount, action: str, code: str, status: int, error: type[Exception]
) -> None:
    tried = wanted(real)
    aws.fail(action, code, status=status, times=BOTH if action == "CreateLaunchTemplate" else 1)
    with pytest.raises(error):
        real.cloud.dry_run(tried)
    assert templates(aws) == set()


@pytest.mark.parametrize(("code", "status"), [("InternalError", 500), (DENIED, 403)])
def test_186_one_subnet_that_will_do_is_enough(aws: MotoAws, real: MotoAccount, code: str, status: int) -> None:
    tried = wanted(real)
    aws.fail("RunInstances", code, status=status)
    aws.clear_calls()
    assert real.cloud.dry_run(tried) is None
    assert len(aws.calls("RunInstances")) == 2, "without a repeat by the SDK"


def test_186_of_several_that_will_not_do_the_first_counts(aws: MotoAws, real: MotoAccount) -> None:
    tried = wanted(real)
    aws.fail("RunInstances", DENIED, status=403)
    aws.fail("RunInstances", "InternalError", status=500, times=len(ZONES) - 1)
    problem = real.cloud.dry_run(tried)
    assert problem is not None
    assert problem[0] == "RunInstancesAuthCheckFailed"
    aws.fail("RunInstances", "InternalError", status=500)
    aws.fail("RunInstances", DENIED, status=403, times=len(ZONES) - 1)
    with pytest.raises(Unavailable):
        real.cloud.dry_run(tried)


def test_187_a_profile_that_ec2_does_not_see_is_reported(aws: MotoAws, real: MotoAccount) -> None:
    usual = wanted(real)
    without = replace(usual, templates=(replace(usual.templates[0], instance_profile="nobody"),))
    problem = real.cloud.dry_run(without)
    assert problem is not None
    assert problem[0] == validation.PROFILE_NOT_FOUND
    assert "nobody" in problem[1]


@pytest.mark.refused("user_data")
def test_191_user_data_that_is_too_large_is_reported_and_other_malformed_parts_are_another_error(
    aws: MotoAws, real: MotoAccount
) -> None:
    usual = wanted(real)
    large = replace(usual, templates=(replace(usual.templates[0], user_data="x" * 16385),))
    problem = real.cloud.dry_run(large)
    assert problem is not None
    assert problem[0] == validation.USER_DATA_TOO_LARGE
    fits = replace(usual, templates=(replace(usual.templates[0], user_data="x" * 16384),))
    assert real.cloud.dry_run(fits) is None
    aws.fail("CreateLaunchTemplate", "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data")
    problem = real.cloud.dry_run(usual)
    assert problem is not None
    assert problem[0] == validation.UNEXPECTED
