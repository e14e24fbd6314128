"""How much memory machines really have, learned from the nodes that have joined: the hypervisor keeps less than is
reckoned with before there is one.

The least that was seen of a type with an image counts. It is memory: a new process learns it again from the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from kerf.model.kubernetes.objects import Node
from kerf_api import labels, quantity
from kerf_api.v1.nodeclaim import NodeClaim

#: So long after it was last seen it is forgotten.
KEPT = timedelta(days=60)
#: Machines of one type differ by some KiB, which no plan needs.
GRAIN_BYTES = 16 * 2**20

#: Instance type and image.
Machine = tuple[str, str]


class LearnedMemory:
    """One thread uses it."""

    def __init__(self) -> None:
        self._least: dict[Machine, tuple[int, datetime]] = {}

    def seen(self, claim: NodeClaim, node: Node, now: datetime) -> None:
        """Take in what the node of a claim says of itself, once it is registered."""
        machine = (node.metadata.labels.get(labels.INSTANCE_TYPE, ""), claim.status.image_id)
        if not (claim.managed and node.registered and all(machine)):
            return
        memory, known = _memory_bytes(node), self._least.get(machine)
        if memory and (known is None or memory <= known[0]):
            self._least[machine] = (memory, now)

    def table(self, now: datetime) -> Mapping[Machine, int]:
        """Bytes by type and image."""
        self._least = {machine: row for machine, row in self._least.items() if now - row[1] < KEPT}
        return {machine: memory for machine, (memory, _) in self._least.items()}


def _memory_bytes(node: Node) -> int:
    """In whole grains; 0 when the node does not say, or the value cannot be read."""
    try:
        return int(quantity.parse(node.status.capacity.get("memory", 0))) // GRAIN_BYTES * GRAIN_BYTES
    except ValueError:
        return 0
