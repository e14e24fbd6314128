"""Nodes and NodePools with their requests, price and age. Money is in millionths of a dollar per hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates import costs
from kerf.disruption.disrupt import forced_ends
from kerf.disruption.view import View
from kerf.judgement.ends import known_ends
from kerf.judgement.stages import stage_of
from kerf.judgement.values import End, Stage
from kerf.model.boundaries import broken
from kerf.model.instants import rfc3339
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Plan
from kerf.model.snapshot import StateNode
from kerf.scheduling.facts.nodes import Needs
from kerf_api import labels
from kerf_api.v1.budgets import DRIFTED, EMPTY, UNDERUTILIZED

#: The resources that views show.
CPU, MEMORY = "cpu", "memory"
#: The voluntary disruptions of a node.
_CAN_BE: Final = {EMPTY: "can be removed", DRIFTED: "can be replaced", UNDERUTILIZED: "can be consolidated"}
#: Stages of a node that runs pods and that nothing removes yet.
_IN_USE: Final = "InUse"
UNREADABLE: Final = "Unreadable"


@dataclass(frozen=True, slots=True)
class Use:
    """Of one resource of nodes, in millis of a CPU or bytes: allocatable, requested by all pods, by DaemonSets."""

    allocatable: int = 0
    requested: int = 0
    daemons: int = 0

    @property
    def free(self) -> int:
        return max(self.allocatable - self.requested, 0)

    @property
    def percent(self) -> int:
        """Requested by all pods, of the allocatable amount."""
        return _percent(self.requested, self.allocatable)

    @property
    def percent_of_daemons(self) -> int:
        return _percent(self.daemons, self.allocatable)

    def __add__(self, other: Use) -> Use:
        requested, daemons = self.requested + other.requested, self.daemons + other.daemons
        return Use(self.allocatable + other.allocatable, requested, daemons)


def _when(end: End) -> str:
    """The time of a disruption without lasting blockers."""
    times = [time for time in (end.at, *(hold.until for hold in end.holds)) if time is not None]
    return f"from {rfc3339(max(times))} on" if times else "now"


def _percent(part: int, whole: int) -> int:
    return min(round(100 * part / whole), 100) if whole else 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one controller on one node; of a pod without one the kind is Pod."""

    namespace: str
    kind: str
    name: str
    pods: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware of a node as its labels have it; `price` is None when it is not known."""

    nodepool: str
    zone: str
    instance_type: str
    capacity_type: str
    price: int | None


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node. `name` is the Node's, before there is one the NodeClaim's; `ends` are those that need no simulation."""

    name: str
    machine: Machine
    age: timedelta | None
    stage: Stage
    ready: bool
    pods: int
    workloads: tuple[Workload, ...]
    cpu: Use
    memory: Use
    ends: tuple[End, ...]

    @property
    def stays(self) -> str:
        """The first blocker of its voluntary disruption, with the time at which all blockers end; of a node without
        blockers its possible disruption, or the reason why there is none. Of a node that is not in use its stage."""
        ends = [end for end in self.ends if not end.forceful]
        if self.stage.code != _IN_USE or not ends:
            return self.stage.text
        chosen = next((end for end in ends if end.wanted and not end.holds), None)
        chosen = chosen or next((end for end in ends if end.holds), ends[0])
        if chosen.open or not chosen.wanted:
            return next(map(str, chosen.holds), chosen.text)
        return f"{next(map(str, chosen.holds), chosen.text)}; {_CAN_BE[chosen.code]} {_when(chosen)}"

    @property
    def state(self) -> str:
        """A word for the list."""
        if self.stage.code == _IN_USE:
            return "Ready" if self.ready else "NotReady"
        return self.stage.code


@dataclass(frozen=True, slots=True)
class PoolRow:
    """The nodes of one NodePool together; the name is empty for nodes of none. `unpriced` nodes have no known price."""

    name: str
    nodes: int
    pods: int
    price: int
    unpriced: int
    cpu: Use
    memory: Use


def node_rows(view: View, needs: Needs) -> tuple[NodeRow, ...]:
    """All nodes, by NodePool and name."""
    forced = forced_ends(view.snapshot, view.turn)
    rows = (_row(view, key, forced, needs) for key in view.snapshot.state_nodes)
    return tuple(sorted(rows, key=lambda row: (row.machine.nodepool, row.name)))


