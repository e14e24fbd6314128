"""The workload controllers: Deployments through ReplicaSets, and StatefulSets. They replace what is lost.

A change of a Deployment's template rolls over: the new ReplicaSet grows to its full size, the old ones shrink as
its pods become Ready. Source: Kubernetes, "Deployments", "ReplicaSet", "StatefulSets".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from kerf.model import kinds as model
from kerf.model.kubernetes.objects import Pod
from kerf.ports import AlreadyExists
from kerf.sandbox.api.api_server import ApiServer, Key, Record
from kerf.sandbox.api.eviction import ready
from kerf.sandbox.api.manifests import digest
from kerf.sandbox.phases import active
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta

_HASH = "pod-template-hash"


class Children:
    """Objects by the UID of the controller that owns them, kept up by changes; and who needs a look."""

    def __init__(self, server: ApiServer, child: str, *owners: str) -> None:
        self._child, self._owners = child, owners
        self._of: dict[str, dict[Key, Record]] = {}
        self._keys: dict[str, tuple[str, Key]] = {}
        self.dirty: dict[tuple[str, Key], None] = {}
        server.listen(self._heard)

    def of(self, uid: str) -> list[Record]:
        return list(self._of.get(uid, {}).values())

    def take_dirty(self) -> list[tuple[str, Key]]:
        dirty, self.dirty = list(self.dirty), {}
        return dirty

    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        if record.kind.name in self._owners:
            self._keys[record.value.metadata.uid] = (record.kind.name, record.key)
            self.dirty[(record.kind.name, record.key)] = None
        if record.kind.name == self._child:
            for reference in record.value.metadata.owner_references:
                if reference.controller and reference.kind in self._owners:
                    self._note(reference.uid, record, gone=new is None)

    def _note(self, uid: str, record: Record, *, gone: bool) -> None:
        children = self._of.setdefault(uid, {})
        if gone:
            children.pop(record.key, None)
        else:
            children[record.key] = record
        if uid in self._keys:
            self.dirty[self._keys[uid]] = None


class Deployments:
    """Keeps one ReplicaSet per template, and the newest at the wanted size; nothing of one that is paused."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._sets = Children(server, "ReplicaSet", "Deployment")

    def settle(self) -> bool:
        dirty = self._sets.take_dirty()
        for _, key in dirty:
            record = self._server.find(model.DEPLOYMENT, *key)
            paused = record is not None and record.manifest["spec"].get("paused", False)
            if record is not None and not paused and not record.value.metadata.deleting:
                self._reconcile(record)
        return bool(dirty)

    def _reconcile(self, record: Record) -> None:
        template, wanted = record.manifest["spec"]["template"], record.value.spec.replicas
        mark = digest(msgspec.json.encode(template, order="sorted"))[:10]
        sets = self._sets.of(record.value.metadata.uid)
        newest = next((r for r in sets if r.value.metadata.labels.get(_HASH) == mark), None)
        old = [r for r in sets if r is not newest]
        if newest is None:
            newest = self._create(record, template, mark, wanted)
        else:
            self._scale(newest, wanted)
        keep = max(0, wanted - newest.value.status.ready_replicas)
        for other in sorted(old, key=lambda r: r.key):
            size = min(other.value.spec.replicas, keep)
            keep -= size
            self._scale(other, size)
        count = sum(r.value.status.replicas for r in sets)
        fit = sum(r.value.status.ready_replicas for r in sets)
        status = {"replicas": count, "readyReplicas": fit, "availableReplicas": fit}
        status["observedGeneration"] = record.value.metadata.generation
        self._server.patch(model.DEPLOYMENT, *record.key, {"status": status}, subresource="status")

    def _create(self, record: Record, template: Mapping[str, Any], mark: str, replicas: int) -> Record:
        meta = dict(template.get("metadata") or {})
        own = {**(meta.get("labels") or {}), _HASH: mark}
        selector = dict(record.manifest["spec"].get("selector") or {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _HASH: mark}
        manifest = {
            "metadata": owned(record, f"{record.value.metadata.name}-{mark}", own),
            "spec": {
                "replicas": replicas,
                "selector": selector,
                "template": {**template, "metadata": {**meta, "labels": own}},
            },
        }
        return self._server.create(model.REPLICA_SET, manifest)

    def _scale(self, record: Record, replicas: int) -> None:
        if record.value.spec.replicas != replicas:
            self._server.patch(model.REPLICA_SET, *record.key, {"spec": {"replicas": replicas}})


class ReplicaSets:
    """Keeps as many pods as wanted."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pods = Children(server, "Pod", "ReplicaSet")

    def settle(self) -> bool:
        dirty = self._pods.take_dirty()
        for _, key in dirty:
            record = self._server.find(model.REPLICA_SET, *key)
            if record is not None and not record.value.metadata.deleting:
                self._reconcile(record)
        return bool(dirty)

    def _reconcile(self, record: Record) -> None:
        alive = [r.value for r in self._pods.of(record.value.metadata.uid) if active(r.value)]
        excess = len(alive) - record.value.spec.replicas
        for _ in range(-excess):
            self._server.create(model.POD, _pod(record, {"generateName": f"{record.value.metadata.name}-"}))
        crowd = _crowd(alive)
        for pod in sorted(alive, key=lambda pod: _last_to_go(pod, crowd))[: max(0, excess)]:
            self._server.delete(model.POD, pod.metadata.namespace, pod.metadata.name, uid=pod.metadata.uid)
        status = {
            "replicas": len(alive) - excess,
            "readyReplicas": sum(ready(pod) for pod in alive),
            "observedGeneration": record.value.metadata.generation,
        }
        self._server.patch(model.REPLICA_SET, *record.key, {"status": status}, subresource="status")


class StatefulSets:
    """Keeps pods with the ordinals 0 to replicas-1; in order unless the set is Parallel."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pods = Children(server, "Pod", "StatefulSet")

    def settle(self) -> bool:
        dirty = self._pods.take_dirty()
        for _, key in dirty:
            record = self._server.find(model.STATEFUL_SET, *key)
            if record is not None and not record.value.metadata.deleting:
                self._reconcile(record)
        return bool(dirty)

    def _reconcile(self, record: Record) -> None:
        spec, meta = record.value.spec, record.value.metadata
        present = {r.value.metadata.name: r.value for r in self._pods.of(meta.uid)}
        in_order = spec.pod_management_policy != "Parallel"
        for ordinal in range(spec.replicas):
            name = f"{meta.name}-{ordinal}"
            pod = present.get(name)
            if pod is not None and pod.status.phase in ("Failed", "Succeeded") and not pod.metadata.deleting:
                self._server.delete(model.POD, meta.namespace, name)
            elif pod is None:
                self._create(record, name)
            if in_order and not (pod is not None and ready(pod) and active(pod)):
                break
        surplus = [name for name in present if _ordinal(name) >= spec.replicas]
        for name in sorted(surplus, key=_ordinal, reverse=True)[: 1 if in_order else None]:
            self._server.delete(model.POD, meta.namespace, name)
        fit = sum(ready(pod) and active(pod) for pod in present.values())
        status = {"replicas": len(present), "readyReplicas": fit, "observedGeneration": meta.generation}
        self._server.patch(model.STATEFUL_SET, *record.key, {"status": status}, subresource="status")

    def _create(self, record: Record, name: str) -> None:
        manifest = _pod(record, {"name": name})
        volumes = list(manifest["spec"].get("volumes") or ())
        for template in record.manifest["spec"].get("volumeClaimTemplates") or ():
            claim = f"{template['metadata']['name']}-{name}"
            self._make_claim(record, claim, template)
            volumes.append({"name": template["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim}})
        manifest["spec"] = {**manifest["spec"], "volumes": volumes}
        try:
            self._server.create(model.POD, manifest)
        except AlreadyExists:
            return

    def _make_claim(self, record: Record, name: str, template: Mapping[str, Any]) -> None:
        """A claim outlives its pod and its set."""
        namespace = record.value.metadata.namespace
        if self._server.find(model.PVC, namespace, name) is None:
            spec = template.get("spec") or {}
            self._server.create(model.PVC, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def _pod(owner: Record, naming: Mapping[str, str]) -> dict[str, Any]:
    """A pod from its owner's template."""
    template = owner.manifest["spec"]["template"]
    own = template.get("metadata") or {}
    meta = {**owned(owner, "", own.get("labels") or {}), "annotations": own.get("annotations") or {}, **naming}
    return {"metadata": meta, "spec": template.get("spec") or {}}


def owned(owner: Record, name: str, own_labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of an object that `owner` controls."""
    meta: ObjectMeta = owner.value.metadata
    reference = {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.name,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    named = {"name": name} if name else {}
    return {**named, "namespace": meta.namespace, "labels": dict(own_labels), "ownerReferences": [reference]}


def _crowd(pods: Iterable[Pod]) -> dict[str, int]:
    """How many of these pods each node has."""
    counts: dict[str, int] = {}
    for pod in pods:
        counts[pod.spec.node_name] = counts.get(pod.spec.node_name, 0) + 1
    return counts


def _last_to_go(pod: Pod, crowd: Mapping[str, int]) -> tuple[object, ...]:
    """The order of scaling down: unbound first, then not Ready, cheap to delete, crowded nodes, newest, by name."""
    created: datetime | None = pod.metadata.creation_timestamp
    cost = pod.metadata.annotations.get(labels.POD_DELETION_COST, "0")
    return (
        bool(pod.spec.node_name),
        ready(pod),
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -crowd[pod.spec.node_name],
        -created.timestamp() if created is not None else 0.0,
        pod.metadata.name,
    )


def _ordinal(name: str) -> int:
    return int(name.rpartition("-")[2])
