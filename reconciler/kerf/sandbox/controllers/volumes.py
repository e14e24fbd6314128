"""Volumes that live in one zone, as EBS volumes do: provisioned, bound, attached to nodes and detached again.

A claim of a class that binds at once gets its volume at once; one that waits for its first consumer gets it in the
zone of the node to which the scheduler binds a pod. A claim whose volume goes is Lost. Sources: Kubernetes, "Storage
Classes", "Ephemeral Volumes", "CSI volume migration"; CSI.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.kubernetes.storage import PersistentVolumeClaim, StorageClass
from kerf.sandbox.api.api_server import ApiServer, Key, Record
from kerf.sandbox.api.manifests import digest
from kerf.sandbox.clock import Agenda
from kerf.sandbox.phases import terminal
from kerf.sandbox.scheduling.claims import BOUND, EBS, IN_TREE
from kerf_api import labels

_WAITS = "WaitForFirstConsumer"
_BOUND = {BOUND: "yes"}


class Volumes:
    """See the module. `detach_seconds` pass between the last pod's end and the end of an attachment."""

    def __init__(self, server: ApiServer, agenda: Agenda, zones: tuple[str, ...], detach_seconds: float) -> None:
        self._server, self._agenda, self._zones, self._detach_seconds = server, agenda, zones, detach_seconds
        self._claims: dict[Key, None] = {}
        self._pods: dict[Key, None] = {}
        server.listen(self._heard)

    # --- what changes ---------------------------------------------------------------------------------------------
    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        if record.kind.name == "PersistentVolumeClaim":
            self._claims[record.key] = None
        elif record.kind.name == "PersistentVolume" and (old is None or new is None):
            self._claims |= {claim.key: None for claim in self._of_volume(record)}
        elif record.kind.name == "StorageClass":
            self._claims |= {claim.key: None for claim in self._server.records(kinds.PVC)}
        elif record.kind.name == "Pod" and any(claims_of(record.value)):
            self._pods[record.key] = None
            if new is None or terminal(new.value):
                self._agenda.after(self._detach_seconds, self._detach)

    def settle(self) -> bool:
        claims, self._claims = list(self._claims), {}
        pods, self._pods = list(self._pods), {}
        for key in pods:
            record = self._server.find(kinds.POD, *key)
            if record is not None:
                self._serve(record)
        for key in claims:
            claim = self._server.find(kinds.PVC, *key)
            if claim is None:
                self._reclaim(key)
            elif not claim.value.spec.volume_name:
                self._bind_at_once(claim)
            else:
                self._follow(claim)
        return bool(claims or pods)

    def _bind_at_once(self, claim: Record) -> None:
        storage = self._class_of(claim.value)
        if storage is not None and storage.volume_binding_mode != _WAITS:
            zones = _allowed(storage) or self._zones
            self._provision(claim, storage, zones[int(digest("zone", *claim.key)[:8], 16) % len(zones)])

    def _follow(self, claim: Record) -> None:
        """A claim that names a volume is bound to it once it is there; a bound one whose volume has gone is Lost."""
        bound = _BOUND.items() <= claim.value.metadata.annotations.items()
        there = self._server.find(kinds.PV, "", claim.value.spec.volume_name) is not None
        if there and not bound:
            self._server.patch(kinds.PVC, *claim.key, {"metadata": {"annotations": _BOUND}})
        if there or bound:
            phase = "Bound" if there else "Lost"
            self._server.patch(kinds.PVC, *claim.key, {"status": {"phase": phase}}, subresource="status")

    # --- claims and volumes ---------------------------------------------------------------------------------------
    def _serve(self, record: Record) -> None:
        """Make a pod's ephemeral claims; once it is bound, its waiting volumes and its attachments."""
        pod: Pod = record.value
        for volume in record.manifest["spec"].get("volumes") or ():
            if volume.get("ephemeral"):
                self._make_claim(record, f"{pod.metadata.name}-{volume['name']}", volume["ephemeral"])
        node = self._server.find(kinds.NODE, "", pod.spec.node_name) if pod.spec.node_name else None
        if node is None or terminal(pod):
            return
        for name in claims_of(pod):
            claim = self._server.find(kinds.PVC, pod.metadata.namespace, name)
            if claim is None:
                continue
            storage = self._class_of(claim.value)
            if not claim.value.spec.volume_name and storage is not None:
                claim = self._provision(claim, storage, _zone(node.value))
            if claim.value.spec.volume_name:
                self._attach(claim.value.spec.volume_name, pod.spec.node_name)

    def _make_claim(self, record: Record, name: str, source: Mapping[str, Any]) -> None:
        meta = record.value.metadata
        if self._server.find(kinds.PVC, meta.namespace, name) is not None:
            return
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
        own = {"name": name, "namespace": meta.namespace, "ownerReferences": [owner]}
        self._server.create(kinds.PVC, {"metadata": own, "spec": source["volumeClaimTemplate"].get("spec") or {}})

    def _provision(self, claim: Record, storage: StorageClass, zone: str) -> Record:
        namespace, name = claim.key
        volume = f"pvc-{claim.value.metadata.uid}"
        term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": [zone]}]}
        id_ = f"vol-{digest(volume)[:17]}"
        source = {"csi": {"driver": storage.provisioner, "volumeHandle": id_}}
        spec = {
            **({"awsElasticBlockStore": {"volumeID": id_}} if storage.provisioner == IN_TREE else source),
            "claimRef": {"namespace": namespace, "name": name},
            "storageClassName": storage.metadata.name,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        self._server.create(kinds.PV, {"metadata": {"name": volume}, "spec": spec})
        bound = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": volume}}
        self._server.patch(kinds.PVC, namespace, name, bound)
        return self._server.patch(kinds.PVC, namespace, name, {"status": {"phase": "Bound"}}, subresource="status")

    def _of_volume(self, volume: Record) -> Iterator[Record]:
        """The claims that name a volume."""
        owner = volume.manifest["spec"].get("claimRef")
        if owner:
            claim = self._server.find(kinds.PVC, owner.get("namespace", ""), owner.get("name", ""))
            yield from [claim] if claim is not None else []
            return
        named = (c for c in self._server.records(kinds.PVC) if c.value.spec.volume_name == volume.value.metadata.name)
        yield from list(named)

    def _reclaim(self, key: Key) -> None:
        """The volume of a deleted claim goes with it."""
        namespace, name = key
        for record in list(self._server.records(kinds.PV)):
            if record.manifest["spec"].get("claimRef") == {"namespace": namespace, "name": name}:
                self._server.delete(kinds.PV, "", record.value.metadata.name)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        record = self._server.find(kinds.STORAGE_CLASS, "", claim.spec.storage_class_name or "")
        storage: StorageClass | None = record.value if record is not None else None
        return storage

    # --- attachments ----------------------------------------------------------------------------------------------
    def _attach(self, volume: str, node: str) -> None:
        name = f"csi-{digest(volume, node)}"
        if self._server.find(kinds.VOLUME_ATTACHMENT, "", name) is None:
            spec = {"attacher": EBS, "nodeName": node, "source": {"persistentVolumeName": volume}}
            self._server.create(kinds.VOLUME_ATTACHMENT, {"metadata": {"name": name}, "spec": spec})

    def _detach(self) -> None:
        """Undo attachments that no pod on their node needs any more."""
        used = {
            (claim.value.spec.volume_name, record.value.spec.node_name)
            for record in self._server.records(kinds.POD)
            if not terminal(record.value)
            for name in claims_of(record.value)
            if (claim := self._server.find(kinds.PVC, record.key[0], name)) is not None
        }
        for record in list(self._server.records(kinds.VOLUME_ATTACHMENT)):
            spec = record.value.spec
            if (spec.source.persistent_volume_name, spec.node_name) not in used:
                self._server.delete(kinds.VOLUME_ATTACHMENT, "", record.value.metadata.name)


def claims_of(pod: Pod) -> Iterator[str]:
    """The names of the claims that a pod uses."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def _zone(node: Node) -> str:
    """The zone of the machine, whatever the labels of its Node: a provider ID is `aws:///<zone>/<instance>`."""
    parts = node.spec.provider_id.split("/")
    return parts[3] if len(parts) > 3 else node.metadata.labels.get(labels.ZONE, "")


def _allowed(storage: StorageClass) -> tuple[str, ...]:
    """The zones of allowedTopologies; empty when any will do."""
    rows: Iterable[Any] = (row for term in storage.allowed_topologies for row in term.match_label_expressions)
    return tuple(value for row in rows if labels.normalise(row.key) == labels.ZONE for value in row.values)
