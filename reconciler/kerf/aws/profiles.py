"""Instance profiles: the IAM objects through which an instance gets its node class's role.

Profiles of a node class live under a path of its own, `/karpenter/<region>/<cluster>/<class UID>/`, so they are found
again by asking IAM for that path, whatever was or was not written to the class's status.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from kerf.aws.requests.answers import Answers, just_under
from kerf.aws.requests.clients import pages, tag_list
from kerf.aws.requests.errors import translated
from kerf.ec2.nodeclass.nodeclass import profiles_path
from kerf.ec2.nodeclass.profile_verdicts import PROFILE_NOT_FOUND, PROFILE_WITHOUT_ROLE
from kerf.model.aws.inventory import PROFILE, Resource
from kerf.ports import (
    AlreadyExists,
    AlreadyGone,
    Forbidden,
    Invalid,
    PortError,
    RoleNotFound,
    Throttled,
    Unavailable,
)
from kerf_api import bounds
from kerf_api.v1 import hashes

#: A role that IAM does not know is asked for again after this long.
UNKNOWN_SECONDS: Final = 60.0
#: How long a profile that was found is taken to be there.
FOUND_SECONDS: Final = just_under(timedelta(minutes=15))
_FOUND: Final = "list_instance_profiles"
#: Answers about the instance profiles that classes name themselves. A kept answer is never empty.
_NAMED: Final = "get_instance_profile"
_UNCHECKED: Final = ("?",)
_NO_ROLE: Final = ("",)
#: EC2's errors for a launch with a profile that does not exist, and with one that has lost its role.
_UNFIT: Final = ("Invalid IAM Instance Profile name", "has no associated IAM Roles")
#: Names that IAM takes.
_NAME: Final = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)


def profile_path(region: str, cluster_name: str, class_uid: str) -> str:
    """Where the profiles of one node class live."""
    return f"{profiles_path(region, cluster_name)}{class_uid}/"


def role_name(role: str) -> str:
    """A role is attached by its name, without the path that a user may have written before it."""
    return role.rsplit("/", 1)[-1]


def find(iam: Any, path: str, role: str, preferred: str, answers: Answers) -> str:
    """The profile under `path` that carries the role, `preferred` if it is one of them; empty when there is none."""
    wanted = role_name(role)

    def names() -> list[str]:
        return [row["InstanceProfileName"] for row in _list(iam, path) if _roles(row) == [wanted]]

    found = answers.ask((_FOUND, path, wanted), names, FOUND_SECONDS)
    return preferred if preferred in found else min(found, default="")


def unfit(error: str) -> bool:
    """Return whether EC2 refuses a launch because of the instance profile, which IAM may have had a while ago."""
    return any(text in error for text in _UNFIT)


def forget(answers: Answers) -> None:
    """Profiles may not be what they were: IAM is asked again."""
    answers.forget(lambda key: key[0] in (_FOUND, _NAMED))


def named_problem(iam: Any, name: str, answers: Answers) -> tuple[str, str] | None:
    """Return reason and message if no instance can launch with the profile of this name; None otherwise.

    None also while IAM refuses the question or is out of reach: a class that names its own profile needs neither the
    permission nor an endpoint of IAM. Both are remembered for FOUND_SECONDS, like a good answer.
    """
    if not _NAME.fullmatch(name):
        text = "IAM allows 1 to 128 letters, digits and +=,.@_-; write the name of the profile, not its ARN"
        return (PROFILE_NOT_FOUND, f"instance profile {name!r}: {text}")
    try:
        roles = answers.ask((_NAMED, name), lambda: _roles_of_named(iam, name), FOUND_SECONDS)
    except (AlreadyGone, Invalid) as error:
        return (PROFILE_NOT_FOUND, str(error))
    except Throttled:
        return None
    if roles == _NO_ROLE:
        answers.forget((_NAMED, name).__eq__)
        return (PROFILE_WITHOUT_ROLE, f"instance profile {name}: it has no role; add a role to it")
    return None


def _roles_of_named(iam: Any, name: str) -> tuple[str, ...]:
    try:
        with translated("iam:GetInstanceProfile"):
            row = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    except (Forbidden, Unavailable):
        return _UNCHECKED
    return tuple(_roles(row)) or _NO_ROLE


def role_problem(iam: Any, role: str) -> PortError | None:
    """Return the error that IAM answers to a question for a role; None when the role exists."""
    try:
        with translated("iam:GetRole"):
            iam.get_role(RoleName=role_name(role))
    except PortError as error:
        return error
    return None


@contextmanager
def changing(answers: Answers) -> Iterator[None]:
    """While one is made or deleted, and from then on, nothing counts that was known before."""
    try:
        yield
    finally:
        forget(answers)


def all_under(iam: Any, path: str) -> tuple[Resource, ...]:
    """Every profile under a path, by name."""
    rows = ((row["InstanceProfileName"], bounds.instant(row["CreateDate"])) for row in _list(iam, path))
    return tuple(Resource(PROFILE, name, name, created) for name, created in sorted(rows))


class Maker:
    """Makes profiles. Remembers which roles IAM did not know a moment ago. `elapsed` counts seconds from anywhere."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        #: By role: until when IAM is not asked again, and the answer of IAM.
        self._unknown: dict[str, tuple[float, str]] = {}

    def ensure(self, iam: Any, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
        """Make the profile and attach the role, taking off another one first; one without its role is not left behind.

        Raises RoleNotFound when IAM has no such role, with the same answer for UNKNOWN_SECONDS without asking again.
        """
        wanted = role_name(role)
        until, answer = self._unknown.get(wanted, (0.0, ""))
        if self._elapsed() < until:
            raise RoleNotFound(answer)
        try:
            _ensure(iam, name, wanted, path, tags)
        except RoleNotFound as error:
            self._unknown[wanted] = self._elapsed() + UNKNOWN_SECONDS, str(error)
            raise


def _ensure(iam: Any, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
    try:
        with translated("iam:CreateInstanceProfile"):
            iam.create_instance_profile(InstanceProfileName=name, Path=path, Tags=tag_list(tags))
        attached, new = list[str](), True
    except AlreadyExists:
        with translated("iam:GetInstanceProfile"):
            attached, new = _roles(iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]), False
    if attached == [role]:
        return
    for other in attached:
        _detach(iam, name, other)
    try:
        _attach(iam, name, role)
    except PortError:
        if new:
            with suppress(PortError):
                _delete(iam, {"InstanceProfileName": name})
        raise


def _attach(iam: Any, name: str, role: str) -> None:
    try:
        with translated("iam:AddRoleToInstanceProfile"):
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
    except AlreadyGone as error:
        kind = RoleNotFound if "role" in str(error).partition("NoSuchEntity")[2].lower() else Invalid
        raise kind(str(error)) from error


def delete_under(iam: Any, path: str) -> None:
    """Delete every profile under a path, after taking off its roles."""
    for row in _list(iam, path):
        _delete(iam, row)


def delete_named(iam: Any, name: str) -> None:
    """Delete one profile, after taking off its roles, if there is one and IAM can have one of this name."""
    if not _NAME.fullmatch(name):
        return
    try:
        with translated("iam:GetInstanceProfile"):
            row = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    except AlreadyGone:
        return
    _delete(iam, row)


def legacy_name(region: str, cluster_name: str, class_name: str) -> str:
    """What the profile of a class was called before profiles had paths of their own."""
    return f"{cluster_name}_{hashes.text_hash(region + class_name)}"


def _delete(iam: Any, row: Mapping[str, Any]) -> None:
    name = row["InstanceProfileName"]
    for role in _roles(row):
        _detach(iam, name, role)
    try:
        with translated("iam:DeleteInstanceProfile"):
            iam.delete_instance_profile(InstanceProfileName=name)
    except AlreadyGone:
        return


def _detach(iam: Any, name: str, role: str) -> None:
    try:
        with translated("iam:RemoveRoleFromInstanceProfile"):
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
    except AlreadyGone:
        return


def _list(iam: Any, path: str) -> list[Any]:
    with translated("iam:ListInstanceProfiles"):
        return pages(iam, "list_instance_profiles", "InstanceProfiles", PathPrefix=path)


def _roles(row: Mapping[str, Any]) -> list[str]:
    return [role["RoleName"] for role in row.get("Roles", ())]
