"""Planted violations: small worlds, each with a right answer and the same answer with one rule broken.

The answers are written by hand; no scheduler is asked. A pod that an answer does not mention is unplaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from kerf.model.aws.instance_type import Catalogue
from kerf.model.kubernetes import objects
from kerf.model.kubernetes.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources, total
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.referee.needs import requests
from tests.referee.planned import types_of
from tests.unit.scheduling import worlds as w

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class New:
    """A node to plan. `wants` narrows labels, `loose` forgets what the pool wants of some; None is as it should be."""

    pods: tuple[str, ...]
    types: tuple[str, ...] = ("default",)
    wants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pool: str = "default"
    price: int | None = None
    requests: Mapping[str, int] | None = None
    loose: tuple[str, ...] = ()


def new(*pods: str, types: tuple[str, ...] = ("default",), **wants: Any) -> New:
    """Keywords: pool, price, requests, loose, zone, market (each one value or several), labels."""
    known = {name: wants.pop(name) for name in ("pool", "price", "requests", "loose") if name in wants}
    narrowed = {k: v if isinstance(v, tuple) else (v,) for k, v in wants.pop("labels", {}).items()}
    for key, word in ((labels.ZONE, "zone"), (labels.CAPACITY_TYPE, "market")):
        if word in wants:
            value = wants.pop(word)
            narrowed[key] = value if isinstance(value, tuple) else (value,)
    return New(pods, types, narrowed, **known)


class Planned(NamedTuple):
    pool: str
    requirements: Requirements
    instance_types: tuple[str, ...]
    requests: Resources
    pods: tuple[str, ...]
    price: int


class Answer(NamedTuple):
    placed: Mapping[str, str]
    new_nodes: tuple[Planned, ...]
    unplaced: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer: pods to nodes that exist, and nodes to plan. `silent` pods have no answer at all."""

    placed: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[New, ...] = ()
    silent: tuple[str, ...] = ()

    def of(self, snapshot: Snapshot) -> Answer:
        placed = {_key(pod): target if "/" in target else f"node/{target}" for pod, target in self.placed.items()}
        placed = {pod: target.removeprefix("claim/") for pod, target in placed.items()}
        nodes = tuple(_planned(snapshot, one) for one in self.nodes)
        named = {*placed, *(key for node in nodes for key in node.pods), *map(_key, self.silent)}
        return Answer(placed, nodes, {key: "" for key in snapshot.pods.pending if key not in named})


def put(*nodes: New, silent: tuple[str, ...] = (), **placed: str) -> Choice:
    return Choice({pod.replace("_", "-"): target for pod, target in placed.items()}, nodes, silent)


def _key(pod: str) -> str:
    return pod if "/" in pod else f"default/{pod}"


def _planned(snapshot: Snapshot, one: New) -> Planned:
    pool = snapshot.node_pools[one.pool]
    wanted = pool.requirements() & Requirements(requirement(k, IN, v) for k, v in one.wants.items())
    known = types_of(snapshot, pool)
    pods = tuple(_key(pod) for pod in one.pods)
    needs = total(requests(snapshot.pods[pod]) for pod in pods)
    first = known.get(one.types[0]) if one.types else None
    price = min((o.price for o in first.offerings if o.suits(wanted)), default=0) if first is not None else 0
    return Planned(
        one.pool,
        wanted.without(*one.loose),
        one.types,
        Resources(one.requests) if one.requests is not None else needs,
        pods,
        price if one.price is None else one.price,
    )


@dataclass(frozen=True, slots=True)
class Plant:
    """`wrong` breaks `rule` and no other; `right` breaks none. `exclude` are nodes that are to go."""

    name: str
    rule: str
    world: tuple[Any, ...]
    right: Choice
    wrong: Choice
    catalogue: Catalogue = w.CATALOGUE
    facts: Mapping[str, Any] = field(default_factory=dict)
    exclude: frozenset[str] = frozenset()

    def snapshot(self) -> Snapshot:
        return w.world(*self.world, catalogue=self.catalogue, **self.facts)


