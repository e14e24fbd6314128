"""A scrape of a controller that has seen 5,000 nodes and 100,000 pods: how long it takes, how many series it brings.

The telemetry is told of objects as the loop tells it, in this process; nothing is read from anywhere. Nodes are such as
EC2's are (labels of their type, conditions), and a few are in trouble; a thousand pods wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any, Final

from benchmarks.clusters import catalogue
from benchmarks.table import Row, milliseconds, quantile
from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue
from kerf.model.kubernetes.objects import Container, Node, Pod, PodCondition, PodSpec, PodStatus, ResourceNeeds
from kerf.model.plan import Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.catalogue.listing import DETAILS
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log.logs import silent
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta, OwnerReference, decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

NODES, PODS, WAITING = 5_000, 100_000, 1_000
SECONDS, SERIES = 0.2, 20_000
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_POOLS, _SERVICES, _SCRAPES = 10, 200, 7
#: One node in so many is in trouble.
_TROUBLED: Final = 100


def rows() -> list[Row]:
    """Without anything that has to be asked for, and with all of that."""
    return [*_measured((), "by default", bounded=True), *_measured(DETAILS, "DETAILED_METRICS=all", bounded=False)]


def _measured(details: Collection[str], how: str, *, bounded: bool) -> list[Row]:
    telemetry = told(NODES, PODS, WAITING, details)
    took, text = [], b""
    for _ in range(_SCRAPES):
        began = perf_counter()
        text = telemetry.metrics.text()
        took.append(perf_counter() - began)
    count, slow = len(series(text)), quantile(took[1:], 0.5)
    size = f"scrape, {NODES} nodes, {PODS} pods, {how}"
    targets = (f"≤ {SECONDS * 1000:.0f} ms", f"≤ {SERIES}") if bounded else ("", "")
    return [
        Row(size, milliseconds(slow), targets[0], not bounded or slow <= SECONDS),
        Row("  the first one", milliseconds(took[0])),
        Row("  series", f"{count}", targets[1], not bounded or count <= SERIES),
        Row("  text", f"{len(text) / 1e6:.1f} MB"),
    ]


def series(text: bytes) -> list[str]:
    """The lines that have a value."""
    return [line for line in text.decode().splitlines() if line and not line.startswith("#")]


# --- what the telemetry has been told ---------------------------------------------------------------------------
def told(nodes: int, pods: int, waiting: int, details: Collection[str] = ()) -> Telemetry:
    """A leader's, which has seen so many nodes, pods that run there, and pods that wait."""
    world = World()
    clock = VirtualClock(NOW)
    telemetry = Telemetry(silent(), Metrics(details=details).with_process(), EventWriter(world.kube, clock), clock)
    types = catalogue()
    pools = {name: _pool(name) for name in (f"pool-{number}" for number in range(_POOLS))}
    for pool in pools.values():
        telemetry.object_changed(kinds.NODE_POOL, None, pool)
    for number in range(nodes):
        for kind, value in _node(number, types):
            telemetry.object_changed(kind, None, value)
    shapes = [_shape(number) for number in range(_SERVICES)]
    for number in range(pods + waiting):
        telemetry.object_changed(kinds.POD, None, _pod(number, shapes, nodes if number < pods else 0))
    catalogues = {"default": types}
    seen = Snapshot(now=NOW, settings=Settings(cluster_name="c"), node_pools=pools, catalogues=catalogues)
    telemetry.planned(Plan(), seen)
    return telemetry


def _pool(name: str) -> NodePool:
    reference = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    amounts = {"cpu": "1000", "memory": "4000Gi", "nodes": "500", "pods": "10000", "ephemeral-storage": "10Ti"}
    conditions = ("ValidationSucceeded", "NodeClassReady", "NodeRegistrationHealthy", "Ready")
    return decode(
        NodePool,
        {
            "metadata": {"name": name, "uid": name},
            "spec": {"limits": amounts, "template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
            "status": {"resources": amounts, "conditions": [_condition(type_) for type_ in conditions]},
        },
    )


def _node(number: int, types: Catalogue) -> Iterator[tuple[kinds.Kind, Any]]:
    """A node and its claim."""
    name, instance_type = (
        f"ip-10-0-{number // 250}-{number % 250}.us-west-2.compute.internal",
        types[number % len(types)],
    )
    market, sound = instance_type.offerings[number % len(instance_type.offerings)], number % _TROUBLED != 0
    own = {
        **{f"{labels.AWS_GROUP}/{suffix}": "value" for suffix in labels.AWS_SUFFIXES[:16]},
        labels.NODEPOOL: f"pool-{number % _POOLS}",
        labels.NODECLASS: "default",
        labels.INSTANCE_TYPE: instance_type.name,
        labels.ZONE: market.zone,
        labels.CAPACITY_TYPE: market.capacity_type,
        labels.INITIALIZED: "true",
        labels.REGISTERED: "true",
    }
    amounts = {"cpu": "15890m", "memory": "60Gi", "pods": "110", "ephemeral-storage": "90Gi", "hugepages-2Mi": "0"}
    steps = ("Launched", "Registered", "Initialized", "ConsistentStateFound", "Consolidatable", "Ready")
    pressures = ("MemoryPressure", "DiskPressure", "PIDPressure")
    born = {"uid": f"u-{number}", "labels": own, "creationTimestamp": "2025-12-31T22:00:00Z"}
    conditions = [_condition(type_) for type_ in steps] + ([] if sound else [_condition("Drifted")])
    yield (
        kinds.NODE_CLAIM,
        decode(
            NodeClaim,
            {
                "metadata": {"name": f"pool-{number % _POOLS}-{number:05x}", **born},
                "spec": {"nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}},
                "status": {
                    "providerID": f"aws:///us-west-2a/i-{number:017x}",
                    "nodeName": name,
                    "conditions": conditions,
                },
            },
        ),
    )
    ready = [*(_condition(type_, "False") for type_ in pressures), _condition("Ready", "True" if sound else "False")]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
    yield kinds.NODE, decode(Node, {"metadata": {"name": name, **born}, "status": status})


def _condition(type_: str, status: str = "True") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": type_, "lastTransitionTime": "2025-12-31T22:00:00Z"}


def _shape(number: int) -> tuple[Container, ...]:
    """The containers of a service: the same objects in all of its pods."""
    needs = ResourceNeeds(requests={"cpu": f"{100 + number}m", "memory": "256Mi"}, limits={"memory": "512Mi"})
    return (Container(name="app", resources=needs),)


def _pod(number: int, shapes: list[tuple[Container, ...]], nodes: int) -> Pod:
    """It runs on one of so many nodes, or waits for one."""
    service = number % len(shapes)
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=f"service-{service}-5d4f", uid="r", controller=True
    )
    place = f"ip-10-0-{number % nodes // 250}-{number % nodes % 250}.us-west-2.compute.internal" if nodes else ""
    scheduled = PodCondition(
        type="PodScheduled", status="True" if nodes else "False", reason="" if nodes else "Unschedulable"
    )
    meta = ObjectMeta(
        name=f"service-{service}-5d4f-{number:05x}",
        namespace="shop",
        uid=f"p-{number}",
        owner_references=(owner,),
        creation_timestamp=NOW - timedelta(seconds=number % 600),
    )
    status = PodStatus(phase="Running" if nodes else "Pending", conditions=(scheduled,))
    return Pod(metadata=meta, spec=PodSpec(node_name=place, containers=shapes[service]), status=status)
