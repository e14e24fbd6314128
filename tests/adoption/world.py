"""A sandbox that begins with the objects of a cluster whose controller has gone.

    play = Adopted(manifests)
    play.live(minutes=10)

Claims tell of their instances, and EC2NodeClasses of what their selectors came to, so files from `kubectl get -o yaml`
are all it takes. Objects get new UIDs, and are a day old when the controller comes. Pods are on
the nodes where they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.ec2.pricing import prices
from kerf.model import kinds
from kerf.model.aws.cloud import (
    ClassFacts,
    ClusterFacts,
    Image,
    InstanceTypeInfo,
    Region,
    SecurityGroup,
    Subnet,
)
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.aws.catalogue import spot_price
from kerf.sandbox.aws.cloud import SandboxCloud
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.calm import Calm
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass, ResolvedImage
from tests.simulation.stage import Play, Seam

from . import predecessor
from .predecessor import Manifest

#: What the controller works on, and what runs on it; in this order, so that owners are there first.
OURS: Final = (kinds.NODE_CLASS, kinds.NODE_POOL, kinds.NODE_CLAIM, kinds.NODE)
LOAD: Final = (kinds.REPLICA_SET, kinds.DAEMON_SET, kinds.POD)
_ADDRESSES: Final = 8000
_GPU: Final = "karpenter.k8s.aws/instance-gpu-count"
_ACCELERATOR: Final = "karpenter.k8s.aws/instance-accelerator-count"


class SavedCloud(SandboxCloud):
    """An account in which selectors come to what the statuses of EC2NodeClasses had when they were loaded."""

    def __init__(self, *given: Any, ca_bundle: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self._ca_bundle = ca_bundle
        #: By class; tests change them to make nodes drift.
        self.facts: dict[str, ClassFacts] = {}

    def cluster(self) -> ClusterFacts:
        return replace(super().cluster(), ca_bundle=self._ca_bundle)

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        known = super().resolve(node_class, cluster)
        facts = self.facts[node_class.name]
        return replace(facts, generation=node_class.metadata.generation, instance_profile=known.instance_profile)


class Adopted(Play):
    """See the module; `seam` has the calls of the controller, and `objects` says what is there."""

    def __init__(
        self,
        manifests: Iterable[Manifest],
        *,
        cluster: str,
        ca_bundle: str = predecessor.RECORDED_CA,
        region: Region | None = None,
    ) -> None:
        self.seam = Seam()
        found: dict[str, list[Manifest]] = {}
        for manifest in manifests:
            found.setdefault(manifest["kind"], []).append(manifest)
        world = World(seed=3, start=_latest(found["NodeClaim"]), cluster_name=cluster, faults=self.seam)
        world.ec2.region = region or _with_types_of(world.ec2.region, found["NodeClaim"])
        self.cloud = SavedCloud(world.ec2, world.clock, self.seam, cluster, ca_bundle=ca_bundle)
        self._load(world, found, cluster)
        self._calm = Calm(world)
        self._later: datetime | None = None
        super().__init__(world, self.cloud, Settings(cluster_name=cluster))

    def _load(self, world: World, found: Mapping[str, list[Manifest]], cluster: str) -> None:
        uids: dict[tuple[str, str], str] = {}
        for kind in (*OURS, *LOAD):
            for manifest in found.get(kind.name, ()):
                uids[kind.name, manifest["metadata"]["name"]] = _created(world, kind, manifest, uids)
        for record in world.server.select(kinds.NODE_CLASS, "", "", ""):
            self._resolve(world, record, cluster)
        for record in world.server.select(kinds.NODE_CLAIM, "", "", ""):
            _run(world, record, cluster)

    def _resolve(self, world: World, record: Record, cluster: str) -> None:
        """What AWS has for a class: what its status says, and its instance profile."""
        value: EC2NodeClass = record.value
        subnets = tuple(Subnet(one.id, one.zone, one.zone_id, _ADDRESSES) for one in value.status.subnets)
        groups = tuple(SecurityGroup(one.id, one.name) for one in value.status.security_groups)
        self.cloud.facts[value.name] = ClassFacts(1, subnets, groups, tuple(map(_image, value.status.amis)))
        world.ec2.subnets.update({subnet.id: subnet for subnet in subnets})
        path = predecessor.profile_path(world.ec2.region.name, cluster, value.metadata.uid)
        tags = {"karpenter.k8s.aws/ec2nodeclass": value.name}
        self.cloud.ensure_instance_profile(value.status.instance_profile or "", value.spec.role or "", path, tags)

    def settle(self) -> None:
        """Pods run, and a day goes by before the controller comes."""
        self.world.run(None, timedelta(days=1))
        self.seam.calls.clear()

    def live(self, **time: float) -> None:
        """A world in which nothing happens is passed through quickly."""
        self.world.run(self, timedelta(**time))

    @property
    def next_due(self) -> datetime | None:
        return self._later or self.controller.next_due

    def tick(self) -> None:
        plan = self.controller.tick()
        self._later = self._calm.until(plan, self.controller.next_due)

    def values(self, kind: Kind) -> list[Any]:
        """All objects of a kind as they are, by name."""
        return [record.value for record in self.world.server.select(kind, "", "", "")]

    def objects(self) -> dict[str, Manifest]:
        """Those that the controller works on, by kind and name."""
        rows = (record for kind in OURS for record in self.world.server.select(kind, "", "", ""))
        return {f"{record.kind.name}/{record.key[1]}": dict(record.manifest) for record in rows}


def _created(world: World, kind: Kind, manifest: Manifest, uids: Mapping[tuple[str, str], str]) -> str:
    """Create the object with its status, its owners those that are here; its UID."""
    given = manifest["metadata"]
    kept = {key: given[key] for key in ("name", "namespace", "labels", "annotations", "finalizers") if key in given}
    named = [(one, uids.get((one["kind"], one["name"]))) for one in given.get("ownerReferences", ())]
    owners = [{**one, "uid": uid} for one, uid in named if uid]
    fresh = {**manifest, "metadata": {**kept, **({"ownerReferences": owners} if owners else {})}}
    stored = world.server.create(kind, fresh)
    if kind in OURS:
        stored = world.server.patch(kind, "", given["name"], {"status": manifest["status"]}, subresource="status")
    uid: str = stored.manifest["metadata"]["uid"]
    return uid


def _latest(claims: Iterable[Manifest]) -> datetime:
    """When the latest of their conditions changed."""
    rows = (row["lastTransitionTime"] for claim in claims for row in claim["status"]["conditions"])
    return datetime.fromisoformat(max(rows))


def _run(world: World, record: Record, cluster: str) -> None:
    """The claim's instance runs. Its node has no need to come: it is there."""
    claim, now = record.value, world.clock.now()
    node_class = world.server.get(kinds.NODE_CLASS, "", claim.spec.node_class_ref.name).value
    of = claim.metadata.labels
    zone, kind, bought = of[labels.ZONE], of[labels.INSTANCE_TYPE], of[labels.CAPACITY_TYPE]
    region = world.ec2.region
    tags = predecessor.resource_tags(claim.pool_name, node_class.name, cluster)
    subnet = next(one.id for one in node_class.status.subnets if one.zone == zone)
    world.ec2.used_addresses[subnet] = world.ec2.used_addresses.get(subnet, 0) + 1
    world.ec2.instances[claim.instance_id] = Machine(
        id=claim.instance_id,
        number=len(world.ec2.instances) + 1,
        instance_type=kind,
        zone=zone,
        zone_id=of[labels.ZONE_ID],
        capacity_type=bought,
        image_id=claim.status.image_id,
        subnet_id=subnet,
        security_group_ids=tuple(one.id for one in node_class.status.security_groups),
        user_data="",
        volumes=(),
        launched=now,
        visible_at=now,
        tags={**tags, "karpenter.sh/nodeclaim": claim.name, "Name": claim.status.node_name},
        price=region.spot[kind, zone] if bought == labels.SPOT else region.on_demand[kind],
        state="running",
        profile=node_class.status.instance_profile,
    )


