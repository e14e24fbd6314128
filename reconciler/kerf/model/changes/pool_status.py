"""Changes of a NodePool's status that no step about one object may rest on: they come with every node.

Steps are asked about each node, and most read its NodePool. If each write of a count, or of how far a roll-out is,
opened all of them, the work of a roll-out would grow with the square of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodepool import NodePool

#: The journal's name for such a change of conditions: the whole plan may be another one, no step is.
PROGRESS: Final = "pool_progress"


def table_of(old: NodePool | None, new: NodePool | None, table: str) -> str | None:
    """The table in which the journal notes a change of a NodePool: its `table`, or PROGRESS; None when only what the
    NodePool has is another number."""
    if old is None or new is None:
        return table
    meta = replace(new.metadata, resource_version=old.metadata.resource_version)
    status = replace(new.status, resources=old.status.resources, nodes=old.status.nodes)
    if (old.metadata, old.spec) != (meta, new.spec):
        return table
    if old.status == status:
        return None
    settled = replace(status, conditions=_settled(status.conditions))
    return PROGRESS if replace(old.status, conditions=_settled(old.status.conditions)) == settled else table


def _settled(rows: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions that steps may read."""
    return tuple(row for row in rows if row.type not in conditions.NODEPOOL_PROGRESS)
