"""Small worlds for scheduling tests: the catalogue of the scheduling reference (§11), pods, pools, nodes, claims.

Every builder takes manifest-like keyword arguments, so that a test shows only what it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.cluster import build
from kerf.model.kubernetes.objects import DaemonSet, Node, Pod
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.solve import Solution, solve
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimStatus
from kerf_api.v1.nodepool import NodePool

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ZONES = ("z1", "z2", "z3")
MARKETS = (("z1", "spot"), ("z2", "spot"), ("z1", "on-demand"), ("z2", "on-demand"), ("z3", "on-demand"))
SIZE = "karpenter.k8s.aws/instance-cpu"
GPU = "nvidia.com/gpu"


def instance_type(
    name: str,
    cpu: int,
    memory_gib: int,
    *,
    arch: str = "amd64",
    pods: int = 5,
    price: int | None = None,
    markets: Sequence[tuple[str, str]] = MARKETS,
    extra: Mapping[str, int] | None = None,
) -> InstanceType:
    """Overhead 100m and 10 MiB; the price is 0.1 dollars per core and GiB unless it is given (in micro-dollars)."""
    cost = price if price is not None else 100_000 * (cpu + memory_gib)
    capacity = {"cpu": cpu * 1000, "memory": memory_gib << 30, "pods": pods, **(extra or {})}
    allocatable = {**capacity, "cpu": cpu * 1000 - 100, "memory": (memory_gib << 30) - (10 << 20)}
    rows = [
        requirement(labels.INSTANCE_TYPE, IN, (name,)),
        requirement(labels.ARCH, IN, (arch,)),
        requirement(labels.OS, IN, ("linux",)),
        requirement(SIZE, IN, (str(cpu),)),
        requirement(labels.ZONE, IN, {zone for zone, _ in markets}),
        requirement(labels.CAPACITY_TYPE, IN, {kind for _, kind in markets}),
        requirement(f"{labels.AWS_GROUP}/instance-gpu-name", IN if extra else DOES_NOT_EXIST, (name,) if extra else ()),
    ]
    offerings = tuple(Offering(name, zone, kind, cost) for zone, kind in markets)
    return InstanceType(name, Requirements(rows), Resources(capacity), Resources(allocatable), offerings)


CATALOGUE: Catalogue = (
    instance_type("default", 4, 4),
    instance_type("small", 2, 2),
    instance_type("gpu-a", 4, 4, extra={"example.com/gpu-a": 2}),
    instance_type("gpu-b", 4, 4, extra={"example.com/gpu-b": 2}),
    instance_type("arm", 16, 128, arch="arm64"),
    instance_type("single-pod", 4, 4, pods=1),
)


def ladder(count: int) -> Catalogue:
    """`count` types, the i-th with i cores, 2i GiB and 10i pods."""
    return tuple(instance_type(f"step-{i}", i, 2 * i, pods=10 * i) for i in range(1, count + 1))


def pool(name: str = "default", **spec: Any) -> NodePool:
    """Ready. Keywords: requirements, taints, startupTaints, expireAfter, labels, annotations, ready; rest: spec."""
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    inner: dict[str, Any] = {
        k: spec.pop(k) for k in ("requirements", "taints", "startupTaints", "expireAfter") if k in spec
    }
    meta: dict[str, Any] = {k: spec.pop(k) for k in ("labels", "annotations") if k in spec}
    template: dict[str, Any] = {"metadata": meta, "spec": {"nodeClassRef": ref, **inner}}
    ready = spec.pop("ready", "True")
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    manifest: dict[str, Any] = {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"template": template, **spec},
        "status": status,
    }
    return decode(NodePool, manifest)


def pod(name: str, cpu: str = "100m", memory: str = "10Mi", *, node: str = "", **spec: Any) -> Pod:
    """Pending, or running on `node`. Keywords: namespace, labels, annotations, requests, ports, owner; rest: spec."""
    requests = {"cpu": cpu, "memory": memory, **spec.pop("requests", {})}
    container = {"resources": {"requests": requests}, "ports": spec.pop("ports", [])}
    meta: dict[str, Any] = {k: spec.pop(k) for k in ("labels", "annotations") if k in spec}
    owner = spec.pop("owner", None)
    if owner is not None:
        meta["ownerReferences"] = [owner]
    namespace = spec.pop("namespace", "default")
    refused = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    status = {"phase": "Running"} if node else {"phase": "Pending", "conditions": refused}
    manifest = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", **meta},
        "spec": {"containers": [container], "nodeName": node, **spec},
        "status": status,
    }
    return decode(Pod, manifest)


def replicas(count: int, name: str, *args: Any, **spec: Any) -> list[Pod]:
    return [pod(f"{name}-{i}", *args, **spec) for i in range(count)]


def daemon_set(name: str, cpu: str = "100m", memory: str = "10Mi", **spec: Any) -> DaemonSet:
    like = pod(name, cpu, memory, **spec)
    return DaemonSet(
        metadata=msgspec.structs.replace(like.metadata, labels={}),
        spec=decode(type(DaemonSet(metadata=like.metadata).spec), {"template": msgspec.to_builtins(like)}),
    )


def node(name: str, zone: str = "z1", cpu: str = "4", memory: str = "4Gi", **extra: Any) -> Node:
    """Initialised; unmanaged unless a claim has its provider ID. Keywords: labels, taints, pods, allocatable."""
    own = {
        labels.HOSTNAME: name,
        labels.ZONE: zone,
        labels.ARCH: "amd64",
        labels.OS: "linux",
        labels.CAPACITY_TYPE: "on-demand",
        labels.REGISTERED: "true",
        labels.INITIALIZED: "true",
        **extra.get("labels", {}),
    }
    amounts = {"cpu": cpu, "memory": memory, "pods": str(extra.get("pods", 110)), **extra.get("allocatable", {})}
    manifest = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": own},
        "spec": {"providerID": f"aws:///{zone}/i-{name}", "taints": extra.get("taints", [])},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    return decode(Node, manifest)


def world(*objects: Any, catalogue: Catalogue = CATALOGUE, now: datetime = NOW, **facts: Any) -> Snapshot:
    """A snapshot of objects (or lists of them); keywords that are settings become settings."""
    flat = [o for entry in objects for o in (entry if isinstance(entry, list) else [entry])]
    names = set(Settings.__dataclass_fields__)
    settings = Settings("test", **{k: facts.pop(k) for k in list(facts) if k in names})
    return build(flat, now=now, settings=settings, **{"catalogues": {"default": catalogue}, **facts})


def solved(*objects: Any, **facts: Any) -> Solution:
    """The solution for all pending pods of a world."""
    snapshot = world(*objects, **facts)
    return solve(snapshot, list(snapshot.pods.pending.values()))


def spread(key: str = labels.ZONE, skew: int = 1, app: str = "web", **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def between(kind: str, key: str = labels.HOSTNAME, app: str = "web", **more: Any) -> dict[str, Any]:
    """An affinity with one required `podAffinity` or `podAntiAffinity` term."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def preferences(number: int, kind: str = "podAntiAffinity", first: int = 0) -> dict[str, Any]:
    """An affinity with so many preferred terms, one for each app from the `first` on."""
    selectors = ({"matchLabels": {"app": f"a{first + i}"}} for i in range(number))
    terms = [{"topologyKey": labels.HOSTNAME, "labelSelector": selector} for selector in selectors]
    rows = [{"weight": 1 + i % 100, "podAffinityTerm": term} for i, term in enumerate(terms)]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": rows}}


