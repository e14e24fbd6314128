"""Which NodePools pods like a pod have their nodes from: of several that refuse the pod, it is meant for these.

Pods of the same workload are the best evidence; then pods that ask for nothing that the pod does not ask for as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf_api.v1.nodepool import NodePool

#: The scores of a NodePool, the best last.
NONE, ALIKE, SIBLINGS = 0, 1, 2
#: Of each NodePool so many nodes are read.
_MOST_NODES = 20
#: Two keys of taints of which one is a misspelled other are as alike as this.
_LIKENESS = 0.85

#: What a pod asks of labels and taints: its node selector, and the keys of its tolerations.
_Asks = tuple[frozenset[tuple[str, str]], frozenset[str]]


class Kin:
    """The running pods by NodePool, read once for all classes of a solve."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._workloads: dict[str, set[tuple[str, str, str]]] = {}
        self._asks: dict[str, set[_Asks]] = {}
        nodes: dict[str, int] = {}
        for state in snapshot.state_nodes.values():
            pool = state.pool_name
            if state.node is None or not pool or nodes.get(pool, 0) >= _MOST_NODES:
                continue
            nodes[pool] = nodes.get(pool, 0) + 1
            for pod in snapshot.pods.on(state.node.name):
                if not (pods.of_daemon_set(pod) or pods.of_node(pod)):
                    self._workloads.setdefault(pool, set()).add(_workload(pod))
                    self._asks.setdefault(pool, set()).add(_asks(pod))

    def scores(self, pod: Pod) -> Mapping[str, int]:
        """The score of each NodePool that has any."""
        own, (selected, tolerated) = _workload(pod), _asks(pod)
        found = {}
        for pool, asks in self._asks.items():
            if own[1:] != ("", "") and own in self._workloads[pool]:
                found[pool] = SIBLINGS
            elif any(one <= selected and other <= tolerated for one, other in asks):
                found[pool] = ALIKE
        return found


def meant(pod: Pod, pool: NodePool) -> bool:
    """Whether the pod names a NodePool's own: it selects one of its labels, or tolerates the key of one of its taints,
    be it misspelled."""
    template = pool.spec.template
    tolerated = [one.key for one in pod.spec.tolerations if one.key]
    taints = [taint.key for taint in template.spec.taints]
    return bool(template.metadata.labels.items() & pod.spec.node_selector.items()) or any(
        get_close_matches(key, taints, 1, _LIKENESS) for key in tolerated
    )


def _workload(pod: Pod) -> tuple[str, str, str]:
    return pod.metadata.namespace, *(pods.workload(pod) or ("", ""))


def _asks(pod: Pod) -> _Asks:
    return frozenset(pod.spec.node_selector.items()), frozenset(one.key for one in pod.spec.tolerations)
