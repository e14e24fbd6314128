"""How EC2's launch errors are read."""

from __future__ import annotations

import pytest

from kerf.ec2.errors import CAPACITY_CODES, is_capacity, launch_condition
from kerf.model.aws.cloud import FleetError

SPOT_ROLE = FleetError("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no")
DENIED = "You are not authorized to perform this operation"


@pytest.mark.parametrize("code", sorted(CAPACITY_CODES))
def test_capacity_codes(code: str) -> None:
    assert is_capacity([FleetError(code, "x")])
    assert is_capacity([FleetError(code, "x"), SPOT_ROLE])
    assert not is_capacity([FleetError(code, "x"), FleetError("RequestLimitExceeded", "x")])


def test_no_error_is_no_lack_of_capacity() -> None:
    assert not is_capacity([])
    assert is_capacity([FleetError("SomethingNew", "x", capacity=True)])


@pytest.mark.parametrize(
    ("code", "text", "reason", "words"),
    [
        (SPOT_ROLE.code, "x", "SpotSLRCreationFailed", "service-linked role"),
        ("UnauthorizedOperation", DENIED, "Unauthorized", "AWS does not authorize the action"),
        (
            "UnauthorizedOperation",
            f"{DENIED} because no identity-based policy allows the ec2:CreateFleet action",
            "Unauthorized",
            "No identity-based policy allows the action",
        ),
        (
            "UnauthorizedOperation",
            f"{DENIED} with an explicit deny in an identity-based policy",
            "Unauthorized",
            "An identity-based policy denies the action",
        ),
        (
            "UnauthorizedOperation",
            f"{DENIED} with an explicit deny in a permissions boundary",
            "Unauthorized",
            "permissions boundary",
        ),
        (
            "UnauthorizedOperation",
            f"{DENIED} with an explicit deny in a service control policy",
            "Unauthorized",
            "service control policy",
        ),
        ("AuthFailure", "Not authorized for images: [ami-1]", "AMIAuthorizationFailure", "AMI"),
        (
            "InvalidParameter",
            "Security group sg-1 and subnet subnet-1 belong to different networks.",
            "SecurityGroupSubnetVPCMismatch",
            "same VPC",
        ),
        (
            "InvalidParameterValue",
            "Value (x) for parameter iamInstanceProfile.name is invalid.",
            "InstanceProfileNameInvalid",
            "",
        ),
        ("InvalidLaunchTemplateId.NotFound", "x", "LaunchTemplateNotFound", ""),
        ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded", ""),
        ("InvalidAMIID.Malformed", "x", "InvalidAMIID", ""),
        ("InvalidAMIID.NotFound", "x", "AMINotFound", ""),
        ("RequestLimitExceeded", "x", "RequestLimitExceeded", ""),
        ("InternalError", "x", "InternalError", ""),
        ("InvalidParameterCombination", "The type is not eligible for Free Tier", "FreeTierIneligible", ""),
        ("MaxFleetCountExceeded", "x", "FleetQuotaExceeded", ""),
        ("PendingVerification", "x", "AccountPendingVerification", ""),
        ("MaxSpotInstanceCountExceeded", "x", "SpotQuotaExceeded", ""),
        ("VcpuLimitExceeded", "x", "VCPULimitExceeded", ""),
        ("InsufficientFreeAddressesInSubnet", "x", "InsufficientFreeAddressesInSubnet", ""),
        ("SomethingNew", "x", "LaunchFailed", "Instance launch failed"),
    ],
)
def test_reasons(code: str, text: str, reason: str, words: str) -> None:
    found, message = launch_condition([FleetError(code, text)])
    assert found == reason
    assert words in message
    assert f"{code}: {text}" in message


def test_equal_errors_are_told_once_in_a_fixed_order() -> None:
    errors = [FleetError("B", "2", "m5.large"), FleetError("A", "1"), FleetError("B", "2", "c5.large")]
    assert launch_condition(errors) == ("LaunchFailed", "Instance launch failed: A: 1; B: 2")
    assert launch_condition(errors[::-1]) == launch_condition(errors)
    assert launch_condition([]) == ("LaunchFailed", "Instance launch failed")
