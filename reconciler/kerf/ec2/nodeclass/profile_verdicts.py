"""The condition InstanceProfileReady of an EC2NodeClass: whether its instances get an IAM role."""

from __future__ import annotations

from typing import Final

from kerf.model.aws.cloud import ClassFacts
from kerf_api.v1.conditions import AWAITING, FALSE, TRUE, UNKNOWN
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Condition

CONDITION: Final = "InstanceProfileReady"

#: Reasons of the condition that only a change of the EC2NodeClass, of IAM or of a policy removes.
PROFILE_NOT_FOUND: Final = "InstanceProfileNotFound"
PROFILE_WITHOUT_ROLE: Final = "InstanceProfileWithoutRole"
ROLE_NOT_FOUND: Final = "RoleNotFound"
ISOLATED_VPC: Final = "IsolatedVPC"
ACCESS_DENIED: Final = "InstanceProfileAccessDenied"
CREATION_FAILED: Final = "InstanceProfileCreationFailed"
#: IAM did not answer, or asked for fewer requests.
UNAVAILABLE: Final = "IAMUnavailable"

_WRONG: Final = frozenset(
    {PROFILE_NOT_FOUND, PROFILE_WITHOUT_ROLE, ROLE_NOT_FOUND, ISOLATED_VPC, ACCESS_DENIED, CREATION_FAILED}
)
#: By the name of the port's error: its module is above this one.
_BY_ERROR: Final = {"RoleNotFound": ROLE_NOT_FOUND, "Forbidden": ACCESS_DENIED, "Invalid": CREATION_FAILED}


def isolated(node_class: EC2NodeClass) -> tuple[str, str]:
    """Return reason and message for a class with `spec.role` in an isolated VPC."""
    return (
        ISOLATED_VPC,
        f"the instance profile of role {node_class.spec.role} cannot be created: ISOLATED_VPC is set, so IAM is not "
        "called; replace spec.role by spec.instanceProfile",
    )


def failed(error: Exception) -> tuple[str, str]:
    """Return reason and message for an error of the port; its type says which reason fits."""
    return _BY_ERROR.get(type(error).__name__, UNAVAILABLE), str(error)


def of(
    node_class: EC2NodeClass,
    facts: ClassFacts,
    *,
    profile: str,
    planned: str,
    isolated_vpc: bool,
    before: Condition | None,
) -> tuple[str, str, str] | None:
    """Return status, reason and message of the condition; None to keep the condition as it is.

    Args:
        profile: the instance profile of the new status.
        isolated_vpc: whether Kerf must not call IAM.
        planned: the name of the profile that Kerf creates for `spec.role`; empty while the cluster is not known.
        before: the condition as stored.
    """
    found = facts.problems.get(CONDITION)
    if found is not None and found[0] in _WRONG:
        return (FALSE, *found)
    if found is not None:
        return (UNKNOWN, *found) if _is_open(node_class, before) else None
    if profile:
        return (TRUE, CONDITION, "")
    if isolated_vpc:
        return (FALSE, *isolated(node_class))
    attempt = facts.profile_attempt
    if attempt is not None and attempt.profile == planned:
        return (FALSE if attempt.reason in _WRONG else UNKNOWN, attempt.reason, attempt.message)
    return (UNKNOWN, AWAITING, "the instance profile is being created")


def _is_open(node_class: EC2NodeClass, before: Condition | None) -> bool:
    """Whether no answer of IAM counts for the class as it is now."""
    if before is None or before.status == UNKNOWN:
        return True
    return before.observed_generation != node_class.metadata.generation