def _image(one: ResolvedImage) -> Image:
    """The image behind a row of `status.amis`."""
    wanted = {entry.key: entry for entry in one.requirements}
    accelerated = [key for key in (_GPU, _ACCELERATOR) if key in wanted and wanted[key].operator == "Exists"]
    variant = {_GPU: "nvidia", _ACCELERATOR: "neuron"}[accelerated[0]] if accelerated else "standard"
    return Image(one.id, one.name, wanted[labels.ARCH].values[0], "2026-11-01T10:00:00.000Z", variant=variant)


def _with_types_of(region: Region, claims: Iterable[Manifest]) -> Region:
    """The region with the types of these claims too, as far as their labels describe them."""
    types = {info.name: info for info in map(_type, claims) if info.name not in region.types}
    costs = {name: prices.on_demand_estimate(name, info.vcpus, info.memory_mib) or 0 for name, info in types.items()}
    spot = {(name, zone): spot_price(costs[name], name, zone) for name in types for zone in region.zones}
    return replace(
        region,
        types=dict(sorted({**region.types, **types}.items())),
        zones_by_type={**region.zones_by_type, **dict.fromkeys(types, frozenset(region.zones))},
        on_demand={**region.on_demand, **costs},
        spot={**region.spot, **spot},
    )


def _type(claim: Manifest) -> InstanceTypeInfo:
    of = claim["metadata"]["labels"]
    return InstanceTypeInfo(
        of[labels.INSTANCE_TYPE],
        ("x86_64",),
        int(of["karpenter.k8s.aws/instance-cpu"]),
        int(of["karpenter.k8s.aws/instance-memory"]),
        max_interfaces=4,
        ipv4_per_interface=15,
        manufacturer=of.get("karpenter.k8s.aws/instance-cpu-manufacturer", ""),
        encryption_in_transit=of.get("karpenter.k8s.aws/instance-encryption-in-transit-supported") == "true",
    )
