"""What pods take of the nodes: of the whole cluster, and of each node where that is asked for.

Sums follow the objects: a pod that comes or goes costs a dictionary or two, and a scrape walks nodes, never pods.
Amounts of pods that are alike are worked out once. Source: operations reference §2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.telemetry.catalogue.listed_metrics import WELL_KNOWN
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, in_steps
from kerf.telemetry.series.exposition import head, line, told, written
from kerf.telemetry.series.spelling import resource_type, units
from kerf_api.foreign import own_pool
from kerf_api.resources import Resources

#: Nodes that are written in one step: about a millisecond.
_STEP: Final = 50
_OVER: Final = frozenset({"Succeeded", "Failed"})
_Sums = dict[str, int]


@dataclass(slots=True)
class _Amounts:
    """What each of `pods` pods takes that are alike. `parts` are what it was worked out from: they stay as long as it
    does, so that no other has their place."""

    requests: Resources
    limits: Resources
    parts: tuple[object, ...]
    pods: int = 0


@dataclass(slots=True)
class _OnNode:
    """What the pods bound to a node take, its daemons and all."""

    requests: _Sums = field(default_factory=dict)
    limits: _Sums = field(default_factory=dict)
    daemon_requests: _Sums = field(default_factory=dict)
    daemon_limits: _Sums = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Known:
    """A node: what it has, what of that is for pods, its labels as they are written."""

    allocatable: Resources
    overhead: Resources
    labels: str
    created: datetime | None


class Usage:
    """`see…` belong to the loop's thread, `text` to any. With `single_nodes` each node has series."""

    def __init__(self, *, single_nodes: bool = False) -> None:
        self._single_nodes = single_nodes
        self._shapes: dict[tuple[int, ...], _Amounts] = {}
        self._nodes: dict[str, _Known] = {}
        self._on: dict[str, _OnNode] = {}
        self._requests: _Sums = {}
        self._allocatable: _Sums = {}

    # --- objects ------------------------------------------------------------------------------------------------
    def see_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod before and after."""
        if old is not None and new is not None and _place(old) == _place(new):
            return
        for pod, sign in ((old, -1), (new, 1)):
            if pod is not None and (name := _node_of(pod)):
                self._count(pod, name, sign)

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        amounts = self._amounts(pod, sign)
        _add(self._requests, amounts.requests, sign)
        if not self._single_nodes:
            return
        on = self._on.setdefault(name, _OnNode())
        _add(on.requests, amounts.requests, sign)
        _add(on.limits, amounts.limits, sign)
        if any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references):
            _add(on.daemon_requests, amounts.requests, sign)
            _add(on.daemon_limits, amounts.limits, sign)
        if name not in self._nodes and not on.requests.get("pods"):
            del self._on[name]

    def _amounts(self, pod: Pod, sign: int) -> _Amounts:
        """What it takes; known for as long as there are pods like it."""
        parts = _parts(pod)
        key = tuple(map(id, parts))
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = _Amounts(_parsed(pods.requests, pod), _parsed(_limits, pod), parts)
        found.pods += sign
        if found.pods <= 0:
            del self._shapes[key]
        return found

    def see_node(self, old: Node | None, new: Node | None) -> None:
        """A node before and after."""
        name = (new if new is not None else old).metadata.name  # type: ignore[union-attr]
        before = self._nodes.get(name)
        if before is not None and old is not None and new is not None and _same(old, new):
            return
        if before is not None:
            _add(self._allocatable, before.allocatable, -1)
        if new is None:
            self._nodes.pop(name, None)
            if name in self._on and not self._on[name].requests.get("pods"):
                del self._on[name]
            return
        known = self._nodes[name] = _known(new, single=self._single_nodes)
        _add(self._allocatable, known.allocatable, 1)

    # --- text ---------------------------------------------------------------------------------------------------
    def text(self, now: datetime, give_way: GiveWay) -> bytes:
        """All series, in Prometheus' text format."""
        return "".join(self._lines(now, give_way)).encode()

    def _lines(self, now: datetime, give_way: GiveWay) -> Iterator[str]:
        name, requests = "karpenter_cluster_utilization_percent", self._requests.copy()
        yield head(name, METRICS[name].about)
        for resource, amount in sorted(self._allocatable.copy().items()):
            if amount > 0:
                yield line(
                    name, (("resource_type", resource_type(resource)),), 100 * requests.get(resource, 0) / amount
                )
        if self._single_nodes:
            yield from self._of_nodes(now, give_way)

    def _of_nodes(self, now: datetime, give_way: GiveWay) -> Iterator[str]:
        nodes, none = list(self._nodes.items()), _OnNode()
        for name, read in _FAMILIES.items():
            yield head(name, METRICS[name].about)
            for node_name, known in in_steps(nodes, give_way, _STEP):
                amounts = read(known, self._on.get(node_name, none))
                for resource, amount in sorted(amounts.items()):
                    own = f'{known.labels},resource_type="{resource_type(resource)}"'
                    yield written(name, own, amount / units(resource))
        name = "karpenter_nodes_current_lifetime_seconds"
        yield head(name, METRICS[name].about)
        for _, known in in_steps(nodes, give_way, _STEP):
            if known.created is not None:
                yield written(name, known.labels, max((now - known.created).total_seconds(), 0.0))


