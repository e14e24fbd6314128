"""A cluster from files: what `kubectl get -o yaml` printed, or manifests that no cluster has seen yet.

What a cluster fills in is filled in where it is missing: defaults, and that a NodePool without a status is ready and a
Pod without one has been refused by its scheduler. AWS is not asked: the instance types are those of the sandbox, the
zones those in the files, and an EC2NodeClass selects the resources that its status lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace as changed

from kerf.cli.gathering.sources import Source
from kerf.ec2.images import unlisted
from kerf.manifests import documents
from kerf.manifests.nodes import Unreadable
from kerf.model import kinds
from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Image, PlacementGroup, Region, SecurityGroup, Subnet
from kerf.model.kinds import Kind
from kerf.ports import Listing
from kerf.sandbox.aws import account, catalogue
from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint.reading.stored import stored
from kerf_api.v1.ec2nodeclass import EC2NodeClass, PlacementGroupSelector
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, nodeclass_hash
from kerf_api.v1.meta import decode

_READY: Final = {"conditions": [{"type": "Ready", "status": "True"}]}
_UNSCHEDULABLE: Final = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}
#: Where nothing in the files speaks of a zone.
_ZONES: Final = ("us-west-2a", "us-west-2b", "us-west-2c")
_VERSION: Final = "1.34"
#: Free addresses of a subnet.
_ADDRESSES: Final = 250
#: As of EKS. User data has it; without one no EC2NodeClass is valid.
_SERVICE_CIDR: Final = "10.100.0.0/16"


class BadFile(Exception):
    """A file that cannot be used: where, and why."""


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """Of Kube what a look needs."""

    objects: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def list(self, kind: Kind) -> Listing:
        return Listing(tuple(self.objects.get(kind.name, ())), "")


def read(sources: Iterable[Source]) -> ClusterFiles:
    """The objects of the kinds that matter; others are passed over. Raises BadFile."""
    return of(row for source in sources for row in manifests(source))


def of(rows: Iterable[tuple[str, dict[str, Any]]]) -> ClusterFiles:
    """The same of manifests that were read already, each with its place. Raises BadFile."""
    found: dict[str, dict[str, Any]] = {}
    for place, manifest in rows:
        kind = kinds.BY_NAME.get(str(manifest.get("kind", "")))
        if kind is not None and manifest.get("apiVersion") == kind.api_version:
            value = _decoded(kind, manifest, place)
            found.setdefault(kind.name, {})[f"{value.metadata.namespace}/{value.metadata.name}"] = value
    return ClusterFiles({name: tuple(values.values()) for name, values in found.items()})


def without_bundle(found: ClusterFiles) -> ClusterFiles:
    """The same cluster with the hashes that EC2NodeClasses have without the certificate of the API server.

    Their hash covers the certificate, which files lack: otherwise every node would have drifted.
    """
    hashes: dict[str, str] = {}
    for one in found.objects.get(kinds.NODE_CLASS.name, ()):
        notes = one.metadata.annotations
        if notes.get(labels.NODECLASS_HASH_VERSION) == NODECLASS_HASH_VERSION and not one.metadata.unreadable:
            hashes[notes.get(labels.NODECLASS_HASH, "")] = nodeclass_hash(one, "")
    hashed = (kinds.NODE_CLASS.name, kinds.NODE_CLAIM.name)
    rows = {name: tuple(_rehashed(one, hashes) for one in found.objects.get(name, ())) for name in hashed}
    return ClusterFiles({**found.objects, **rows})


def _rehashed(value: Any, hashes: Mapping[str, str]) -> Any:
    notes = value.metadata.annotations
    hashed = notes.get(labels.NODECLASS_HASH, "")
    if hashed not in hashes:
        return value
    own = {**notes, labels.NODECLASS_HASH: hashes[hashed]}
    return changed(value, metadata=changed(value.metadata, annotations=own))


def manifests(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with its place; of a list each of its items. Raises BadFile."""
    try:
        data = source.read()
    except OSError as error:
        raise BadFile(f"{source.name}: {error.strerror or error}") from error
    yield from objects(source.name, data)


