"""Pods that are alike are judged once: a Kind stands for all pods of one namespace, one set of labels and one spec."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kerf.model.kubernetes.objects import Pod, PodAffinityTerm
from kerf_api.resources import Resources
from tests.referee.needs import HostPort, host_ports, requests
from tests.referee.selecting import required_affinity


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """`pod` is one of them; `where` tells apart demands on nodes' labels."""

    pod: Pod
    where: bytes
    requests: Resources
    ports: frozenset[HostPort]

    @property
    def near(self) -> tuple[PodAffinityTerm, ...]:
        """Its required pod affinity."""
        affinity = self.pod.spec.affinity
        return affinity.pod_affinity.required if affinity is not None and affinity.pod_affinity is not None else ()

    @property
    def far(self) -> tuple[PodAffinityTerm, ...]:
        """Its required pod anti-affinity."""
        affinity = self.pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None:
            return ()
        return affinity.pod_anti_affinity.required


class Kinds:
    """The kinds of the pods of one question."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], Kind] = {}
        self._by_pod: dict[str, Kind] = {}

    def of(self, pod: Pod) -> Kind:
        found = self._by_pod.get(pod.key)
        if found is None:
            found = self._by_pod[pod.key] = self._of(pod)
        return found

    def _of(self, pod: Pod) -> Kind:
        spec = msgspec.structs.replace(pod.spec, node_name="")
        own = pod.metadata.name if any(v.ephemeral is not None for v in spec.volumes) else ""
        told = (pod.status.container_statuses, pod.status.init_container_statuses, pod.status.resources)
        more = (bool(pod.spec.node_name), *told, pod.status.allocated_resources, pod.status.conditions)
        resized = more if any(told) else ()
        key = tuple(map(msgspec.json.encode, (pod.metadata.namespace, pod.metadata.labels, spec, own, resized)))
        if key not in self._known:
            where = msgspec.json.encode((spec.node_selector, required_affinity(pod)))
            self._known[key] = Kind(pod, where, requests(pod), host_ports(pod))
        return self._known[key]