# --- objects that the worlds have no word for ---------------------------------------------------------------------
def namespace(name: str, **own: str) -> objects.Namespace:
    return decode(objects.Namespace, {"metadata": {"name": name, "labels": own}})


def going(pod: objects.Pod, hours: int = 0) -> objects.Pod:
    """The pod on its way out, for so long."""
    end = w.NOW + timedelta(hours=hours)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=end))


def resized(pod: objects.Pod, cpu: str, reason: str = "Deferred") -> objects.Pod:
    """The pod while its node still gives it so much, and has not granted the resize."""
    row = objects.ContainerStatus(resources=objects.Requested(requests={"cpu": cpu}))
    waits = objects.PodCondition(type="PodResizePending", status="True", reason=reason)
    status = msgspec.structs.replace(pod.status, container_statuses=(row,), conditions=(waits,))
    return msgspec.structs.replace(pod, status=status)


def leaving_node(name: str) -> objects.Node:
    """A node that is being deleted."""
    node = w.node(name)
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, deletion_timestamp=w.NOW))


def cordoned(name: str) -> objects.Node:
    """A node that takes no new pods."""
    node = w.node(name)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=True))


def volume_claim(
    name: str,
    volume: str = "",
    storage: str | None = None,
    *,
    bound: bool = True,
    phase: str = "",
    modes: tuple[str, ...] = (),
) -> PersistentVolumeClaim:
    """`bound`: to the volume that it names."""
    notes = {"pv.kubernetes.io/bind-completed": "yes"} if volume and bound else {}
    meta = {"name": name, "namespace": "default", "annotations": notes}
    spec = {"volumeName": volume, "storageClassName": storage, "accessModes": list(modes)}
    return decode(PersistentVolumeClaim, {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def volume(name: str, key: str, *values: str, source: str = "csi") -> PersistentVolume:
    """An empty `key` makes an empty term."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}] if key else []}]
    made = {"csi": {"driver": "ebs.csi.aws.com"}, "awsElasticBlockStore": {"volumeID": "vol-1"}}[source]
    spec = {source: made, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return decode(PersistentVolume, {"metadata": {"name": name}, "spec": spec})


def labelled_volume(name: str, key: str, value: str) -> PersistentVolume:
    """Without a node affinity."""
    return decode(PersistentVolume, {"metadata": {"name": name, "labels": {key: value}}, "spec": {}})


def storage_class(name: str, *zones: str, mode: str = "WaitForFirstConsumer") -> StorageClass:
    rows = [{"key": "topology.ebs.csi.aws.com/zone", "values": list(zones)}]
    topologies = [{"matchLabelExpressions": rows}] if zones else []
    manifest = {"metadata": {"name": name}, "volumeBindingMode": mode, "allowedTopologies": topologies}
    return decode(StorageClass, {"provisioner": "ebs.csi.aws.com", **manifest})


def csi_node(name: str, most: int, driver: str = "ebs.csi.aws.com") -> CSINode:
    """How many volumes a node can attach."""
    row = {"name": driver, "allocatable": {"count": most}}
    return decode(CSINode, {"metadata": {"name": name}, "spec": {"drivers": [row]}})


def mounts(*claims: str) -> list[Json]:
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]


def in_flight(name: str, *types: str, reservation: str = "") -> NodeClaim:
    """A claim that has not been launched: on demand, or on a reservation."""
    pool, market = w.pool(), "reserved" if reservation else "on-demand"
    rows = [
        {"key": labels.INSTANCE_TYPE, "operator": "In", "values": list(types)},
        {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [market]},
    ]
    if reservation:
        rows.append({"key": labels.RESERVATION_ID, "operator": "In", "values": [reservation]})
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    meta = {"name": name, "uid": f"uid-{name}", "labels": pool.template_labels()}
    return decode(NodeClaim, {"metadata": meta, "spec": {"nodeClassRef": ref, "requirements": rows}})


def container(cpu: str, **more: Any) -> Json:
    return {"resources": {"requests": {"cpu": cpu}}, **more}
