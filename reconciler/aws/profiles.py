"""Instance profiles: the IAM objects through which an instance gets its node class's role.

Profiles of a node class live under a path of its own, `/karpenter/<region>/<cluster>/<class UID>/`, so they are found
again by asking IAM for that path, whatever was or was not written to the class's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.aws.clients import pages, tag_list
from reconciler.aws.errors import translated
from reconciler.ports import AlreadyExists, AlreadyGone, Invalid


def profile_path(region: str, cluster_name: str, class_uid: str) -> str:
    """Where the profiles of one node class live."""
    return f"/karpenter/{region}/{cluster_name}/{class_uid}/"


def role_name(role: str) -> str:
    """A role is attached by its name, without the path that a user may have written before it."""
    return role.rsplit("/", 1)[-1]


def find(iam: Any, path: str, role: str, preferred: str) -> str:
    """The profile under `path` that carries the role, `preferred` if it is one of them; empty when there is none."""
    names = [row["InstanceProfileName"] for row in _list(iam, path) if _roles(row) == [role_name(role)]]
    return preferred if preferred in names else min(names, default="")


def ensure(iam: Any, name: str, role: str, path: str, tags: Mapping[str, str]) -> None:
    """Make the profile and attach the role, taking off another one first. Raises Invalid when IAM has no such role."""
    try:
        with translated("iam:CreateInstanceProfile"):
            iam.create_instance_profile(InstanceProfileName=name, Path=path, Tags=tag_list(tags))
        attached = []
    except AlreadyExists:
        with translated("iam:GetInstanceProfile"):
            attached = _roles(iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"])
    wanted = role_name(role)
    if attached == [wanted]:
        return
    for other in attached:
        _detach(iam, name, other)
    try:
        with translated("iam:AddRoleToInstanceProfile"):
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=wanted)
    except AlreadyGone as error:
        raise Invalid(str(error)) from error


def delete_under(iam: Any, path: str) -> None:
    """Delete every profile under a path, after taking off its roles."""
    for row in _list(iam, path):
        name = row["InstanceProfileName"]
        for role in _roles(row):
            _detach(iam, name, role)
        try:
            with translated("iam:DeleteInstanceProfile"):
                iam.delete_instance_profile(InstanceProfileName=name)
        except AlreadyGone:
            continue


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