#: The families of each node, and where their amounts are.
_FAMILIES: Final[dict[str, Callable[[_Known, _OnNode], Mapping[str, int]]]] = {
    "karpenter_nodes_allocatable": lambda known, on: known.allocatable,
    "karpenter_nodes_system_overhead": lambda known, on: known.overhead,
    "karpenter_nodes_total_pod_requests": lambda known, on: on.requests.copy(),
    "karpenter_nodes_total_pod_limits": lambda known, on: on.limits.copy(),
    "karpenter_nodes_total_daemon_requests": lambda known, on: on.daemon_requests.copy(),
    "karpenter_nodes_total_daemon_limits": lambda known, on: on.daemon_limits.copy(),
}


def _place(pod: Pod) -> tuple[object, ...]:
    """Where a pod takes something, and what that is worked out from."""
    return _node_of(pod), *map(id, _parts(pod))


def _node_of(pod: Pod) -> str:
    return "" if pod.status.phase in _OVER else pod.spec.node_name


def _parts(pod: Pod) -> tuple[object, ...]:
    """What a pod's amounts are worked out from; the same objects in pods that are alike."""
    spec = pod.spec
    return spec.containers, spec.init_containers, spec.overhead or None, spec.resources, *pods.reported(pod)


def _add(sums: _Sums, amounts: Mapping[str, int], sign: int) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + sign * amount


def _parsed(read: Callable[[Pod], Resources], pod: Pod) -> Resources:
    """Nothing where an amount makes no sense: such a pod is reported elsewhere."""
    try:
        return read(pod)
    except ValueError:
        return Resources()


def _limits(pod: Pod) -> Resources:
    """What the containers that run together may take."""
    found = Resources()
    for container in pod.spec.containers:
        found = found + Resources.parse(container.resources.limits)
    return found


def _same(old: Node, new: Node) -> bool:
    return (old.metadata.labels, old.status.capacity, old.status.allocatable) == (
        new.metadata.labels,
        new.status.capacity,
        new.status.allocatable,
    )


def _known(node: Node, *, single: bool) -> _Known:
    try:
        allocatable = Resources.parse(node.status.allocatable)
        overhead = Resources.parse(node.status.capacity) - allocatable
    except ValueError:
        allocatable = overhead = Resources()
    return _Known(allocatable, overhead, told(node_labels(node)) if single else "", node.metadata.creation_timestamp)


def node_labels(node: Node) -> tuple[tuple[str, str], ...]:
    """Those of a node's series; what the node does not say is empty; Kubernetes sets no phase any more."""
    own = node.metadata.labels
    place = (("node_name", node.metadata.name), ("phase", ""), ("managed", str(bool(own_pool(own))).lower()))
    return (*place, *((name, own.get(label, "")) for name, label in WELL_KNOWN.items()))
