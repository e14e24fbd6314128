"""Which conditions of a node mean that it is unhealthy, and for how long that is tolerated.

`Ready` is the kubelet's; the others come from the EKS node monitoring agent, where that runs. Source: AWS reference,
repair policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """A node whose `condition` has had this `status` for as long as `toleration` is replaced."""

    condition: str
    status: str
    toleration: timedelta


_LONG, _SHORT = timedelta(minutes=30), timedelta(minutes=10)

REPAIR_POLICIES: Final = (
    RepairPolicy("Ready", "False", _LONG),
    RepairPolicy("Ready", "Unknown", _LONG),
    RepairPolicy("AcceleratedHardwareReady", "False", _SHORT),
    RepairPolicy("StorageReady", "False", _LONG),
    RepairPolicy("NetworkingReady", "False", _LONG),
    RepairPolicy("KernelReady", "False", _LONG),
    RepairPolicy("ContainerRuntimeReady", "False", _LONG),
)
