"""A sandbox with the state of a snapshot: the same objects and instances, at the same time.

Data that the snapshot lacks is generated: workloads for pods (`owners.py`), instances (`machines.py`), and the user
data of instances that have no node yet. Deployments are paused: their ReplicaSets keep the pods, and CapacityBuffers
read their templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kerf.ec2.quotas import in_use
from kerf.ec2.userdata.userdata import claim_labels, claim_taints
from kerf.model import kinds
from kerf.model.aws.cloud import Instance, Region, Subnet
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.cluster import FIELDS
from kerf.model.kinds import Kind
from kerf.model.snapshot import Snapshot
from kerf.planning import owners, waits
from kerf.planning.clouds import SnapshotCloud
from kerf.planning.machines import instances
from kerf.ports import Ports
from kerf.provisioning.used_up import closed_by_quotas
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.sandbox.api.kinds import CUSTOM
from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.faults import Faults
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.sandbox.world import World
from kerf.snapshots.captured import Captured
from kerf_api import labels
from kerf_api.v1.meta import encode
from kerf_api.v1.nodeclaim import NodeClaim

#: Kinds that other objects refer to, restored first; the remaining kinds follow in any order.
_FIRST: Final = (kinds.NAMESPACE, kinds.NODE_CLASS, kinds.NODE_POOL, kinds.STORAGE_CLASS, kinds.PV, kinds.PVC)
_LAST: Final = (kinds.NODE_CLAIM, kinds.NODE, kinds.CSI_NODE, kinds.VOLUME_ATTACHMENT, kinds.POD)
_GRACE_SECONDS: Final = 30
#: Fields that the CRDs require in a condition.
_WHOLE: Final = {"message": "", "reason": "Unknown", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:00:00Z"}


class Unplannable(Exception):
    """A snapshot that cannot be simulated, with the reason."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A sandbox with the state of a snapshot, the ports for its controller, and AWS as recorded in the snapshot."""

    world: World
    ports: Ports
    cloud: SnapshotCloud
    keys: LaunchKeys


class SnapshotWorld(World):
    """An empty sandbox with the instance types and subnets of a snapshot."""

    def __init__(self, snapshot: Snapshot, region: Region, seed: int, faults: Faults | None = None) -> None:
        self._account = region, _subnets(snapshot)
        super().__init__(
            seed=seed,
            start=snapshot.now,
            cluster_name=snapshot.settings.cluster_name,
            zones=tuple(sorted({zone for zones in region.zones_by_type.values() for zone in zones})),
            weather=waits.observed(snapshot.node_claims.values(), snapshot.pods.by_key.values()),
            faults=faults,
        )
        self.server.version = _newest(snapshot)

    def _furnish(self) -> None:
        """The namespaces are those of the snapshot."""

    def _place(self, *_: object) -> tuple[Region, tuple[Subnet, ...]]:
        return self._account


def restored(captured: Captured, seed: int = 0, faults: Faults | None = None) -> Restored:
    """Return the sandbox of a snapshot. Raises Unplannable when the snapshot has no instance types."""
    snapshot, region = captured.snapshot, captured.region
    if region is None:
        raise Unplannable("the snapshot has no instance types: AWS had not answered when it was saved")
    keys = LaunchKeys(snapshot.settings.cluster_name)
    keys.use_own()
    world = SnapshotWorld(snapshot, region, seed, faults)
    cloud = SnapshotCloud(world.ec2, world.clock, snapshot, world.faults)
    _stocks(world, snapshot)
    _machines(world, snapshot, region)
    _objects(world, snapshot, keys)
    return Restored(world, Ports(world.kube, cloud, world.clock), cloud, keys)


# --- EC2 --------------------------------------------------------------------------------------------------------
def _subnets(snapshot: Snapshot) -> tuple[Subnet, ...]:
    """Return the subnets of the EC2NodeClasses and of all instances."""
    found = {one.id: one for facts in snapshot.class_facts.values() for one in facts.subnets}
    for one in instances(snapshot):
        found.setdefault(one.subnet_id, Subnet(one.subnet_id, one.zone, one.zone_id))
    return tuple(found[id_] for id_ in sorted(found) if id_)


