"""How metrics spell what Kubernetes and Karpenter write in other ways."""

from __future__ import annotations

import re
from functools import cache

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake_case(text: str) -> str:
    """`SpotInterrupted` as metrics spell it: `spot_interrupted`. NodeClass and NodeClaim are one word there."""
    whole = text.replace("NodeClass", "Nodeclass").replace("NodeClaim", "Nodeclaim")
    return _WORD.sub("_", whole).lower()


def camel_case(text: str) -> str:
    """`instance_status` as EC2 and Karpenter's metric of it spell it: `InstanceStatus`."""
    return "".join(word.capitalize() for word in text.split("_"))


@cache
def resource_type(resource: str) -> str:
    """`ephemeral-storage` as metrics spell it: `ephemeral_storage`."""
    return snake_case(resource.replace("-", "_"))


def units(resource: str) -> int:
    """By what an amount is divided: CPU is given in cores."""
    return 1000 if resource == "cpu" else 1
