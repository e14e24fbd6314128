"""Nodes without pods that the NodePools of a world can make: whether one of them keeps a pod off an existing node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from kerf_api import labels
from tests.differential.draft import Json
from tests.oracle.client import Oracle
from tests.oracle.difference import Difference
from tests.oracle.features import hard
from tests.oracle.sketch import key_of, kubernetes

_NAME: Final = "empty"


def domain_comes_between(world: Json, missed: Difference, oracle: Oracle) -> bool:
    """Whether a spread of the pod refuses the node when one of the nodes is there.

    Args:
        world: all placements are bound there.
    """
    pod = next(one for one in world["pods"] if key_of(one) == missed.pod)
    keys = [labels.NODEPOOL, *(one["topologyKey"] for one in hard(pod["spec"]))]
    distinct = {tuple(node["metadata"]["labels"].get(key) for key in keys): node for node in possible_nodes(world)}
    for node in distinct.values():
        there = {**world, "nodes": [*world["nodes"], node]}
        found = oracle.ask(kubernetes(there), verdicts=[(missed.pod, missed.node)])
        if found.verdicts[0].plugin == "PodTopologySpread":
            return True
    return False


def possible_nodes(world: Json) -> Iterator[Json]:
    """A node for each NodePool, type, offering and value of the NodePool's labels."""
    for pool, row in product(world["nodePools"], world["instanceTypes"]):
        template = pool["spec"]["template"]
        lists = {one["key"]: one["values"] for one in template["spec"]["requirements"] if one["operator"] == "In"}
        for sold, values in product((one for one in row["offerings"] if one["available"]), product(*lists.values())):
            own = {
                **dict(zip(lists, values, strict=True)),
                labels.NODEPOOL: pool["metadata"]["name"],
                labels.NODECLASS: template["spec"]["nodeClassRef"]["name"],
                labels.INSTANCE_TYPE: row["name"],
                labels.ARCH: row["arch"],
                labels.OS: row["os"],
                labels.ZONE: sold["zone"],
                labels.CAPACITY_TYPE: sold["capacityType"],
                labels.HOSTNAME: _NAME,
                **row["labels"],
                **template.get("metadata", {}).get("labels", {}),
            }
            yield {
                "metadata": {"name": _NAME, "uid": f"uid-{_NAME}", "labels": own},
                "spec": {"taints": template["spec"].get("taints", [])},
                "status": {"capacity": row["capacity"], "allocatable": row["allocatable"]},
            }
