"""A seed is a world: a few workloads, NodePools and nodes, with some features drawn from the table, as manifests."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import requests
from kerf_api import labels
from kerf_api.resources import Resources, total
from kerf_api.v1.meta import decode
from tests.differential.draft import (
    CATEGORY,
    CPUS,
    FAMILY,
    GPUS,
    Draft,
    DraftNode,
    Json,
    Workload,
    catalogue,
    filled,
    template_spec,
)
from tests.differential.features import FEATURES, Feature

#: Whoever deletes an object that has a finalizer only marks it.
_GOING: Final = {"deletionTimestamp": "2026-01-01T11:59:00Z", "finalizers": ["karpenter.sh/termination"]}
_REFUSED: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def world_of(seed: int) -> Json:
    """The world of a seed, in the form that the peer reads (`benchmarks/peers/karpenter/world.go`)."""
    return world_with(seed, drawn(seed))


def world_with(seed: int, features: Sequence[Feature]) -> Json:
    """A world that has these features, but for what one of them undid of another."""
    draft = begun(Random(seed))
    for feature in features:
        feature.draw(draft)
    return manifests(draft)


def begun(dice: Random) -> Draft:
    """A world before any feature: types, one to three NodePools, two to four workloads."""
    draft = Draft(dice, types=list(catalogue(dice)))
    for _ in range(dice.choice((1, 1, 2, 3))):
        draft.add_pool()
    for _ in range(dice.randint(2, 4)):
        draft.add_workload()
    return draft


def drawn(seed: int) -> list[Feature]:
    """The features of a seed, in the order of the table: what makes nodes and pools comes before what rests on them."""
    dice = Random(f"features of {seed}")
    chosen = set(dice.sample(range(len(FEATURES)), dice.randint(3, 7)))
    return [feature for number, feature in enumerate(FEATURES) if number in chosen]


def manifests(draft: Draft) -> Json:
    """The draft as the peer reads a world."""
    pending = [_pod(workload, number) for workload in draft.workloads for number in range(workload.count)]
    nodes = [made for number, node in enumerate(draft.nodes) if (made := _node(draft, node, f"node-{number}"))]
    for workload in draft.workloads:
        for number in range(workload.count):
            for where, template in workload.storage:
                draft.store(where, filled(template, _name(workload, number)))
    spaces = {
        "default": {},
        **draft.namespaces,
        **{w.namespace: {} for w in draft.workloads if w.namespace not in draft.namespaces},
    }
    return {
        "settings": draft.settings,
        "nodePools": draft.pools,
        "pods": pending,
        "nodes": nodes,
        "daemonSets": draft.daemon_sets,
        "instanceTypes": draft.types,
        "storage": draft.storage,
        "namespaces": [
            {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **own}}}
            for name, own in sorted(spaces.items())
        ],
        "wellKnownLabels": [CATEGORY, FAMILY, CPUS, GPUS],
    }


# --- pods ---------------------------------------------------------------------------------------------------------
def _name(workload: Workload, number: int) -> str:
    return f"{workload.name}-{number}"


def _pod(workload: Workload, number: int, node: str = "") -> Json:
    name = _name(workload, number) if not node else f"{workload.name}-ran-{number}"
    spec = filled(workload.spec, name)
    status: Json = {"phase": "Pending", "conditions": [_REFUSED]}
    if node:
        spec, status = {**spec, "nodeName": node}, {"phase": "Running"}
        spec.pop("volumes", None)  # those that run have none, or their zone would be settled twice
    meta = {"name": name, "namespace": workload.namespace, "uid": f"uid-{workload.namespace}-{name}"}
    return {"metadata": {**meta, "labels": workload.labels}, "spec": spec, "status": status}


# --- nodes --------------------------------------------------------------------------------------------------------
def _node(draft: Draft, wanted: DraftNode, name: str) -> Json | None:
    """The node as one of a NodePool's types, at a price that is for sale, large enough for its pods if there is one."""
    pool = wanted.template or draft.pool()
    choices = [
        (row, sold)
        for row in draft.types
        for sold in row["offerings"]
        if all(holds(_labels(pool, row, sold), entry) for entry in template_spec(pool)["requirements"])
    ]
    if not choices:
        return None
    there = [_pod(workload, number, name) for workload, number in wanted.pods]
    need = total(requests(decode(Pod, pod)) for pod in there)
    roomy = [(row, sold) for row, sold in choices if _fits(need, Resources.parse(row["allocatable"]))]
    row, sold = draft.dice.choice(roomy or choices)
    return _standing(draft, wanted, name, pool, _labels(pool, row, sold), row, there if roomy else [])


def _fits(need: Resources, room: Resources) -> bool:
    return all(amount <= room[resource] for resource, amount in need.items())


def _labels(pool: Json, row: Json, sold: Json) -> dict[str, str]:
    own = {
        labels.NODEPOOL: pool["metadata"]["name"],
        labels.NODECLASS: "default",
        labels.INSTANCE_TYPE: row["name"],
        labels.ARCH: row["arch"],
        labels.OS: row["os"],
        labels.ZONE: sold["zone"],
        labels.CAPACITY_TYPE: sold["capacityType"],
        **row["labels"],
        **pool["spec"]["template"]["metadata"]["labels"],
    }
    for entry in template_spec(pool)["requirements"]:
        if entry["key"] not in own and entry["operator"] == "In":
            own[entry["key"]] = entry["values"][0]
    return own


def holds(own: dict[str, str], entry: Json) -> bool:
    found, values = own.get(entry["key"]), entry.get("values", [])
    match entry["operator"]:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Gt":
            return found is not None and int(found) > int(values[0])
        case "Lt":
            return found is not None and int(found) < int(values[0])
        case "Exists":
            return found is not None
        case _:
            return found is None


def _standing(
    draft: Draft, wanted: DraftNode, name: str, pool: Json, own: dict[str, str], row: Json, there: list[Json]
) -> Json:
    spec = template_spec(pool)
    amounts = {"capacity": row["capacity"], "allocatable": row["allocatable"]}
    provider = f"aws:///{own[labels.ZONE]}/i-{name}"
    taints, startup = spec.get("taints", []), spec.get("startupTaints", [])
    claim = {
        "metadata": {
            "name": name,
            "uid": f"uid-claim-{name}",
            "labels": own,
            **(_GOING if wanted.kind == "deleting" else {}),
        },
        "spec": {"nodeClassRef": spec["nodeClassRef"], "requirements": [], "taints": taints, "startupTaints": startup},
        "status": {"providerID": provider, **amounts},
    }
    if wanted.kind == "in-flight" and not there and draft.dice.random() < 0.5:
        return {"nodeClaim": claim}
    started = {labels.HOSTNAME: name}
    if wanted.kind != "unmanaged":
        started[labels.REGISTERED] = "true"
    if wanted.kind not in ("in-flight", "unmanaged"):
        started[labels.INITIALIZED] = "true"
    if wanted.kind == "unmanaged":
        own = {key: value for key, value in own.items() if key not in (labels.NODEPOOL, labels.NODECLASS)}
    node = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {**own, **started}},
        "spec": {"providerID": provider, "taints": [*taints, *(startup if wanted.kind == "in-flight" else [])]},
        "status": amounts,
    }
    return {"node": node, "pods": there, **({} if wanted.kind == "unmanaged" else {"nodeClaim": claim})}