def _stocks(world: World, snapshot: Snapshot) -> None:
    """Restore offerings that are out of stock, used-up quotas, and capacity reservations with their free instances."""
    of_quotas = _quotas(world, snapshot)
    for (kind, zone, market), until in snapshot.out_of_stock.items():
        if (kind, zone, market) not in of_quotas:
            world.ec2.stock_out(kind, zone, market, until)
    held: dict[str, int] = {}
    for instance in snapshot.instances.values():
        if instance.reservation is not None:
            held[instance.reservation.id] = held.get(instance.reservation.id, 0) + 1
    for facts in snapshot.class_facts.values():
        for one in facts.reservations:
            world.ec2.reserve(replace(one, left=one.left + held.get(one.id, 0)), {})


def _quotas(world: World, snapshot: Snapshot) -> frozenset[OfferingKey]:
    """Restore used-up quotas for as long as the plan lasts, and return the offerings that they alone have closed.

    A quota allows the vCPUs in use, and fewer more than EC2 has refused.
    """
    types = world.ec2.region.types
    sizes = {name: info.vcpus for name, info in types.items()}
    used, found = in_use((one for one in instances(snapshot) if one.live), sizes), set[OfferingKey]()
    for quota, keys in closed_by_quotas(snapshot).items():
        if quota.sized:
            most = used.get(quota.key, 0) + quota.vcpus - 1
            world.ec2.stocks.group_quotas[quota.key] = most
            found |= {key for key in keys if sizes.get(key[0], 0) >= quota.vcpus}
    return frozenset(found)


def _machines(world: World, snapshot: Snapshot, region: Region) -> None:
    """Restore the instances, each with its Node where there is one."""
    for number, one in enumerate(instances(snapshot), 1):
        claim = next(iter(snapshot.claims_by_instance.get(one.id, ())), None)
        machine = _machine(number, one, region, snapshot, claim)
        world.ec2.adopt(machine)
        nodes = snapshot.nodes_by_provider.get(one.provider_id, ())
        for node in nodes:
            world.kubelets.adopt(node.name, machine)
        if not nodes and one.live:
            world.ec2.boot(machine)


def _machine(number: int, one: Instance, region: Region, snapshot: Snapshot, claim: NodeClaim | None) -> Machine:
    price = region.price(one.instance_type, one.zone, spot=one.capacity_type == labels.SPOT)
    return Machine(
        id=one.id,
        number=number,
        instance_type=one.instance_type,
        zone=one.zone,
        zone_id=one.zone_id,
        capacity_type=one.capacity_type,
        image_id=one.image_id,
        subnet_id=one.subnet_id,
        security_group_ids=one.security_group_ids,
        user_data=_flags(snapshot, claim, one.capacity_type),
        volumes=(),
        launched=one.launched,
        visible_at=one.launched,
        tags=dict(one.tags),
        price=0 if one.reservation is not None else price or 0,
        state=one.state,
        reservation=one.reservation,
        placement_group=one.placement_group,
        partition=one.partition,
        profile=one.profile,
    )


def _flags(snapshot: Snapshot, claim: NodeClaim | None, capacity_type: str) -> str:
    """Return the labels and taints of the node of a NodeClaim, as flags of a kubelet."""
    node_class = snapshot.node_classes.get(claim.spec.node_class_ref.name) if claim is not None else None
    if claim is None or node_class is None:
        return ""
    own = claim_labels(claim, node_class.family, capacity_type)
    taints = ",".join(map(str, claim_taints(claim)))
    named = ",".join(f"{key}={value}" for key, value in own.items())
    return f'--node-labels="{named}" --register-with-taints="{taints}"'


# --- objects ----------------------------------------------------------------------------------------------------
def _newest(snapshot: Snapshot) -> int:
    """Return the highest resource version: later changes of the sandbox get higher ones."""
    found = (one.metadata.resource_version for name in FIELDS.values() for one in getattr(snapshot, name).values())
    return max((int(text) for text in found if text.isdigit()), default=0)


