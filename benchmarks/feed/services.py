"""The workloads of the feed: Deployments of each pool, the DaemonSets, and their pods in each state of their lives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from benchmarks.feed import shapes
from benchmarks.feed.specimens import CPU_MILLIS, DAEMONS, MEMORY_MIB, POOLS, TIER

Json = dict[str, Any]

SERVICES_PER_POOL: Final = 50
#: One service in so many has a PodDisruptionBudget, and prefers to be spread over zones.
GUARDED_EVERY, SPREAD_EVERY = 5, 3
_PART: Final = "app.kubernetes.io"
_LABELS: Final = (f"{_PART}/name", f"{_PART}/instance", f"{_PART}/version", "team", "pod-template-hash")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def uid(*parts: object) -> str:
    """A UID that follows from the parts."""
    text = hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"


def _suffix(number: int) -> str:
    size = len(_LETTERS)
    return "".join(_LETTERS[number // size**place % size] for place in range(6))


@dataclass(frozen=True, slots=True)
class Service:
    """What makes pods: a ReplicaSet of a Deployment, or a DaemonSet."""

    name: str
    namespace: str
    owner_kind: str
    owner_uid: str
    #: What the specs of its pods have in common, and which fields its controller set.
    spec: Mapping[str, Any]
    set_fields: msgspec.Raw
    daemon: bool = False

    @classmethod
    def of(
        cls, name: str, namespace: str, owner: tuple[str, str], requests: Mapping[str, str], wishes: Mapping[str, Any]
    ) -> Service:
        """One whose pods ask for so much and have these wishes about their place; `owner` is a kind and a UID."""
        kind, own = owner
        spec = shapes.pod_spec(name, requests, wishes)
        return cls(name, namespace, kind, own, spec, shapes.set_by_controller(_LABELS, own), kind == "DaemonSet")

    @property
    def labels(self) -> dict[str, str]:
        team = f"team-{int(self.owner_uid[:4], 16) % 17}"
        return dict(zip(_LABELS, (self.name, self.name, "2026.11.20", team, self.owner_uid[:10]), strict=True))

    def pod(self, number: int, moment: str, node: str = "", host_ip: str = "", *, running: bool = False) -> Json:
        """Its pod of that number: new and unbound, bound to a node, or running there."""
        name = f"{self.name}-{self.owner_uid[:10]}-{_suffix(number)}"
        own = uid("pod", name)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "generateName": f"{self.name}-{self.owner_uid[:10]}-",
                "namespace": self.namespace,
                "uid": own,
                "creationTimestamp": moment,
                "labels": self.labels,
                "annotations": {
                    "prometheus.io/scrape": "true",
                    "prometheus.io/port": "9090",
                    "checksum/config": self.owner_uid.replace("-", "") * 2,
                },
                "ownerReferences": [self._owner()],
                "managedFields": shapes.pod_managed_fields(self.set_fields, moment, running),
            },
            "spec": {**self._spec(node), **({"nodeName": node} if node else {})},
            "status": self._status(own, node, host_ip, number, moment, running),
        }

    def _owner(self) -> Json:
        name = self.name if self.daemon else f"{self.name}-{self.owner_uid[:10]}"
        flags = {"controller": True, "blockOwnerDeletion": True}
        return {"apiVersion": "apps/v1", "kind": self.owner_kind, "name": name, "uid": self.owner_uid, **flags}

    def _spec(self, node: str) -> Json:
        if not self.daemon:
            return {**self.spec}
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return {**self.spec, "affinity": affinity}

    def _status(self, own: str, node: str, host_ip: str, number: int, moment: str, running: bool) -> Json:
        if running:
            pod_ip = f"10.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"
            return shapes.running_status(self.name, own, host_ip, pod_ip, moment)
        bound = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}] if node else []
        return {"phase": "Pending", "conditions": bound, "qosClass": "Burstable"}


def deployments(pool: str) -> tuple[Service, ...]:
    """The Deployments whose pods run on a pool's nodes."""
    requests = {"cpu": f"{CPU_MILLIS}m", "memory": f"{MEMORY_MIB[pool]}Mi"}
    return tuple(_deployment(f"{pool}-service-{n:02d}", pool, requests, n) for n in range(SERVICES_PER_POOL))


def _deployment(name: str, pool: str, requests: Mapping[str, str], number: int) -> Service:
    wishes: Json = {"nodeSelector": {TIER: pool}}
    if number % SPREAD_EVERY == 0:
        constraint = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
        selected = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}
        wishes["topologySpreadConstraints"] = [constraint | selected]
    return Service.of(name, "default", ("ReplicaSet", uid("replicaset", name)), requests, wishes)


def daemons(manifests: list[Json]) -> tuple[Service, ...]:
    """The DaemonSets that every node runs."""
    found = {manifest["metadata"]["name"]: manifest for manifest in manifests}
    return tuple(_daemon(found[name]) for name in DAEMONS)


def _daemon(manifest: Json) -> Service:
    spec, meta = manifest["spec"]["template"]["spec"], manifest["metadata"]
    wishes = {key: spec[key] for key in ("tolerations", "priorityClassName")}
    requests = spec["containers"][0]["resources"]["requests"]
    return Service.of(meta["name"], meta["namespace"], ("DaemonSet", meta["uid"]), requests, wishes)


def budgets(pods_per_service: int) -> list[Json]:
    """PodDisruptionBudgets of some Deployments, as the disruption controller keeps them."""
    found = []
    for pool in POOLS:
        for service in deployments(pool)[::GUARDED_EVERY]:
            allowed = pods_per_service // 10
            counts = {"currentHealthy": pods_per_service, "expectedPods": pods_per_service, "observedGeneration": 1}
            status = {**counts, "desiredHealthy": pods_per_service - allowed, "disruptionsAllowed": allowed}
            spec = {
                "maxUnavailable": "10%",
                "selector": {"matchLabels": {"app.kubernetes.io/name": service.name}},
            }
            meta = {"name": service.name, "namespace": service.namespace, "uid": uid("pdb", service.name)}
            kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
            found.append({**kind, "metadata": {**meta, "generation": 1}, "spec": spec, "status": status})
    return found
