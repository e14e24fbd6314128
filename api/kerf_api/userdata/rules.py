"""Whether a class's user data can be merged with what makes its nodes join, whatever node it is for.

The linter reports it in Git, the controller in a condition of the class; both ask here. Source: AWS provider reference
§2.4 and §5.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from . import bottlerocket, cloud_init

#: EC2's limit on user data, in bytes before base64.
LIMIT_BYTES: Final = 16384
TOO_LARGE, INVALID = "UserDataSizeLimitExceeded", "InvalidUserData"
#: Families whose user data is the user's own alone.
AS_IT_IS: Final = frozenset({"Custom"})


@dataclass(frozen=True, slots=True)
class Fault:
    """The condition's reason, and what is wrong."""

    reason: str
    words: str


def is_windows(family: str) -> bool:
    """Whether a family takes PowerShell."""
    return family.startswith("Windows")


def fault(family: str, text: str, *, raid0: bool = False) -> Fault | None:
    """What is wrong with a user's part for nodes of an AMI family; None when it will do.

    `raid0` says that the instance store is to be mounted, for which Bottlerocket needs a table more.
    """
    size = len(text.encode())
    if size > LIMIT_BYTES:
        return Fault(TOO_LARGE, f"userData has {size} bytes; EC2 allows {LIMIT_BYTES}")
    if family in AS_IT_IS or is_windows(family):
        return None
    try:
        if family == "Bottlerocket":
            found = bottlerocket.settings(text)
            if raid0:
                bottlerocket.table(found["settings"], "bootstrap-commands")
        else:
            cloud_init.parts(text, nodeadm=family == "AL2023")
    except ValueError as error:
        return Fault(INVALID, str(error))
    return None