def _objects(world: World, snapshot: Snapshot, keys: LaunchKeys) -> None:
    rest = [kind for kind in kinds.KNOWN if kind not in (*_FIRST, *_LAST)]
    for name in _spaces(snapshot):
        if name not in snapshot.namespaces:
            world.server.create(kinds.NAMESPACE, {"metadata": {"name": name}})
    for kind in (*_FIRST, *rest):
        _restore(world, kind, (_manifest(kind, one) for one in getattr(snapshot, FIELDS[kind.name]).values()))
    known = [one.metadata.uid for name in ("replica_sets", "stateful_sets") for one in getattr(snapshot, name).values()]
    for kind, manifest in owners.missing(snapshot.pods.values(), known):
        world.server.restore(kind, manifest)
    _restore(world, kinds.NODE_CLAIM, (_claim(snapshot, keys, one) for one in _claims(snapshot)))
    for kind in _LAST[1:]:
        _restore(world, kind, (_manifest(kind, one) for one in getattr(snapshot, FIELDS[kind.name]).values()))


def _restore(world: World, kind: Kind, manifests: Iterable[dict[str, Any]]) -> None:
    """Restore objects. Manifests without a creation timestamp get the start time of the sandbox."""
    now = timestamp(world.clock.now())
    for manifest in manifests:
        meta = {"creationTimestamp": now, **manifest["metadata"]}
        world.server.restore(kind, {**manifest, "metadata": meta})


def _spaces(snapshot: Snapshot) -> list[str]:
    """Return the namespaces of all objects; a snapshot may lack the Namespace objects."""
    tables = [getattr(snapshot, FIELDS[kind.name]).values() for kind in kinds.KNOWN if not kind.cluster_scoped]
    return sorted({one.metadata.namespace for table in tables for one in table if one.metadata.namespace} | {"default"})


def _claims(snapshot: Snapshot) -> Iterator[NodeClaim]:
    yield from snapshot.node_claims.values()
    for some in snapshot.foreign_by_provider.values():
        yield from some


def _manifest(kind: Kind, value: Any) -> dict[str, Any]:
    manifest = encode(value)
    meta = manifest["metadata"]
    meta.pop("resourceVersion", None)
    if kind is kinds.POD:
        return _pod(manifest)
    if kind is kinds.NODE and not value.ready:
        meta["annotations"] = {**meta.get("annotations", {}), NOT_READY: "true"}
    if kind in (kinds.REPLICA_SET, kinds.STATEFUL_SET):
        meta.pop("ownerReferences", None)
    if kind is kinds.DEPLOYMENT:  # its controller would make other ReplicaSets
        manifest["spec"] = {**manifest["spec"], "paused": True}
    status = manifest.get("status", {})
    if "conditions" in status and kind.name in CUSTOM:
        status["conditions"] = [{**_WHOLE, **one} for one in status["conditions"]]
    return manifest


def _pod(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the pod with the defaults of the API server, and an owner of a kind that the sandbox runs."""
    spec = {"terminationGracePeriodSeconds": _GRACE_SECONDS, "tolerations": [], **manifest.get("spec", {})}
    status = {"phase": "Pending", "conditions": [], **manifest.get("status", {})}
    meta = manifest["metadata"]
    meta["ownerReferences"] = [_owner(one) for one in meta.get("ownerReferences", ())]
    return {**manifest, "spec": spec, "status": status}


def _owner(reference: dict[str, Any]) -> dict[str, Any]:
    if not reference.get("controller") or reference.get("kind") in ("DaemonSet", "Node", "StatefulSet", "ReplicaSet"):
        return reference
    return {**reference, "apiVersion": kinds.REPLICA_SET.api_version, "kind": kinds.REPLICA_SET.name}


def _claim(snapshot: Snapshot, keys: LaunchKeys, claim: NodeClaim) -> dict[str, Any]:
    """Return a NodeClaim; a launch that the snapshot verified as Kerf's gets a mark with the key of this process."""
    manifest = _manifest(kinds.NODE_CLAIM, claim)
    mark, notes = snapshot.launch_marks.get(claim.name), claim.metadata.annotations
    group, request = notes.get(labels.LAUNCH_GROUP, ""), notes.get(labels.LAUNCH_REQUEST, "")
    if mark is not None and mark.group and group:
        own = {labels.LAUNCH_MARK: keys.mark(MarkedLaunch.of(claim, group, request))}
        manifest["metadata"]["annotations"] = {**notes, **own}
    return manifest
