"""Refused pods beside one more node: whether a NodePool can make a node that takes the pod after all others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kerf_api import labels
from kerf_api.resources import Resources
from tests.differential.draft import Json
from tests.differential.generator import holds
from tests.oracle.client import ALL_NODES, Oracle
from tests.oracle.difference import UNMADE, Difference
from tests.oracle.ours import Ours
from tests.oracle.sketch import as_joined, daemon_pod, key_of, kubernetes
from tests.oracle.to_come import possible_nodes

#: These plugins look at other nodes, so they are asked again beside one node alone.
_TOGETHER: Final = ("", "PodTopologySpread", "InterPodAffinity")
_NAME: Final = "more"
#: Of a refusal that says of each NodePool why it makes no node for the pod.
_SAID: Final = "no NodePool can make one"


def unmade(there: Json, ours: Ours, before: dict[str, str], oracle: Oracle) -> Iterator[Difference]:
    """Of equal pods one is asked about.

    Args:
        there: the world with the planned nodes.
        before: the nodes of the pods that come first.
    """
    pods = {key_of(pod): pod for pod in there["pods"]}
    kinds: dict[str, str] = {}
    for key, why in ours.solution.unplaced.items():
        if _SAID in str(why) and key in pods:
            pod = pods[key]
            kinds.setdefault(
                json.dumps((pod["metadata"]["namespace"], pod["metadata"].get("labels"), pod["spec"])), key
            )
    nodes = list(_nodes(there)) if kinds else []
    if not nodes:
        return
    homes = {**before, **ours.homes}
    bound = [
        {**pod, "spec": {**pod["spec"], "nodeName": homes[key]}} if key in homes else pod for key, pod in pods.items()
    ]
    beside = {**there, "nodes": [*there["nodes"], *nodes], "pods": bound}
    found = oracle.ask(kubernetes(beside), verdicts=[(key, ALL_NODES) for key in kinds.values()])
    named = {node["metadata"]["name"]: node for node in nodes}
    for key in kinds.values():
        some = [
            named[one.node]
            for one in found.verdicts
            if one.pod == key and one.node in named and one.plugin in _TOGETHER
        ]
        keys = _keys(pods[key])
        distinct = {tuple(node["metadata"]["labels"].get(label) for label in keys): node for node in some}
        for node in distinct.values():
            if _takes(there, node, key, ours, before, oracle):
                own = node["metadata"]["labels"]
                where = f"one more node of {own[labels.NODEPOOL]} ({own[labels.INSTANCE_TYPE]}, {own[labels.ZONE]})"
                yield Difference(UNMADE, key, where, "", str(ours.solution.unplaced[key]))
                break


def _keys(pod: Json) -> list[str]:
    """The labels on which topology constraints of a pod look, and that of the NodePool."""
    affinity = pod["spec"].get("affinity", {})
    terms = [
        term for kind in ("podAffinity", "podAntiAffinity") for rows in affinity.get(kind, {}).values() for term in rows
    ]
    rows = [*pod["spec"].get("topologySpreadConstraints", []), *terms]
    return sorted({labels.NODEPOOL, *(row["topologyKey"] for row in rows if "topologyKey" in row)})


def _nodes(world: Json) -> Iterator[Json]:
    """Nodes of NodePools without limits, the smallest first."""
    free = [pool for pool in world["nodePools"] if not pool["spec"].get("limits")]
    rules = {pool["metadata"]["name"]: pool["spec"]["template"]["spec"]["requirements"] for pool in free}
    found = possible_nodes({**world, "nodePools": free})
    good = [
        node
        for node in found
        if all(holds(node["metadata"]["labels"], row) for row in rules[node["metadata"]["labels"][labels.NODEPOOL]])
    ]
    good.sort(key=lambda node: Resources.parse(node["status"]["capacity"])["cpu"])
    for number, node in enumerate(good):
        name = f"{_NAME}-{number:03}"
        node["metadata"].update(name=name, uid=f"uid-{name}")
        node["metadata"]["labels"].update(
            {labels.HOSTNAME: name, labels.REGISTERED: "true", labels.INITIALIZED: "true"}
        )
        node["spec"]["providerID"] = f"aws:///zone/i-{name}"
        as_joined(node)
        yield node


def _takes(there: Json, node: Json, key: str, ours: Ours, before: dict[str, str], oracle: Oracle) -> bool:
    """Whether the node takes the pod and its DaemonSet pods, and all others have their places beside it."""
    name = node["metadata"]["name"]
    daemons = [daemon_pod(one, name, settled=False) for one in there["daemonSets"]]
    world = {**there, "nodes": [*there["nodes"], node], "pods": [*there["pods"], *daemons]}
    first = {**before, **{key_of(pod): name for pod in daemons}}
    found = oracle.ask(
        kubernetes(world), queue=[*first, *ours.solution.order, key], bind={**first, **ours.homes, key: name}
    )
    placed = {one.pod for one in found.queue if one.node}
    return {*ours.solution.order, key} <= placed
