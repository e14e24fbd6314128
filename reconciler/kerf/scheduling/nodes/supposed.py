"""Planned nodes as if they stood already: for those who ask where pods would be placed once these have joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kerf.model.kubernetes.objects import Node, NodeSpec, NodeStatus
from kerf.model.snapshot import Snapshot, StateNode
from kerf.scheduling.answers.solution import NewNode
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta


def planned_key(number: int) -> str:
    return f"planned-{number}"


def standing(snapshot: Snapshot, new: Iterable[NewNode], first: int = 0) -> Iterator[tuple[str, StateNode]]:
    """A key and a node, initialised and empty, for each planned one: of its cheapest type, zone and market. Keys have
    numbers from the `first` on."""
    for number, one in enumerate(new, first):
        pool = snapshot.node_pools[one.pool]
        type_ = next(t for t in snapshot.types_for(pool.name, pool.class_name) if t.name == one.instance_types[0])
        name, known = planned_key(number), one.requirements & type_.requirements
        single = {key: row for key, row in known.items() if not row.complement and len(row.values) == 1}
        own = {key: min(row.values) for key, row in single.items()}
        own |= {labels.ZONE: one.zones[0], labels.CAPACITY_TYPE: one.capacity_types[0], labels.NODEPOOL: pool.name}
        own |= {labels.INSTANCE_TYPE: type_.name, labels.HOSTNAME: name}
        own |= {labels.REGISTERED: "true", labels.INITIALIZED: "true", **pool.spec.template.metadata.labels}
        room = type_.holding(one.requests).allocatable.texts()
        meta = ObjectMeta(name=name, uid=name, labels=own)
        spec = NodeSpec(taints=pool.spec.template.spec.taints)
        yield name, StateNode(None, Node(metadata=meta, spec=spec, status=NodeStatus(capacity=room, allocatable=room)))
