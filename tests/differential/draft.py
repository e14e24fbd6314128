"""A world under construction: workloads, NodePools and nodes that features change before they become manifests.

What is drafted is small, and generous enough that most pods have a place: a dozen types, three zones, two markets,
one to three NodePools, two to four workloads. Amounts are Kubernetes quantities, prices dollars per hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kerf_api import labels

Json = dict[str, Any]

ZONES: Final = ("zone-a", "zone-b", "zone-c")
MARKETS: Final = (labels.SPOT, labels.ON_DEMAND)
CATEGORY, FAMILY, CPUS, GPUS = (
    f"{labels.AWS_GROUP}/instance-{suffix}" for suffix in ("category", "family", "cpu", "gpu-count")
)
GPU: Final = "nvidia.com/gpu"
TEAM: Final = "team"
#: Memory per core, in GiB, and dollars per core, by category.
_CATEGORIES: Final = {"c": (2, 0.040), "m": (4, 0.048), "r": (8, 0.063)}


@dataclass
class Workload:
    """Pods of one template; `running` more of them have a node. In `spec` the text `{pod}` stands for a pod's name."""

    name: str
    count: int
    labels: dict[str, str]
    spec: Json
    namespace: str = "default"
    running: int = 0
    #: What each of its pods brings along: objects of `Draft.storage`, by field, with `{pod}` in them.
    storage: list[tuple[str, Json]] = field(default_factory=list)

    @property
    def container(self) -> Json:
        found: Json = self.spec["containers"][0]
        return found

    @property
    def app(self) -> Json:
        """What selects its pods."""
        return {"matchLabels": {"app": self.labels["app"]}}

    def affinity(self, kind: str, strength: str) -> list[Any]:
        """The list of terms of an affinity, made if need be."""
        found: Json = self.spec.setdefault("affinity", {}).setdefault(kind, {})
        if kind == "nodeAffinity" and strength == REQUIRED:
            terms: list[Any] = found.setdefault(strength, {}).setdefault("nodeSelectorTerms", [])
            return terms
        listed: list[Any] = found.setdefault(strength, [])
        return listed

    def spread(self, key: str, **more: Any) -> None:
        row = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": self.app}
        rows = self.spec.setdefault("topologySpreadConstraints", [])
        wanted = {**row, **more}
        if all((r["topologyKey"], r["whenUnsatisfiable"]) != (key, wanted["whenUnsatisfiable"]) for r in rows):
            rows.append(wanted)
        else:  # the API allows one constraint per key and strength
            next(r for r in rows if r["topologyKey"] == key).update(more)


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass
class DraftNode:
    """A node that is wanted: `existing`, `in-flight` (a claim alone, or a node that has not been initialised),
    `deleting` or `unmanaged`, with some pods."""

    kind: str
    pods: list[tuple[Workload, int]] = field(default_factory=list)
    template: Json | None = None


@dataclass
class Draft:
    dice: Random
    types: list[Json] = field(default_factory=list)
    pools: list[Json] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    nodes: list[DraftNode] = field(default_factory=list)
    daemon_sets: list[Json] = field(default_factory=list)
    storage: dict[str, list[Json]] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    settings: Json = field(default_factory=dict)

    # --- choosing -----------------------------------------------------------------------------------------------
    def workload(self) -> Workload:
        return self.dice.choice(self.workloads)

    def pool(self) -> Json:
        return self.dice.choice(self.pools)

    def several(self) -> Workload:
        """A workload of more than one pod."""
        found = self.workload()
        found.count = max(found.count, self.dice.randint(2, 4))
        return found

    def zone(self) -> str:
        return self.dice.choice(ZONES)

    # --- adding -------------------------------------------------------------------------------------------------
    def add_workload(self, namespace: str = "default") -> Workload:
        name = f"{self.dice.choice(('web', 'db', 'job', 'cache'))}-{len(self.workloads)}"
        requests = {"cpu": self.dice.choice(_CPU), "memory": self.dice.choice(_MEMORY)}
        container = {"name": "main", "image": "app", "resources": {"requests": requests}}
        own = {"app": name}
        made = Workload(name, self.dice.choice((1, 1, 2, 3, 4)), own, {"containers": [container]}, namespace)
        self.workloads.append(made)
        return made

    def add_pool(self) -> Json:
        """Named so that neither age nor name says which goes first."""
        name = f"pool-{self.dice.choice('abcdefgh')}{len(self.pools)}"
        made = node_pool(name)
        self.pools.append(made)
        return made

    def add_node(self, kind: str) -> DraftNode:
        """With a pod or two of a workload that has pending ones, too."""
        made = DraftNode(kind)
        self.nodes.append(made)
        for _ in range(self.dice.randint(0, 2)):
            self.run(self.workload(), made)
        return made

    def run(self, workload: Workload, node: DraftNode) -> None:
        """Let one more pod of the workload run on the node."""
        node.pods.append((workload, workload.running))
        workload.running += 1

    def store(self, where: str, made: Json) -> None:
        self.storage.setdefault(where, []).append(made)


