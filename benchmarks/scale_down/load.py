"""What both sides are given: the catalogue, the NodePool and the Deployments; and what the outcome is measured by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from benchmarks.clusters import Yard, narrowed, pod_sizes
from benchmarks.consolidation import bound
from benchmarks.scheduling import read_catalogue
from benchmarks.workloads import families
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.resources import Resources
from tests.cluster.node_object import MEMORY_SHARE
from tests.worlds import deployment

Json = dict[str, Any]
MOST_CPUS: Final = 16
DEPLOYMENTS: Final = 20
PODS, LEFT = 1500, 600
#: What the machines of the tests hold back of their memory; with it both sides expect of a type what nodes then have.
VM_MEMORY_OVERHEAD: Final = 1 - MEMORY_SHARE
#: Kubelets and catalogues round memory by themselves.
_TOLERANCE_MIB: Final = 2


def catalogue() -> list[Json]:
    """The types that may be bought, on-demand, as `benchmarks.workloads` writes them."""
    return narrowed(families(round(VM_MEMORY_OVERHEAD, 6)), MOST_CPUS, labels.ON_DEMAND)


def family_names(rows: Sequence[Json]) -> tuple[str, ...]:
    return tuple(sorted({row["name"].partition(".")[0] for row in rows}))


def node_pool(class_ref: Json, requirements: Sequence[Json], markets: Sequence[str] = (labels.ON_DEMAND,)) -> Json:
    """It consolidates at once, all nodes if need be, and buys in these markets."""
    market = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [*markets]}
    amd64 = {"key": labels.ARCH, "operator": "In", "values": ["amd64"]}
    spec = {"nodeClassRef": class_ref, "requirements": [market, amd64, *requirements]}
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
        "budgets": [{"nodes": "100%"}],
    }
    kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}}
    return {**kind, "spec": {"template": {"spec": spec}, "disruption": disruption}}


def deployments(seed: int, pods: int = PODS) -> str:
    """All of them as one manifest, with all of their pods."""
    sizes = pod_sizes(DEPLOYMENTS, Random(seed))
    items = [
        deployment(f"d{number}", {"replicas": pods // DEPLOYMENTS, "cpu": f"{cpu}m", "memory": f"{memory}Mi"})
        for number, (cpu, memory) in enumerate(sizes)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


class Measure:
    """Money by one price list for both sides, in millionths of a dollar per hour."""

    def __init__(self, rows: Sequence[Json]) -> None:
        self._rows = {row["name"]: row for row in rows}
        self._types = read_catalogue(json.dumps(rows).encode())
        self._prices = {row["name"]: round(row["offerings"][0]["price"] * 1e6) for row in rows}

    def cost(self, nodes: Sequence[Node]) -> int:
        return sum(self._prices[node.metadata.labels[labels.INSTANCE_TYPE]] for node in nodes)

    def bound(self, pods: Sequence[Pod]) -> float:
        """The least that nodes for these pods cost."""
        yard = Yard(self._types, Settings(cluster_name="benchmark"))
        yard.pods = {pod.key: pod for pod in pods}
        return bound(yard.snapshot())

    def surprises(self, nodes: Sequence[Node]) -> list[str]:
        """Nodes that have not the room for pods that the catalogue says."""
        return [
            f"{node.metadata.name}: {dict(node.status.allocatable)}"
            for node in nodes
            if not self._as_sold(node.metadata.labels[labels.INSTANCE_TYPE], Resources.parse(node.status.allocatable))
        ]

    def _as_sold(self, name: str, room: Resources) -> bool:
        sold = self._rows[name]["allocatable"]
        same = room["cpu"] == sold["cpu"] and room["pods"] == sold["pods"]
        return bool(same and abs(room["memory"] // 2**20 - sold["memory"]) <= _TOLERANCE_MIB)