def node_affinity(*terms: Iterable[tuple[str, str, list[str]]]) -> dict[str, Any]:
    """Required node affinity: each argument is an OR term of (key, operator, values)."""
    rows = [{"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in term]} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rows}}}


def by_name(operator: str, *names: str) -> dict[str, Any]:
    """A term of a node selector by the field of a node's name."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


def in_zones(*zones: str) -> dict[str, Any]:
    """A term of a node selector by zones."""
    return {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": list(zones)}]}


def any_term(*terms: dict[str, Any]) -> dict[str, Any]:
    """The part of a pod's spec that requires one of these terms of its node."""
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def counts(solution: Solution, snapshot: Snapshot | None = None) -> list[int]:
    """How many pods go to each zone that gets any on new nodes, sorted."""
    zones: dict[tuple[str, ...], int] = {}
    for new in solution.new_nodes:
        zones[new.zones] = zones.get(new.zones, 0) + len(new.pods)
    return sorted(zones.values())


def claims(snapshot: Snapshot, solution: Solution) -> list[NodeClaim]:
    """The claims of a solution, as the API server would store them."""
    made = [to_claim(snapshot, new, salt="test") for new in solution.new_nodes]
    return [msgspec.structs.replace(c, metadata=msgspec.structs.replace(c.metadata, uid=f"uid-{c.name}")) for c in made]


def launched(claim: NodeClaim, snapshot: Snapshot, choice: int = 0) -> NodeClaim:
    """The claim after its launch as the `choice`-th (type, market) that it allows."""
    requirements = claim.requirements()
    options = [
        (t, o)
        for t in snapshot.catalogues["default"]
        if requirements.allowed(labels.INSTANCE_TYPE).has(t.name)
        for o in t.offerings
        if o.suits(requirements)
    ]
    return launched_as(claim, *options[choice % len(options)])


def launched_as(claim: NodeClaim, chosen: InstanceType, offering: Offering) -> NodeClaim:
    """The claim after its launch as this type, at this offering."""
    single = {k: min(r.values) for k, r in chosen.requirements.items() if len(r.values) == 1 and not r.complement}
    own = {**single, **{key: min(row.values) for key, row in offering.requirements().items()}}
    status = NodeClaimStatus(
        provider_id=f"aws:///{offering.zone}/i-{claim.name}",
        capacity=chosen.capacity.texts(),
        allocatable=chosen.allocatable.texts(),
    )
    meta = msgspec.structs.replace(claim.metadata, labels={**claim.metadata.labels, **own})
    return msgspec.structs.replace(claim, metadata=meta, status=status)
