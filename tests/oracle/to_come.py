"""Nodes without pods that the NodePools of a world can make."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from kerf_api import labels
from tests.differential.draft import Json

_NAME: Final = "empty"


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
