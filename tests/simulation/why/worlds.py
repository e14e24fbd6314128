"""Drawn worlds: a NodePool that the pods of Deployment `shop` get their nodes from, and others that refuse these pods,
each for a reason of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.simulation.why.manifests import get, with_value
from tests.worlds import daemon_set, deployment, node_class, node_pool, storage_class

Manifest = dict[str, Any]
ARCH, ZONE, CAPACITY = "kubernetes.io/arch", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
CATEGORY, CPUS = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-cpu"
TYPE, NODEPOOL = "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"
STILL: Final = {"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}
#: The pod template of a workload, and the requirements of a NodePool.
POD, ROWS = "spec.template.spec", "spec.template.spec.requirements"
REPLICAS: Final = 5


def row(key: str, *values: str, operator: str = "In", **more: Any) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values), **more}


@dataclass
class Draft:
    """The manifests of a world by kind and name (`namespace/name`); `home` is the NodePool of the pods of `shop`."""

    home: str
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)

    def put(self, manifest: Manifest) -> None:
        meta = manifest["metadata"]
        namespace = meta.get("namespace", "")
        self.objects[manifest["kind"], f"{namespace}/{meta['name']}" if namespace else meta["name"]] = manifest

    def get(self, kind: str, name: str, path: str) -> Any:
        return get(self.objects[kind, name], path)

    def set(self, kind: str, name: str, path: str, value: Any) -> Manifest:
        """The object with another value of a field, which is kept."""
        self.objects[kind, name] = with_value(self.objects[kind, name], path, value)
        return self.objects[kind, name]

    def pool(self, path: str, value: Any) -> Manifest:
        return self.set("NodePool", self.home, path, value)

    def shop(self, path: str, value: Any) -> Manifest:
        return self.set("Deployment", "default/shop", f"{POD}.{path}", value)

    def asks(self, path: str) -> Any:
        return self.get("Deployment", "default/shop", f"{POD}.{path}")

    def index(self, key: str) -> int:
        """The place of a requirement of the home NodePool."""
        return [entry["key"] for entry in self.get("NodePool", self.home, ROWS)].index(key)


def drawn(dice: Random) -> Draft:
    """A NodePool for everything, a DaemonSet, other pods, and `shop` with some wishes; no other NodePools yet."""
    home = dice.choice(("apps", "general", "main", "web"))
    draft = Draft(home)
    rows = [
        row(CATEGORY, "c", "m", "r"),
        row(ARCH, *dice.choice((("amd64",), ("amd64", "arm64")))),
        row(CAPACITY, *dice.choice((("on-demand",), ("on-demand", "spot")))),
        row(ZONE, "us-west-2a", "us-west-2b", "us-west-2c"),
    ]
    labels = dice.choice(({}, {"team": "a"}))
    draft.put(node_class())
    draft.put(node_pool(home, {"disruption": STILL, "requirements": rows, "labels": labels}))
    draft.put(daemon_set("agent", {"cpu": "100m", "tolerations": [{"operator": "Exists"}]}))
    draft.put(deployment("base", {"replicas": dice.choice((1, 3)), "cpu": "700m"}))
    cpu = dice.choice(("600m", "900m", "1200m", "1500m"))
    draft.put(deployment("shop", {"replicas": 2, "cpu": cpu, "memory": dice.choice(("512Mi", "1Gi"))}))
    for wish in (_arch, _zone, _on_demand, _team):
        if dice.random() < 0.3:
            wish(draft)
    return draft


# --- what the pods ask for, which the home NodePool has ----------------------------------------------------------
def _arch(draft: Draft) -> None:
    select(draft, ARCH, "amd64")


def _zone(draft: Draft) -> None:
    select(draft, ZONE, "us-west-2a")


def _on_demand(draft: Draft) -> None:
    select(draft, CAPACITY, "on-demand")


def _team(draft: Draft) -> None:
    draft.pool('spec.template.metadata.labels["team"]', "a")
    select(draft, "team", "a")


def select(draft: Draft, key: str, value: str) -> None:
    """The pods ask for a label."""
    draft.shop(f'nodeSelector["{key}"]', value)


def dedicate(draft: Draft, value: str = "shop") -> None:
    """The NodePool is for pods that tolerate its taint, and these do."""
    draft.pool("spec.template.spec.taints", [{"key": "dedicated", "value": value, "effect": "NoSchedule"}])
    draft.shop("tolerations", [{"key": "dedicated", "operator": "Equal", "value": value, "effect": "NoSchedule"}])
    draft.put(
        node_pool(
            "spare",
            {
                "disruption": STILL,
                "labels": {"spare": "true"},
                "requirements": [row(CATEGORY, "m"), row(ARCH, "arm64")],
            },
        )
    )
    draft.set("Deployment", "default/base", f"{POD}.nodeSelector", {"spare": "true"})
    select(draft, ARCH, "amd64")


def volume(draft: Draft) -> None:
    """The pods have a volume."""
    draft.put(storage_class())
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}
    draft.put({**claim, "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"], "resources": {}}})
    draft.shop("volumes", [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


# --- NodePools with another reason to refuse them ------------------------------------------------------------------
def _tainted(draft: Draft, name: str) -> Manifest:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    return node_pool(name, {"disruption": STILL, "taints": [taint]})


def _of_a_team(draft: Draft, name: str) -> Manifest:
    taint = {"key": "team", "value": "b", "effect": "NoSchedule"}
    return node_pool(name, {"disruption": STILL, "taints": [taint], "labels": {"team": "b"}})


def _arm(draft: Draft, name: str) -> Manifest | None:
    if draft.asks(f'nodeSelector["{ARCH}"]') != "amd64":
        return None
    return node_pool(name, {"disruption": STILL, "also": [row(ARCH, "arm64")]})


def _elsewhere(draft: Draft, name: str) -> Manifest | None:
    if draft.asks(f'nodeSelector["{ZONE}"]') != "us-west-2a":
        return None
    return node_pool(name, {"disruption": STILL, "also": [row(ZONE, "us-west-2c")]})


def _spot(draft: Draft, name: str) -> Manifest | None:
    if draft.asks(f'nodeSelector["{CAPACITY}"]') != "on-demand":
        return None
    return node_pool(name, {"disruption": STILL, "also": [row(CAPACITY, "spot")]})


def _closed(draft: Draft, name: str) -> Manifest:
    return node_pool(name, {"disruption": STILL, "limits": {"cpu": "0"}, "weight": 1})


def _leaving(draft: Draft, name: str) -> Manifest:
    taint = {"key": "retired", "effect": "NoExecute"}
    return node_pool(name, {"disruption": STILL, "taints": [taint], "also": [row(CPUS, "2", operator="In")]})


UNRELATED: Final[Mapping[str, Callable[[Draft, str], Manifest | None]]] = {
    "gpu": _tainted,
    "team-b": _of_a_team,
    "arm": _arm,
    "elsewhere": _elsewhere,
    "spot": _spot,
    "closed": _closed,
    "old": _leaving,
}


def unrelated(draft: Draft, dice: Random, count: int) -> None:
    """So many NodePools more that refuse the pods, each for a reason of its own."""
    names = list(UNRELATED)
    dice.shuffle(names)
    for name in names:
        made = UNRELATED[name](draft, name)
        if made is not None and count:
            draft.put(made)
            count -= 1
