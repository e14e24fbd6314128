"""Half-empty clusters to consolidate, made from a seed: Deployments were scheduled, and then lost most of their pods.

The nodes are those that the scheduler bought for all pods, one NodePool, all initialised and quiet for two hours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import msgspec

from benchmarks.scheduling import REFUSED, read_catalogue
from benchmarks.workloads import families, pod
from kerf.kube.interning import Interner
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import Node, Pod, PodCondition, PodStatus
from kerf.model.plan import Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

Json = dict[str, Any]

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SINCE: Final = "2025-12-31T22:00:00Z"
_CPU_MILLIS: Final = (100, 250, 250, 500, 500, 1000)
_MEMORY_MIB: Final = (128, 256, 512, 1024, 2048)
_CLASS: Final = "default"
_CONDITIONS: Final = ("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
_STATUS: Final = {
    "conditions": [
        {"type": name, "status": "True", "reason": name, "lastTransitionTime": _SINCE} for name in _CONDITIONS
    ]
}


RUNNING: Final = PodStatus(
    phase="Running",
    start_time=datetime(2025, 12, 31, 22, tzinfo=UTC),
    conditions=(PodCondition(type="Ready", status="True"),),
)


@dataclass(frozen=True)
class Shape:
    """What a cluster is like. `share` of the pods stay, drawn node by node between none and twice that when `skewed`.

    `wishes` gives what the pods of a Deployment (by number) say besides their requests.
    """

    pods: int
    share: float = 0.4
    deployments: int = 20
    most_cpus: int = 16
    market: str = labels.ON_DEMAND
    skewed: bool = False
    seed: int = 1
    wishes: Callable[[int], Json] = field(default=lambda number: {})


def catalogue(most_cpus: int = 16, market: str = labels.ON_DEMAND) -> Catalogue:
    """The types of `benchmarks.workloads.families` up to so many CPUs, in one market."""
    return read_catalogue(json.dumps(narrowed(families(), most_cpus, market)).encode())


def narrowed(rows: Iterable[Json], most_cpus: int, market: str) -> list[Json]:
    """The types of a catalogue up to so many CPUs, with the offerings of one market."""
    return [
        {**row, "offerings": [one for one in row["offerings"] if one["capacityType"] == market]}
        for row in rows
        if row["allocatable"]["cpu"] <= most_cpus * 1000
    ]


def node_pool(**disruption: Any) -> NodePool:
    """It consolidates at once, all nodes if need be."""
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": _CLASS}
    spec = {"template": {"spec": {"nodeClassRef": ref, "requirements": []}}}
    rule = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **disruption}
    return decode(
        NodePool, {"metadata": {"name": "default", "uid": "p"}, "spec": {**spec, "disruption": rule}, "status": _STATUS}
    )


@dataclass
class Yard:
    """Nodes by the names of their claims, and pods by their keys; what is there is changed in place."""

    types: Catalogue
    settings: Settings
    nodes: dict[str, tuple[NodeClaim, Node]] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        return build(self.objects(), **self.facts())

    def objects(self) -> list[Any]:
        return [node_pool(), *(value for pair in self.nodes.values() for value in pair), *self.pods.values()]

    def facts(self) -> dict[str, Any]:
        """What a snapshot holds besides objects."""
        known = {"catalogues": {_CLASS: self.types}, "fresh_at": dict.fromkeys(Source, NOW)}
        return {"now": NOW, "settings": self.settings, **known}

    def buy(self, new: Iterable[NewNode], prefix: str) -> None:
        """A node for each planned one, of its cheapest offering."""
        known = {type_.name: type_ for type_ in self.types}
        for number, one in enumerate(new):
            name = f"{prefix}{number:05}"
            self.nodes[name] = _node(name, known[one.instance_types[0]], one)

    def bind(self, key: str, claim_name: str) -> None:
        """The pod runs on that claim's node; without a name it waits for one."""
        pod = self.pods[key]
        node = f"node-{claim_name}" if claim_name else ""
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.pods[key] = msgspec.structs.replace(pod, spec=spec, status=RUNNING if node else REFUSED)


def half_empty(shape: Shape, settings: Settings | None = None) -> Yard:
    """Such a cluster, with nothing pending."""
    dice, sold = Random(shape.seed), catalogue(shape.most_cpus, shape.market)
    yard = Yard(sold, settings or Settings(cluster_name="benchmark"))
    yard.pods = {pod.key: pod for pod in _pods(shape, dice)}
    bought = solve(yard.snapshot(), list(yard.pods.values())).new_nodes
    yard.buy(bought, "n")
    for name, new in zip(yard.nodes, bought, strict=True):
        share = shape.share * (2 * dice.random() if shape.skewed else 1)
        for key in new.pods:
            if dice.random() < share:
                yard.bind(key, name)
            else:
                del yard.pods[key]
    return yard


def pod_sizes(deployments: int, dice: Random) -> list[tuple[int, int]]:
    """What a pod of each Deployment asks for: thousandths of a CPU, and MiB."""
    return [(dice.choice(_CPU_MILLIS), dice.choice(_MEMORY_MIB)) for _ in range(deployments)]


def _pods(shape: Shape, dice: Random) -> Iterator[Pod]:
    """Those of one Deployment share their parts, as they do in the worker process that thinks about consolidation."""
    shared = Interner()
    sizes = pod_sizes(shape.deployments, dice)
    for number in range(shape.pods):
        which = number % shape.deployments
        name, app = f"d{which}-{number}", f"d{which}"
        made = pod(name, {"app": app}, *sizes[which], **shape.wishes(which))
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
        made["metadata"] |= {"uid": name, "ownerReferences": [owner]}
        yield msgspec.structs.replace(shared.pod(decode(Pod, made)), status=REFUSED)


def _node(name: str, type_: InstanceType, new: NewNode) -> tuple[NodeClaim, Node]:
    """The claim and the node that came of a planned one, as its cheapest offering."""
    bought = min((o for o in type_.offerings if _admitted(o, new)), key=lambda o: (o.price, o.zone, o.capacity_type))
    own = {
        labels.NODEPOOL: "default",
        labels.INSTANCE_TYPE: type_.name,
        labels.ZONE: bought.zone,
        labels.CAPACITY_TYPE: bought.capacity_type,
        labels.ARCH: "amd64",
        labels.OS: "linux",
        labels.HOSTNAME: f"node-{name}",
        labels.REGISTERED: "true",
        labels.INITIALIZED: "true",
    }
    provider_id = f"aws:///{bought.zone}/i-{name}"
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": _CLASS}
    meta: Mapping[str, Any] = {"labels": own, "creationTimestamp": _SINCE, "generation": 1}
    room = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in type_.allocatable.items()}
    status = {"providerID": provider_id, "nodeName": f"node-{name}", **_STATUS}
    claim = {"metadata": {**meta, "name": name, "uid": f"c-{name}"}, "spec": {"nodeClassRef": ref}, "status": status}
    node = {
        "metadata": {**meta, "name": f"node-{name}", "uid": f"n-{name}"},
        "spec": {"providerID": provider_id},
        "status": {**_STATUS, "allocatable": room, "capacity": room},
    }
    return decode(NodeClaim, claim), decode(Node, node)


def _admitted(offering: Offering, new: NewNode) -> bool:
    allowed = new.requirements.allowed
    return allowed(labels.ZONE).has(offering.zone) and allowed(labels.CAPACITY_TYPE).has(offering.capacity_type)
