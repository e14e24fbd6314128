"""Pods of one workload are alike: equal parts of them are kept once, and what no decision reads is left out.

A pod decoded from JSON owns some 5 kB, of which four fifths are the same in all pods of its Deployment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kerf.model.kinds import POD, Kind
from kerf.model.kubernetes.objects import Container, ContainerStatus, Pod, PodCondition, Quantities, Volume
from kerf.model.kubernetes.pods import RESIZE_PENDING

T = TypeVar("T")
#: So many different parts are remembered; then the memory starts again (what is managed elsewhere stays shared).
REMEMBERED = 100_000
#: The conditions of a pod that decisions read.
_CONDITIONS = frozenset({"PodScheduled", "Ready", RESIZE_PENDING})


def interner(kind: Kind) -> Callable[[T], T] | None:
    """What to send each decoded object of a kind through; None for kinds of which there are few."""
    return Interner().pod if kind is POD else None  # type: ignore[return-value]


class Interner:
    """Keeps one copy of equal parts. One thread at a time may use it, and any may read what it made."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bytes], object] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def pod(self, pod: Pod) -> Pod:
        """The same pod, made of shared parts."""
        share, meta, spec, status = self._share, pod.metadata, pod.spec, pod.status
        return Pod(
            metadata=replace(
                meta,
                namespace=sys.intern(meta.namespace),
                labels=share("labels", meta.labels),
                annotations=share("annotations", meta.annotations),
                owner_references=share("owner_references", meta.owner_references),
                finalizers=share("finalizers", meta.finalizers),
            ),
            spec=replace(
                spec,
                node_name=sys.intern(spec.node_name),
                node_selector=share("node_selector", spec.node_selector),
                affinity=share("affinity", spec.affinity),
                tolerations=share("tolerations", spec.tolerations),
                containers=share("containers", spec.containers),
                init_containers=share("init_containers", spec.init_containers),
                resource_claims=share("resource_claims", spec.resource_claims),
                topology_spread_constraints=share("topology_spread_constraints", spec.topology_spread_constraints),
                volumes=share("volumes", tuple(v for v in spec.volumes if _claims(v))),
                scheduler_name=sys.intern(spec.scheduler_name),
                priority_class_name=sys.intern(spec.priority_class_name),
            ),
            status=replace(
                status,
                phase=sys.intern(status.phase),
                conditions=tuple([self._condition(c) for c in status.conditions if c.type in _CONDITIONS]),
                container_statuses=share("statuses", _resizing(status.container_statuses, spec.containers)),
                init_container_statuses=share(
                    "statuses", _resizing(status.init_container_statuses, spec.init_containers, sidecars=True)
                ),
                resources=share("pod_resources", status.resources),
                allocated_resources=share("allocated", status.allocated_resources),
            ),
        )

    def _share(self, slot: str, part: T) -> T:
        """The first part of this content that was seen in this place (the place gives the type)."""
        if not part:
            return part
        key = slot, self._encode(part)
        known = self._parts.setdefault(key, part)
        if len(self._parts) > REMEMBERED:
            self._parts.clear()
        return known  # type: ignore[return-value]

    def _condition(self, condition: PodCondition) -> PodCondition:
        return PodCondition(
            type=sys.intern(condition.type),
            status=sys.intern(condition.status),
            reason=sys.intern(condition.reason),
            last_transition_time=condition.last_transition_time,
        )


def _claims(volume: Volume) -> bool:
    """Whether a volume can bind a pod to a place; the others (tokens, config maps) cannot."""
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None


def _resizing(
    statuses: tuple[ContainerStatus, ...], containers: tuple[Container, ...], *, sidecars: bool = False
) -> tuple[ContainerStatus, ...]:
    """Those that say other than the containers' own requests: of a pod that is not resized none does.

    Of init containers only `sidecars` have a say.
    """
    found: tuple[ContainerStatus, ...] = ()
    for status in statuses:
        if status.resources is not None:
            asked = next((c for c in containers if c.name == status.name), None)
            ends = sidecars and asked is not None and asked.restart_policy != "Always"
            if asked is not None and not ends and _differs(status, asked.resources.requests):
                found = (*found, status)
    return found


def _differs(status: ContainerStatus, requests: Quantities) -> bool:
    assert status.resources is not None
    allocated = status.allocated_resources
    return status.resources.requests != requests or (bool(allocated) and allocated != requests)
