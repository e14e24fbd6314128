"""Which of the planned nodes may be ordered although more pods are to come, and what the pods of each are worth.

A node may be when nothing that is still to come can have a say in it but the price: its NodePool has enough of its
limits left, no capacity reservations and enough types for minValues; its pods have no rules about other pods, nor have
others rules about them, and they bring no volumes and no devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kerf.model.aws.instance_type import ACCELERATORS
from kerf.model.kubernetes.objects import Volume
from kerf.pods.topology_constraints import ANTI, TopologyGroup
from kerf.scheduling.improving.bound import values
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.placing.classes import PodClass

#: A NodePool is near its limits when they leave less than so many times what is planned.
LEFT: Final = 4
#: This part of the CPU, of the memory and of the accelerators of a node that is ordered early is in use.
USED: Final = 0.9


def worth(
    templates: Sequence[NodeClaimTemplate],
    packed: Sequence[Packed],
    classes: Iterable[PodClass],
    groups: Iterable[TopologyGroup],
    effort: int,
) -> tuple[int | None, ...]:
    """For each node what its pods are worth, in millionths of a dollar per hour: the price of nodes that need not be
    whole. None for a node that may not be ordered yet, or when that is too much work beside a search of `effort` seats.
    """
    hard, near = _hard(classes, groups), _near_limits(packed)
    free = [done.template.name not in near and _free(done, hard) for done in packed]
    found = values(templates, packed, effort) if any(free) else [None] * len(packed)
    return tuple(int(value) if able and value else None for able, value in zip(free, found, strict=True))


def _hard(classes: Iterable[PodClass], groups: Iterable[TopologyGroup]) -> frozenset[TopologyGroup]:
    """The groups of required constraints: those of the pods of the pass, and anti-affinity of pods there are."""
    own = {constraint.group for cls in classes for constraint in cls.relaxations[-1].constraints}
    return frozenset(own | {g for g in groups if g.kind == ANTI and (g.owners or g.owner_daemons)})


def _near_limits(packed: Iterable[Packed]) -> frozenset[str]:
    """The names of the NodePools whose limits leave too little beside these nodes."""
    planned: dict[NodeClaimTemplate, list[NDArray[np.intp]]] = {}
    for done in packed:
        planned.setdefault(done.template, []).append(done.types)
    return frozenset(template.name for template, types in planned.items() if template.near_limits(types, LEFT))


def _free(done: Packed, hard: Set[TopologyGroup]) -> bool:
    """Whether only the price speaks against ordering the node."""
    template = done.template
    if template.table.reservations:
        return False
    if not _used(done):
        return False
    if template.min_values and template.shortfall(done.types):
        return False
    return all(_plain(stock.item.cls, hard) for stock, _ in done.content)


def _used(done: Packed) -> bool:
    """Whether the pods and DaemonSets use nearly all CPU, memory and accelerators of the cheapest type that the node
    lists.

    What is left of one of them is worth nothing to the pods that are there. Pods to come may need just that.
    """
    table, least = done.template.table, int(done.types[0])
    names, there = table.columns.names, table.types[least].allocatable
    used = dict(zip(names, (done.used + done.template.overhead[least]).tolist(), strict=True))
    full = {name: used.get(name, 0) >= USED * there[name] for name in ("cpu", "memory", *ACCELERATORS)}
    accelerators = [full[name] for name in ACCELERATORS if there[name]]
    # Neuron devices are counted twice, as devices and as cores: a pod asks for either.
    return full["cpu"] and full["memory"] and (not accelerators or any(accelerators))


def _plain(cls: PodClass, hard: Set[TopologyGroup]) -> bool:
    """Whether a place of such a pod means nothing to other pods, to volumes or to devices."""
    if cls.relaxations[-1].constraints or not hard.isdisjoint(cls.counted):
        return False
    if cls.beside_daemons or cls.daemon_spreads:
        return False
    spec = cls.sample.spec
    return not spec.resource_claims and not any(map(_claimed, spec.volumes))


def _claimed(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None
