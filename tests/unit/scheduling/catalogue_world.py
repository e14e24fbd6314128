"""The fixture of the catalogue of behaviours (scheduling reference §11): its types and zones, and passes over worlds.

Three zones; every type can be had as spot in z1 and z2 and on demand everywhere; 100m of CPU and 10 MiB are the
system's, five pods fit on a node, and the price is a tenth of a dollar per core and GiB, a dollar more with GPUs. A
pass is what provisioning makes of a world's pending pods; every pass is shown to the referee. A `Story` is a series of
passes between which what was planned comes true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.kinds import ref
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import Plan
from kerf.model.snapshot import Batch, Snapshot
from kerf.provisioning.pending import pending_pods, rehoused_pods
from kerf.provisioning.provision import provision
from kerf.scheduling.offerings.prices import compatible
from kerf.scheduling.solve import NewNode, Solution, solve
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, IN, Requirements, requirement
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.referee import violations
from tests.unit.scheduling import worlds as w

#: The label by which types are small or large, and one that only some of them have.
SIZE = "karpenter.k8s.aws/instance-size"
SPECIAL = "karpenter.k8s.aws/instance-gpu-manufacturer"


def machine(
    name: str,
    cpu: int,
    memory: int,
    *,
    gpu: str = "",
    own: Mapping[str, str] | None = None,
    prices: Mapping[tuple[str, str], int] | None = None,
    **more: Any,
) -> InstanceType:
    """A type of the fixture; `own` are further labels, `prices` (by market, micro-dollars) replace the offerings."""
    price = more.pop("price", 100_000 * (cpu + memory) + (1_000_000 if gpu else 0))
    extra = {gpu: 2} if gpu else None
    markets = tuple(prices) if prices is not None else more.pop("markets", w.MARKETS)
    made = w.instance_type(name, cpu, memory, price=price, extra=extra, markets=markets, **more)
    absent = [] if SPECIAL in (own or {}) else [requirement(SPECIAL, DOES_NOT_EXIST)]
    rows = made.requirements & Requirements([*(requirement(k, IN, (v,)) for k, v in (own or {}).items()), *absent])
    offerings = made.offerings
    if prices is not None:
        offerings = tuple(Offering(name, zone, kind, cost) for (zone, kind), cost in prices.items())
    return InstanceType(name, rows, made.capacity, made.allocatable, offerings)


GPU_A, GPU_B = "example.com/gpu-a", "example.com/gpu-b"
CATALOGUE: Catalogue = (
    machine("default", 4, 4),
    machine("small", 2, 2),
    machine("gpu-a", 4, 4, gpu=GPU_A),
    machine("gpu-b", 4, 4, gpu=GPU_B),
    machine("arm", 16, 128, arch="arm64"),
    machine("single-pod", 4, 4, pods=1),
)


def ladder(count: int) -> Catalogue:
    """`count` types, the i-th with i cores, 2i GiB and 10i pods."""
    return tuple(machine(f"step-{i}", i, 2 * i, pods=10 * i) for i in range(1, count + 1))


# --- passes -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Pass:
    """A snapshot, the pods that were asked about, and the answer; `refused` were not even asked about."""

    snapshot: Snapshot
    pods: Sequence[Pod]
    solution: Solution
    refused: Mapping[str, str]

    @property
    def nodes(self) -> tuple[NewNode, ...]:
        return self.solution.new_nodes

    @property
    def node(self) -> NewNode:
        """The only new node, with every pod in its place."""
        assert not self.pending, self.why()
        assert len(self.nodes) == 1, f"{len(self.nodes)} new nodes"
        return self.nodes[0]

    @property
    def placed(self) -> dict[str, str]:
        """The names of pods that go to nodes that exist, with the key of the node."""
        return {_name(key): target for key, target in self.solution.placed.items()}

    @property
    def pending(self) -> list[str]:
        return sorted(_name(key) for key in (*self.refused, *self.solution.unplaced))

    def why(self, name: str = "") -> str:
        """What is said about the pods (or one pod) without a place."""
        texts = {**self.refused, **{key: str(answer) for key, answer in self.solution.unplaced.items()}}
        return "; ".join(text for key, text in sorted(texts.items()) if not name or _name(key) == name)

    def of(self, name: str) -> NewNode:
        """The new node of a pod."""
        found = [node for node in self.nodes if any(_name(key) == name for key in node.pods)]
        assert found, f"no new node is for {name}"
        return found[0]

    def together(self, *names: str) -> bool:
        """Whether these pods share a new node."""
        return len({id(self.of(name)) for name in names}) == 1

    def types(self) -> list[str]:
        """The types that would be launched, sorted."""
        return sorted(node.instance_types[0] for node in self.nodes)

    def sizes(self) -> list[int]:
        """How many pods the new nodes have, sorted."""
        return sorted(len(node.pods) for node in self.nodes)

    def claims(self) -> list[NodeClaim]:
        return w.claims(self.snapshot, self.solution)


def run(*objects: Any, **facts: Any) -> Pass:
    """One pass over a world's pending pods and those on nodes that are going."""
    snapshot = w.world(*objects, **{"catalogue": CATALOGUE, **facts})
    pending, refused = pending_pods(snapshot)
    pods = [*pending, *rehoused_pods(snapshot)]
    solution = solve(snapshot, pods)
    assert violations(snapshot, pods, solution) == []
    return Pass(snapshot, pods, solution, {key: why.text for key, why in refused.items()})


