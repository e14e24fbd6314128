"""What a change of an object means for what the controller waits for."""

from __future__ import annotations

from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Pod
from kerf_api.v1.conditions import READY, TRUE, get
from kerf_api.v1.nodepool import NodePool


def grace_of(value: Any) -> int:
    """Seconds that the API server gives an object to end by default."""
    if not isinstance(value, Pod):
        return 0
    seconds = value.spec.termination_grace_period_seconds
    return 30 if seconds is None else seconds


def makes_room(kind: Kind, old: Any | None, new: Any | None) -> bool:
    """Whether pods may find a place now that they did not before: a NodePool became usable, a NodeOverlay another, a
    claim of devices or a class of them was made."""
    if kind is kinds.NODE_POOL:
        return new is not None and _usable(new) is not None and _usable(new) != _usable(old)
    if kind in (kinds.RESOURCE_CLAIM, kinds.DEVICE_CLASS):
        return old is None
    return kind is kinds.NODE_OVERLAY and (old is None or new is None or old.spec != new.spec)


def _usable(pool: NodePool | None) -> int | None:
    """The generation at which nodes can be made from a pool; None while they cannot."""
    ready = get(pool.status.conditions, READY) if pool is not None else None
    return pool.metadata.generation if pool is not None and ready is not None and ready.status == TRUE else None
