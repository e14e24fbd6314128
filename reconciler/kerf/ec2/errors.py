"""What EC2's launch errors mean: which only say "nothing there now", and how the others read in a condition.

Source: AWS provider reference §2.8 and §11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from kerf.model.aws.cloud import FleetError, FleetRequest
from kerf.model.aws.instance_type import OfferingKey, in_group
from kerf_api.labels import RESERVED

#: For so long Kerf requests no offering that EC2 has refused.
OUT_OF_STOCK: Final = timedelta(minutes=3)
#: Refused offerings are requested again after `OUT_OF_STOCK`, so a launch that still fails is younger than this.
REFUSED_WITHIN: Final = OUT_OF_STOCK + timedelta(minutes=1)
#: The subnet has no address left: nothing at all can be launched there.
SUBNET_CODE = "InsufficientFreeAddressesInSubnet"
#: Nothing to be had of this offering now; another one, or later, may do.
CAPACITY_CODES = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        SUBNET_CODE,
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    }
)
#: Of these, what the account lacks: no other moment helps, a person has to change something. Each with the fix.
LACKS_OF_ACCOUNT = {
    "VcpuLimitExceeded": "request a higher quota (Service Quotas, EC2); kerf preflight shows its use",
    "MaxSpotInstanceCountExceeded": "request a higher quota (Service Quotas, EC2); kerf preflight shows its use",
    "MaxFleetCountExceeded": "request a higher quota (Service Quotas, EC2)",
    SUBNET_CODE: "let spec.subnetSelectorTerms select subnets with free addresses, or free some",
}
#: The end of a text that is longer than a condition may have.
CUT: Final = "..."
#: Spot cannot be used at all by this account.
SPOT_ROLE_CODE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

#: What EC2 says when a placement group of strategy spread has as many machines in a zone as it may.
_SPREAD_LIMIT = "limit of instances in this spread placement group"

#: Of a denial: text to look for, its words; the first that is found counts. EC2 often names no cause.
_DENIALS = (
    ("with an explicit deny in a permissions boundary", "A permissions boundary denies the action"),
    ("with an explicit deny in a service control policy", "A service control policy denies the action"),
    ("with an explicit deny in a resource control policy", "A resource control policy denies the action"),
    ("with an explicit deny in an identity-based policy", "An identity-based policy denies the action"),
    ("with an explicit deny in a resource-based policy", "A resource-based policy denies the action"),
    ("with an explicit deny in a session policy", "A session policy denies the action"),
    ("with an explicit deny in a VPC endpoint policy", "A VPC endpoint policy denies the action"),
    ("no permissions boundary allows", "No permissions boundary allows the action"),
    ("no service control policy allows", "No service control policy allows the action"),
    ("no session policy allows", "No session policy allows the action"),
    ("no VPC endpoint policy allows", "No VPC endpoint policy allows the action"),
    ("no identity-based policy allows", "No identity-based policy allows the action"),
)
#: The reason of a launch that a policy denies.
UNAUTHORIZED: Final = "Unauthorized"
_AUTHORIZATION = ("UnauthorizedOperation", "AccessDenied", "AuthFailure")

#: Text to look for, reason, message; the first that is found counts.
_KNOWN = (
    (
        "iamInstanceProfile.name is invalid",
        "InstanceProfileNameInvalid",
        "The instance profile's name is invalid or it does not exist",
    ),
    ("InvalidLaunchTemplateId.NotFound", "LaunchTemplateNotFound", "The launch template does not exist"),
    ("User data is limited to", "UserDataSizeLimitExceeded", "User data is larger than the 16384 bytes EC2 allows"),
    ("InvalidAMIID.Malformed", "InvalidAMIID", "The AMI ID is malformed"),
    ("InvalidAMIID.NotFound", "AMINotFound", "The AMI does not exist"),
    ("RequestLimitExceeded", "RequestLimitExceeded", "Too many EC2 requests"),
    ("InternalError", "InternalError", "EC2 had an internal error"),
    ("not eligible for Free Tier", "FreeTierIneligible", "The instance type is not eligible for the free tier"),
    ("MaxFleetCountExceeded", "FleetQuotaExceeded", "The account's fleet quota is used up"),
    ("PendingVerification", "AccountPendingVerification", "AWS is still verifying the account"),
    ("MaxSpotInstanceCountExceeded", "SpotQuotaExceeded", "The account's spot instance quota is used up"),
    ("VcpuLimitExceeded", "VCPULimitExceeded", "The account's vCPU quota is used up"),
    (SUBNET_CODE, SUBNET_CODE, "The subnet has not enough free IP addresses"),
)


def lacks_capacity(code: str, message: str) -> bool:
    """Whether EC2 only says that there is nothing to be had of this offering now."""
    return code in CAPACITY_CODES or code == SPOT_ROLE_CODE or _SPREAD_LIMIT in message


def closed(request: FleetRequest, error: FleetError) -> Iterable[OfferingKey]:
    """The offerings of which an error says that they cannot be had now.

    Of a placement group it says nothing outside the group; a group that may have no more machines in a zone has none
    of any type there. A reservation that is full is full for everybody.
    """
    key, group = request.sold(error.instance_type, error.zone), request.placement_group
    if group and _SPREAD_LIMIT in error.message:
        kinds = sorted({o.instance_type for o in request.overrides if o.zone == error.zone})
        return [in_group(request.sold(kind, error.zone), group) for kind in kinds]
    return [key if request.capacity_type == RESERVED else in_group(key, group)]


def is_capacity(errors: Sequence[FleetError]) -> bool:
    """Whether all errors only say that there is nothing to be had now (false when there is no error at all)."""
    return bool(errors) and all(e.capacity or lacks_capacity(e.code, e.message) for e in errors)


def launch_condition(errors: Sequence[FleetError]) -> tuple[str, str]:
    """Reason and message for a claim's Launched condition after a fleet call that gave nothing."""
    text = "; ".join(sorted({f"{error.code}: {error.message}" for error in errors}))
    reason, gist = classify(text)
    return reason, f"{gist}: {text}" if text else gist


def said(text: str) -> Iterator[FleetError]:
    """The errors of EC2 in a text of `launch_condition`; none in another text. One that a condition has cut is left out
    after a whole one of its code."""
    code, message, whole = "", "", set[str]()
    for part in text.partition(": ")[2].split("; "):
        first, colon, rest = part.partition(": ")
        if colon and first.isascii() and first.replace(".", "").isalnum() and first[:1].isupper():
            if code:
                yield FleetError(code, message)
                whole.add(code)
            code, message = first, rest
        elif code:
            message = f"{message}; {part}"
    if code and not (code in whole and message.endswith(CUT)):
        yield FleetError(code, message)


def classify(text: str) -> tuple[str, str]:
    """Reason and its words for an error text of EC2."""
    if SPOT_ROLE_CODE in text:
        return "SpotSLRCreationFailed", "No permission to create the service-linked role for spot instances"
    if any(word in text for word in _AUTHORIZATION):
        return _unauthorized(text)
    if "InvalidParameter" in text and "belong to different networks" in text:
        return "SecurityGroupSubnetVPCMismatch", "Security groups and subnets must be of the same VPC"
    found = ((reason, gist) for words, reason, gist in _KNOWN if words in text)
    return next(found, ("LaunchFailed", "Instance launch failed"))


def _unauthorized(text: str) -> tuple[str, str]:
    if "Not authorized for images" in text:
        return "AMIAuthorizationFailure", "The account may not use the AMI"
    found = (gist for words, gist in _DENIALS if words in text)
    return UNAUTHORIZED, next(found, "AWS does not authorize the action")