def spread_counts(*objects: Any, **facts: Any) -> list[int]:
    """How many pods one pass puts in each zone that gets any on new nodes, sorted."""
    done = run(*objects, **facts)
    return w.counts(done.solution)


def plan(*objects: Any, **facts: Any) -> Plan:
    """What the provisioning room decides about a world whose batch is closed."""
    closed = Batch(w.NOW - timedelta(seconds=2), w.NOW - timedelta(seconds=2))
    return provision(w.world(*objects, **{"catalogue": CATALOGUE, "batch": closed, **facts}))


def _name(key: str) -> str:
    return key.split("/", 1)[1]


# --- series of passes ---------------------------------------------------------------------------------------------
@dataclass
class Story:
    """A world in which the nodes of one pass are there in the next, with their pods; who stays pending goes away."""

    objects: dict[Any, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *objects: Any, **facts: Any) -> Story:
        story = cls(facts=facts)
        story.add(*objects)
        return story

    def add(self, *objects: Any) -> None:
        for entry in objects:
            for value in entry if isinstance(entry, list) else [entry]:
                self.objects[ref(value)] = value

    def batch(self, *pods: Any) -> Pass:
        """One pass with these pods; then its nodes are initialised and its pods run."""
        self.add(*pods)
        done = run(list(self.objects.values()), **self.facts)
        for planned, claim in zip(done.nodes, done.claims(), strict=True):
            grown = launched(claim, planned, done.snapshot)
            self.add(grown, node_of(grown), *(bound(done.snapshot.pods[key], grown.name) for key in planned.pods))
        for key, target in done.solution.placed.items():
            self.add(bound(done.snapshot.pods[key], done.snapshot.state_nodes[target].name))
        for pod in done.snapshot.pods.pending.values():
            if pod.key in done.refused or pod.key in done.solution.unplaced:
                del self.objects[ref(pod)]
        return done

    def drop(self, *pods: Pod) -> None:
        for pod in pods:
            del self.objects[ref(pod)]

    def running(self) -> list[Pod]:
        return [o for o in self.objects.values() if isinstance(o, Pod) and o.spec.node_name]

    def nodes(self) -> list[Node]:
        return [o for o in self.objects.values() if isinstance(o, Node)]

    def counts(self, key: str = labels.ZONE, app: str = "web") -> list[int]:
        """How many running pods with this `app` there are for each value of a label, sorted."""
        found: dict[str, int] = {}
        nodes = {node.name: node for node in self.nodes()}
        for pod in self.running():
            value = nodes[pod.spec.node_name].metadata.labels.get(key)
            if value is not None and pod.metadata.labels.get("app") == app:
                found[value] = found.get(value, 0) + 1
        return sorted(found.values())