def pool_rows(rows: Iterable[NodeRow]) -> tuple[PoolRow, ...]:
    """The NodePools of these nodes, the most expensive first."""
    found: dict[str, list[NodeRow]] = {}
    for row in rows:
        found.setdefault(row.machine.nodepool, []).append(row)
    pools = (_pool(name, own) for name, own in found.items())
    return tuple(sorted(pools, key=lambda pool: (-pool.price, pool.name)))


def pool_prices(view: View) -> dict[str, int]:
    """The price of the nodes of each NodePool, by its name. Nodes without a known price count 0."""
    found = Counter[str]()
    for state in view.snapshot.state_nodes.values():
        found[state.pool_name] += _machine(view, state).price or 0
    return dict(found)


def _pool(name: str, rows: list[NodeRow]) -> PoolRow:
    known = [row.machine.price for row in rows if row.machine.price is not None]
    cpu, memory = sum((row.cpu for row in rows), Use()), sum((row.memory for row in rows), Use())
    count = sum(row.pods for row in rows)
    return PoolRow(name, len(rows), count, sum(known), len(rows) - len(known), cpu, memory)


def _row(view: View, key: str, forced: Plan, needs: Needs) -> NodeRow:
    state = view.snapshot.state_nodes[key]
    own = [pod for pod in view.pods_on(state.name) if not pods.terminal(pod)] if state.node is not None else []
    cpu, memory = _uses(state, own, needs)
    stage, ends = _standing(view, key, forced)
    created = _created(state)
    age = None if created is None else view.snapshot.now - created
    ready = state.node is not None and state.node.ready
    return NodeRow(state.name, _machine(view, state), age, stage, ready, len(own), workloads(own), cpu, memory, ends)


def _created(state: StateNode) -> datetime | None:
    value = state.claim if state.claim is not None else state.node
    return value.metadata.creation_timestamp if value is not None else None


def _machine(view: View, state: StateNode) -> Machine:
    names = (labels.ZONE, labels.INSTANCE_TYPE, labels.CAPACITY_TYPE)
    zone, type_, capacity_type = (state.labels.get(name, "") for name in names)
    return Machine(state.pool_name, zone, type_, capacity_type, known_price(view, state.pool_name, state.labels))


def known_price(view: View, pool_name: str, node_labels: Mapping[str, str]) -> int | None:
    """The price of a node with these labels; 0 on reserved capacity, None when it is not known."""
    pool = view.snapshot.node_pools.get(pool_name)
    types = {} if pool is None else view.types_of(pool)
    price = costs.node_price(types, node_labels)
    return price if price or costs.reserved_price(types, node_labels) > 0 else None


def workloads(some: Iterable[Pod]) -> tuple[Workload, ...]:
    """The controllers of these pods, most pods first."""
    counts = Counter((pod.metadata.namespace, *(pods.workload(pod) or ("Pod", pod.metadata.name))) for pod in some)
    return tuple(Workload(*key, count) for key, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])))


def amounts(needs: Needs, pod: Pod) -> Mapping[str, int]:
    """The requests of a pod; none when they cannot be read."""
    try:
        return dict(needs.of(pod))
    except ValueError:
        return {}


def _uses(state: StateNode, own: Iterable[Pod], needs: Needs) -> tuple[Use, Use]:
    requested, daemons = {CPU: 0, MEMORY: 0}, {CPU: 0, MEMORY: 0}
    for pod in own:
        known, daemon = amounts(needs, pod), pods.of_daemon_set(pod)
        for name in requested:
            requested[name] += known.get(name, 0)
            daemons[name] += known.get(name, 0) if daemon else 0
    try:
        allocatable = state.allocatable
    except ValueError:
        return Use(0, requested[CPU], daemons[CPU]), Use(0, requested[MEMORY], daemons[MEMORY])
    cpu, memory = (Use(allocatable[name], requested[name], daemons[name]) for name in (CPU, MEMORY))
    return cpu, memory


def _standing(view: View, key: str, forced: Plan) -> tuple[Stage, tuple[End, ...]]:
    """The stage and the ends. An unreadable object is reported as such, as in a plan."""
    try:
        stage = stage_of(view, key)
        return stage, known_ends(view, key, forced) if stage.code == _IN_USE else ()
    except Exception as error:
        return Stage(UNREADABLE, f"cannot be read: {broken(error).text}"), ()
