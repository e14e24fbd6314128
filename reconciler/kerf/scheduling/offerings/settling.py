"""NodePools that are about to be ready: they, or their EC2NodeClass, are new or changed, and await their conditions.

Until then any advice would be about a NodePool that may serve the pods as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.model.snapshot import Snapshot
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, READY, TRUE, UNKNOWN
from kerf_api.v1.meta import Condition, ObjectMeta
from kerf_api.v1.nodepool import NodePool

#: The code of refusals of pods that may have a place when a NodePool has settled.
SETTLING: Final = "NodePoolSettling"
#: For so long pods of which none has a place wait without a warning.
PATIENCE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Settling:
    """Why a NodePool is not settled; `lately` while that began less than PATIENCE ago."""

    text: str
    lately: bool


def settling(snapshot: Snapshot) -> dict[str, Settling]:
    """The NodePools that pods may get nodes from once they are settled, by name."""
    pools = (pool for _, pool in sorted(snapshot.node_pools.items()) if not (pool.static or pool.metadata.deleting))
    return {pool.name: found for pool in pools if pool.managed and (found := _of(snapshot, pool)) is not None}


def _of(snapshot: Snapshot, pool: NodePool) -> Settling | None:
    node_class, now = snapshot.node_classes.get(pool.class_name), snapshot.now
    own = conditions.get(pool.status.conditions, READY)
    if _open(own, pool.metadata):
        return Settling("its conditions are not known yet", _lately(own, pool.metadata, now))
    if node_class is None:
        created = pool.metadata.creation_timestamp
        young = created is not None and now - created < PATIENCE
        return Settling(f"EC2NodeClass {pool.class_name} is not there yet", lately=True) if young else None
    if node_class.metadata.deleting or node_class.metadata.unreadable:
        return None
    ready = conditions.get(node_class.status.conditions, READY)
    if _open(ready, node_class.metadata):
        text = f"the conditions of EC2NodeClass {node_class.name} are not known yet"
        causes: dict[str, str] = {}  # one cause, such as a read of AWS that fails, keeps several conditions unknown
        for one in node_class.status.conditions:
            if one.type != READY and one.status == UNKNOWN and one.message:
                causes.setdefault(one.message, one.type)
        reasons = "; ".join(f"{type_}: {message}" for message, type_ in causes.items())
        return Settling(f"{text}: {reasons}" if reasons else text, _lately(ready, node_class.metadata, now))
    followed = conditions.get(pool.status.conditions, "NodeClassReady")
    if followed is not None and followed.status == FALSE and ready is not None and ready.status == TRUE:
        return Settling(f"EC2NodeClass {node_class.name} has just become ready", lately=True)
    return None


def _open(ready: Condition | None, meta: ObjectMeta) -> bool:
    if ready is None or ready.status == UNKNOWN:
        return True
    unnamed = ready.status == TRUE and not ready.observed_generation  # others may write no generation
    return ready.observed_generation != meta.generation and not unnamed


def _lately(ready: Condition | None, meta: ObjectMeta, now: datetime) -> bool:
    """A condition of an earlier generation is followed by another one within a reconcile."""
    if ready is None or ready.observed_generation != meta.generation:
        since = meta.creation_timestamp if ready is None else None
    else:
        since = ready.last_transition_time
    return since is None or now - since < PATIENCE