def bound(pod: Pod, node_name: str) -> Pod:
    """The pod, running on a node."""
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name=node_name),
        status=msgspec.structs.replace(pod.status, phase="Running", conditions=()),
    )


def launched(claim: NodeClaim, planned: NewNode, snapshot: Snapshot) -> NodeClaim:
    """The claim after its launch: its first type, at the cheapest offering, spot before on demand."""
    catalogue = snapshot.catalogues[claim.spec.node_class_ref.name]
    chosen = next(t for t in catalogue if t.name == planned.instance_types[0])
    offers = compatible(chosen, planned.requirements, snapshot)
    offer = min(offers, key=lambda o: (o.price, o.capacity_type != "spot", o.zone))
    grown = w.launched_as(claim, chosen, offer)
    kept = {k: v for k, v in grown.metadata.annotations.items() if k != labels.PLANNED_PODS}
    return msgspec.structs.replace(grown, metadata=msgspec.structs.replace(grown.metadata, annotations=kept))


def node_of(claim: NodeClaim, *, initialized: bool = True, taints: Sequence[Any] = (), **amounts: str) -> Node:
    """The Node of a launched claim; `amounts` replace what it says it has."""
    own = {**claim.metadata.labels, labels.HOSTNAME: claim.name, labels.REGISTERED: "true"}
    if initialized:
        own[labels.INITIALIZED] = "true"
    told = [msgspec.to_builtins(taint) for taint in claim.spec.taints] + list(taints)
    manifest = {
        "metadata": {"name": claim.name, "uid": f"uid-node-{claim.name}", "labels": own},
        "spec": {"providerID": claim.status.provider_id, "taints": told},
        "status": {
            "capacity": {**claim.status.capacity, **amounts},
            "allocatable": {**claim.status.allocatable, **amounts},
        },
    }
    return decode(Node, manifest)


def made(kind: str, name: str, namespace: str = "", **rest: Any) -> Any:
    """An object of a watched kind, with the fields of its manifest as keywords."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}", **rest.pop("metadata", {})}
    return decode(kinds.BY_NAME[kind].type, {"metadata": meta, **rest})


# --- shorthands ---------------------------------------------------------------------------------------------------
def wants(*rows: tuple[str, str, list[str]], **more: Any) -> dict[str, Any]:
    """The `affinity` of a pod with one required term."""
    return {"affinity": {**w.node_affinity(list(rows)), **more}}


def prefers(*terms: tuple[int, str, str]) -> dict[str, Any]:
    """Preferred node affinity: (weight, key, value) each."""
    rows = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": k, "operator": "In", "values": [v]}]}}
        for weight, k, v in terms
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rows}}


def wishes(kind: str, key: str = labels.HOSTNAME, app: str = "web") -> dict[str, Any]:
    """Preferred `podAffinity` or `podAntiAffinity`."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]}}


def row(key: str, operator: str, *values: str, least: int | None = None) -> dict[str, Any]:
    """A requirement of a NodePool."""
    entry: dict[str, Any] = {"key": key, "operator": operator, "values": list(values)}
    return entry if least is None else {**entry, "minValues": least}


def pool(*rows: dict[str, Any], name: str = "default", **spec: Any) -> Any:
    """A NodePool with these requirements."""
    return w.pool(name, requirements=list(rows), **spec)


def web(count: int, *spreads: dict[str, Any], name: str = "web", app: str = "web", **spec: Any) -> list[Pod]:
    """Pods with `app` as label and these spread constraints."""
    own = {"labels": {"app": app}, "topologySpreadConstraints": list(spreads)}
    return w.replicas(count, name, **{**own, **spec})