_CPU: Final = ("100m", "250m", "500m", "900m", "1500m")
_MEMORY: Final = ("128Mi", "512Mi", "1Gi", "2Gi", "3Gi")


def node_pool(name: str) -> Json:
    """A manifest that is ready, and restricts nothing."""
    kinds = ("ValidationSucceeded", "NodeClassReady", "Ready")
    done = {"status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    spec: Json = {
        "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
        "requirements": [],
    }
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"template": {"metadata": {"labels": {}}, "spec": spec}},
        "status": {"conditions": [{"type": kind, **done} for kind in kinds]},
    }


def template_spec(pool: Json) -> Json:
    found: Json = pool["spec"]["template"]["spec"]
    return found


# --- a catalogue --------------------------------------------------------------------------------------------------
def catalogue(dice: Random) -> Iterator[Json]:
    """Some sizes of three categories, a few of arm64; a tenth or so off the straight price, each market by itself."""
    for category in sorted(dice.sample(sorted(_CATEGORIES), dice.randint(1, 3))):
        for cpus in sorted(dice.sample((1, 2, 4, 8, 16), dice.randint(2, 4))):
            yield instance_type(dice, category, cpus)
    if dice.random() < 0.4:
        yield instance_type(dice, "m", dice.choice((2, 4, 8)), arch="arm64")


def instance_type(dice: Random, category: str, cpus: int, arch: str = "amd64", gpus: int = 0) -> Json:
    per_core, price = _CATEGORIES[category]
    family = f"{category}7{'g' if arch == 'arm64' else 'i'}{'p' if gpus else ''}"
    whole = {"cpu": str(cpus), "memory": f"{cpus * per_core}Gi", "pods": str(dice.choice((6, 8, 12, 30, 58)))}
    usable = {"cpu": f"{cpus * 1000 - 80}m", "memory": f"{cpus * per_core * 1024 - 300}Mi", "pods": whole["pods"]}
    own = {CATEGORY: category, FAMILY: family, CPUS: str(cpus)}
    if gpus:
        own[GPUS] = str(gpus)
        whole[GPU] = usable[GPU] = str(gpus)
    on_demand = cpus * price * dice.uniform(0.92, 1.1) * (0.8 if arch == "arm64" else 1) + gpus * 0.5
    return {
        "name": f"{family}.x{cpus}",
        "arch": arch,
        "os": "linux",
        "capacity": whole,
        "allocatable": usable,
        "labels": own,
        "offerings": [_offering(dice, zone, market, on_demand) for zone in ZONES for market in MARKETS],
    }


def _offering(dice: Random, zone: str, market: str, on_demand: float) -> Json:
    price = on_demand if market == labels.ON_DEMAND else on_demand * dice.uniform(0.3, 0.6)
    return {"zone": zone, "capacityType": market, "price": round(price, 5), "available": True}


def filled(value: Any, pod_name: str) -> Any:
    """A copy with the pod's name in its place."""
    if isinstance(value, str):
        return value.replace("{pod}", pod_name)
    if isinstance(value, dict):
        return {key: filled(one, pod_name) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, pod_name) for one in value]
    return deepcopy(value)
