"""A series for each pod there is, with where it is: kept only where `DETAILED_METRICS` names it, for they are many.

Source: operations reference §2.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf.model.kubernetes.objects import Node, Pod
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, in_steps
from kerf.telemetry.series.exposition import head, line
from kerf_api import labels
from kerf_api.foreign import own_pool

_NAME: Final = "karpenter_pods_state"
#: Pods whose lines are written in one step: about a millisecond.
_STEP: Final = 100
_OF_NODE: Final = {
    "nodepool": labels.NODEPOOL,
    "zone": labels.ZONE,
    "arch": labels.ARCH,
    "capacity_type": labels.CAPACITY_TYPE,
    "instance_type": labels.INSTANCE_TYPE,
}


class PodStates:
    """`see…` belong to the loop's thread, `text` to any."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, Node] = {}

    def see_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod before and after."""
        if new is not None:
            self._pods[new.key] = new
        elif old is not None:
            self._pods.pop(old.key, None)

    def see_node(self, old: Node | None, new: Node | None) -> None:
        """A node before and after."""
        if new is not None:
            self._nodes[new.name] = new
        elif old is not None:
            self._nodes.pop(old.name, None)

    def text(self, give_way: GiveWay) -> bytes:
        """All series, in Prometheus' text format."""
        return "".join(self._lines(give_way)).encode()

    def _lines(self, give_way: GiveWay) -> Iterator[str]:
        yield head(_NAME, METRICS[_NAME].about)
        for pod in in_steps(list(self._pods.values()), give_way, _STEP):
            told = self._labels(pod)
            yield line(_NAME, ((name, told[name]) for name in METRICS[_NAME].labels), 1)

    def _labels(self, pod: Pod) -> dict[str, str]:
        meta, name = pod.metadata, pod.spec.node_name
        node = self._nodes.get(name)
        of_node = node.metadata.labels if node is not None else {}
        return {
            "name": meta.name,
            "namespace": meta.namespace,
            "owner": _owner(pod),
            "node": name,
            "scheduled": str(bool(name)).lower(),
            "phase": pod.status.phase,
            "ready": next((c.status for c in pod.status.conditions if c.type == "Ready"), ""),
            "managed": str(bool(own_pool(of_node))).lower(),
            **{own: of_node.get(label, "") for own, label in _OF_NODE.items()},
        }


def _owner(pod: Pod) -> str:
    """The path of the first owner; empty without one."""
    for owner in pod.metadata.owner_references:
        return f"/apis/{owner.api_version}/namespaces/{pod.metadata.namespace}/{owner.kind.lower()}s/{owner.name}"
    return ""
