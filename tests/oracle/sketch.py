"""A world under construction, and its manifests: Kubernetes JSON by kind, NodePools and a catalogue.

The first part of a world is a draft of the differential test. Features that concern single objects change the finished
manifests: they register a function in `late`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from kerf_api import labels
from tests.differential.draft import Draft, Json, Workload
from tests.differential.generator import manifests

#: A label of the user's, on nodes of some NodePools and on some unmanaged nodes.
RACK: Final = "example.com/rack"
RACKS: Final = ("r1", "r2", "r3")
#: The label by which the EBS CSI driver names the zone of a node.
EBS_ZONE: Final = "topology.ebs.csi.aws.com/zone"
#: The objects of Kubernetes that the kube-scheduler reads, by kind.
KUBERNETES: Final = (
    "nodes",
    "pods",
    "namespaces",
    "persistentVolumes",
    "persistentVolumeClaims",
    "storageClasses",
    "csiNodes",
    "csiDrivers",
    "resourceClaims",
    "resourceClaimTemplates",
    "resourceSlices",
    "deviceClasses",
)
_UNREACHED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


@dataclass
class Sketch(Draft):
    late: list[Callable[[Json], None]] = field(default_factory=list)

    def neighbour(self, owner: Workload) -> Workload:
        """Another workload, if there is one."""
        return self.dice.choice([one for one in self.workloads if one is not owner] or [owner])


def finished(sketch: Sketch) -> Json:
    """The manifests of a sketch, with its late changes."""
    found = manifests(sketch)
    storage = found["storage"]
    world: Json = {
        "nodes": [entry["node"] for entry in found["nodes"]],
        "pods": [*found["pods"], *(pod for entry in found["nodes"] for pod in entry["pods"])],
        "nodeClaims": [entry["nodeClaim"] for entry in found["nodes"] if "nodeClaim" in entry],
        **{kind: storage.get(kind, []) for kind in KUBERNETES[3:]},
        **{kind: found[kind] for kind in ("settings", "nodePools", "daemonSets", "instanceTypes", "namespaces")},
        "wellKnownLabels": found["wellKnownLabels"],
    }
    # A manifest must not share a part with another one: late changes are about one object.
    world = deepcopy(world)
    for change in sketch.late:
        change(world)
    _name_once(world)
    for pod in world["pods"]:
        _as_stored(pod)
    for node in world["nodes"]:
        as_joined(node)
    return world


def as_joined(node: Json) -> None:
    """The label that the EBS CSI driver adds."""
    own = node["metadata"]["labels"]
    if labels.ZONE in own:
        own[EBS_ZONE] = own[labels.ZONE]


# --- reading ------------------------------------------------------------------------------------------------------
def key_of(made: Json) -> str:
    return f"{made['metadata']['namespace']}/{made['metadata']['name']}"


def kubernetes(world: Json) -> Json:
    """The objects that the kube-scheduler reads."""
    return {kind: world[kind] for kind in KUBERNETES}


def pending(world: Json) -> list[Json]:
    return [pod for pod in world["pods"] if not pod["spec"].get("nodeName")]


def bound(world: Json) -> list[Json]:
    return [pod for pod in world["pods"] if pod["spec"].get("nodeName")]


def on_node(world: Json, name: str) -> list[Json]:
    return [pod for pod in world["pods"] if pod["spec"].get("nodeName") == name]


def containers(spec: Json) -> Iterator[Json]:
    """Those that count for resources and ports while the pod runs, or before."""
    yield from spec.get("initContainers", [])
    yield from spec["containers"]


# --- daemon pods --------------------------------------------------------------------------------------------------
def daemon_pod(daemon_set: Json, node: str, *, settled: bool) -> Json:
    """The pod of a DaemonSet for a node. `settled`: bound to it, with the node affinity of the DaemonSet controller."""
    template, own = deepcopy(daemon_set["spec"]["template"]), daemon_set["metadata"]
    name = f"{own['name']}-{node}"
    spec = template["spec"]
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _UNREACHED]
    spec["tolerations"] = [*spec.get("tolerations", []), *tolerations]
    status: Json = {"phase": "Pending"}
    if settled:
        field_ = {"key": "metadata.name", "operator": "In", "values": [node]}
        term = {"nodeSelectorTerms": [{"matchFields": [field_]}]}
        affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = term
        spec["nodeName"], status = node, {"phase": "Running"}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": own["name"], "uid": own["uid"], "controller": True}
    meta = {"name": name, "namespace": own["namespace"], "uid": f"uid-{name}", "ownerReferences": [owner]}
    return {
        "metadata": {**meta, "labels": template["metadata"].get("labels", {})},
        "spec": spec,
        "status": status,
    }


# --- the API server -----------------------------------------------------------------------------------------------
def _name_once(world: Json) -> None:
    """One object of a kind and name, one volume of a name in a pod: features may draw several. The last one stays."""
    for kind in KUBERNETES:
        world[kind] = list(
            {(one["metadata"].get("namespace"), one["metadata"]["name"]): one for one in world[kind]}.values()
        )
    for pod in world["pods"]:
        if "volumes" in pod["spec"]:
            pod["spec"]["volumes"] = list({one["name"]: one for one in pod["spec"]["volumes"]}.values())


def _as_stored(pod: Json) -> None:
    """The changes that the API server makes when a pod is created."""
    for container in containers(pod["spec"]):
        needs = container.get("resources", {})
        for name, amount in needs.get("limits", {}).items():
            needs.setdefault("requests", {}).setdefault(name, amount)
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = pod["spec"].get("affinity", {}).get(kind, {})
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution", []):
            _merge_keys(term, pod["metadata"].get("labels", {}))


def _merge_keys(term: Json, own: dict[str, str]) -> None:
    """`matchLabelKeys` and `mismatchLabelKeys` become expressions of the selector."""
    if "labelSelector" not in term:
        return
    rows: list[Any] = term["labelSelector"].setdefault("matchExpressions", [])
    for field_, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field_, []):
            row = {"key": key, "operator": operator, "values": [own.get(key)]}
            if key in own and row not in rows:
                rows.append(row)
    if not rows:
        del term["labelSelector"]["matchExpressions"]


def hostname_of(node: Json) -> str:
    found: str = node["metadata"]["labels"].get(labels.HOSTNAME, node["metadata"]["name"])
    return found
