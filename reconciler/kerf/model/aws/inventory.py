"""What the cluster keeps in AWS for its launches besides instances: launch templates and instance profiles.

No event reports that nothing needs them any more, so they are listed from time to time, and what has not been
used for a while and is needed by nothing goes (`kerf.lifecycle.nodeclass.unused`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

TEMPLATE: Final = "launch template"
PROFILE: Final = "instance profile"


@dataclass(frozen=True, slots=True)
class Resource:
    """One of them. `kind` is TEMPLATE or PROFILE; `id` is what it is deleted by, of a profile its name."""

    kind: str
    id: str
    name: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Inventory:
    """All of one kind that this cluster has, the one that was used longest ago first; then by name.

    `used` is by name: when it was made, last named by a launch or a node class, or, when that is not remembered, first
    seen. `deleted` is how many of those that were read last have been deleted since.
    """

    resources: tuple[Resource, ...] = ()
    used: Mapping[str, datetime] = field(default_factory=dict)
    deleted: int = 0