def objects(name: str, data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same of a file that was read already, by its name. Raises BadFile."""
    for document in documents.read(data):
        if isinstance(document, Unreadable):
            raise BadFile(f"{name}:{document.place.line}:{document.place.column}: {document.message}")
        place, value = f"{name}:{document.node.start.line}", document.node.value
        items = value.get("items") if isinstance(value, dict) else None
        for one in items if isinstance(items, list) else [value]:
            if isinstance(one, dict):
                yield place, stored(one)


def _decoded(kind: Kind, manifest: dict[str, Any], place: str) -> Any:
    meta = manifest.get("metadata")
    own = dict(meta) if isinstance(meta, dict) else {}
    if not kind.cluster_scoped:
        own.setdefault("namespace", "default")
    own.setdefault("uid", f"{kind.name}/{own.get('namespace', '')}/{own.get('name', '')}")
    filled = {**manifest, "metadata": own}
    try:
        if kind in (kinds.NODE_POOL, kinds.NODE_CLASS):
            filled = default(filled)
        return decode(kind.type, _with_status(kind, filled))
    except (msgspec.ValidationError, ValueError, TypeError, AttributeError) as error:
        raise BadFile(f"{place}: {kind.name} {own.get('name', '')}: {error}") from error


def _with_status(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    if manifest.get("status"):
        return manifest
    spec = manifest.get("spec")
    if kind in (kinds.NODE_POOL, kinds.NODE_CLASS):
        return {**manifest, "status": _READY}
    if kind is kinds.POD and not (isinstance(spec, dict) and spec.get("nodeName")):
        return {**manifest, "status": _UNSCHEDULABLE}
    return manifest


# --- AWS without AWS --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ShippedTypes:
    """Of Cloud what a look needs: the sandbox's types, a subnet in each zone, and images for every type."""

    zones: tuple[str, ...]

    @classmethod
    def beside(cls, objects: Mapping[str, Sequence[Any]]) -> ShippedTypes:
        """With the zones that these objects speak of, if they do."""
        zones = {subnet.zone for one in objects.get("EC2NodeClass", ()) for subnet in one.status.subnets}
        zones |= {one.metadata.labels.get(labels.ZONE, "") for one in objects.get("Node", ())}
        for pool in objects.get("NodePool", ()):
            for entry in pool.spec.template.spec.requirements:
                if labels.normalise(entry.key) == labels.ZONE:
                    zones |= set(entry.values)
        return cls(tuple(sorted(zones - {""})) or _ZONES)

    def region(self) -> Region:
        return catalogue.region(self.zones)

    def on_demand_prices(self) -> dict[str, int]:
        return {}  # they come with the region

    def spot_prices(self) -> dict[tuple[str, str], int]:
        return {}

    def cluster(self) -> ClusterFacts:
        return ClusterFacts(
            name="",
            endpoint="",
            service_cidr=_SERVICE_CIDR,
            kubernetes_version=_VERSION,
            region=self.zones[0][:-1],
        )

    def impairments(self, of: Sequence[str] | None = None) -> tuple[()]:
        return ()

    def zonal_shifts(self, cluster: ClusterFacts) -> tuple[()]:
        return ()

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        """The resources in the class's status. Where it has none: a subnet in every zone, and images for every type."""
        status = node_class.status
        known = [Subnet(one.id, one.zone, one.zone_id, _ADDRESSES) for one in status.subnets]
        images = unlisted(status.amis) or account.images_of(account.images(_VERSION), node_class)
        return ClassFacts(
            generation=node_class.metadata.generation,
            subnets=tuple(known or (Subnet(_id("subnet", zone), zone, "", _ADDRESSES) for zone in self.zones)),
            security_groups=tuple(SecurityGroup(one.id, one.name) for one in status.security_groups)
            or (SecurityGroup(_id("sg", "nodes")),),
            images=images or tuple(Image(_id("ami", one), architecture=one) for one in ("amd64", "arm64")),
            instance_profile=status.instance_profile or "profile",
            placement_group=_group(node_class.spec.placement_group_selector),
        )


def _id(kind: str, name: str) -> str:
    """An ID of the form that EC2 has, for a resource that the files do not name."""
    return f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:17]}"


def _group(selector: PlacementGroupSelector | None) -> PlacementGroup | None:
    """What it selects, taken to be there; of its strategy is known only that nearly every type can be spread."""
    if selector is None:
        return None
    return PlacementGroup(selector.id or selector.name or "", selector.name or "", "spread")
