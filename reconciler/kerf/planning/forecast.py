"""What a change would do: two lives of the same snapshot, one with the change and one without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from kerf.model.snapshot import Snapshot
from kerf.planning.approvals import Approval
from kerf.planning.changes import NOTHING, Change
from kerf.planning.lives import DAY, Life
from kerf.planning.outcomes import Departure, Outcome, PlannedNode, Waiting
from kerf.snapshots.captured import Captured
from kerf_api import labels


@dataclass(frozen=True, slots=True)
class Present:
    """The cluster as the snapshot has it. `cost` is by NodePool, in millionths of a dollar per hour."""

    nodes: int
    pods: int
    waiting: int
    cost: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.cost.values())


@dataclass(frozen=True, slots=True)
class Risk:
    """Something about the end that a person may want to know: a code, and words."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """Attributes:
    now: the cluster as it is.
    planned: the life with the change.
    otherwise: the life without it; equal to `planned` when there is no change.
    risks: of the end of the life with the change.
    guesses: what is not known and was assumed.
    approvals: the NodePools whose change waits for approval; the plan shows the time after it.
    """

    now: Present
    planned: Outcome
    otherwise: Outcome
    risks: tuple[Risk, ...] = ()
    guesses: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()

    @property
    def caused(self) -> tuple[Departure, ...]:
        """Nodes that go only because of the change."""
        anyway = {one.node.name for one in self.otherwise.departures}
        return tuple(one for one in self.planned.departures if one.node.name not in anyway)

    @property
    def newly_waiting(self) -> tuple[Waiting, ...]:
        """Pods without a place at the end that have one without the change. Their names differ, so workloads count."""
        return _beyond(self.planned.waiting, self.otherwise.waiting)

    @property
    def newly_placed(self) -> tuple[Waiting, ...]:
        """Pods that have a place at the end, and none without the change."""
        return _beyond(self.otherwise.waiting, self.planned.waiting)


def forecast(captured: Captured, change: Change, *, horizon: timedelta = DAY) -> Forecast:
    """What comes of a change. Raises Unplannable and BadChange."""
    life = Life(captured, change)
    now = _present(life, captured.snapshot)
    planned = life.run(horizon)
    otherwise = Life(captured, NOTHING).run(horizon) if change else planned
    return Forecast(now, planned, otherwise, tuple(_risks(life, planned)), tuple(life.guesses), life.approvals())


def _present(life: Life, snapshot: Snapshot) -> Present:
    cost: Counter[str] = Counter()
    for claim in snapshot.node_claims.values():
        machine = life.world.ec2.instances.get(claim.instance_id)
        cost[claim.pool_name] += machine.price if machine is not None else 0
    pods = len(snapshot.pods)
    return Present(len(snapshot.node_claims), pods, len(snapshot.pods.pending), dict(sorted(cost.items())))


def _risks(life: Life, outcome: Outcome) -> Iterator[Risk]:
    """Of the nodes at the end."""
    nodes = life.staying()
    spot = sum(one.price for one in nodes if one.capacity_type == labels.SPOT)
    total = sum(one.price for one in nodes)
    if total and spot * 2 > total:
        share = 100 * spot // total
        yield Risk("SpotShare", f"{share} % of the cost are spot instances, which AWS can reclaim at any time")
    for pool, some in _by_pool(nodes).items():
        zones = {one.zone for one in some}
        if len(some) > 1 and len(zones) == 1:
            yield Risk("SingleZone", f"all {len(some)} nodes of NodePool {pool} are in zone {zones.pop()}")
    for held in outcome.held:
        why = held.blocker or "what holds it is not known"
        yield Risk("Held", f"NodeClaim {held.node} has drifted ({held.reason}) and stays: {why}")
    if not outcome.at_rest:
        yield Risk("Horizon", "more would happen after the horizon")


def _by_pool(nodes: tuple[PlannedNode, ...]) -> dict[str, list[PlannedNode]]:
    found: dict[str, list[PlannedNode]] = {}
    for one in nodes:
        found.setdefault(one.nodepool, []).append(one)
    return dict(sorted(found.items()))


def _beyond(some: tuple[Waiting, ...], others: tuple[Waiting, ...]) -> tuple[Waiting, ...]:
    """Those of each workload beyond as many as the others have."""
    left = Counter(_workload(one.pod) for one in others)
    found = []
    for one in some:
        if left[_workload(one.pod)] > 0:
            left[_workload(one.pod)] -= 1
        else:
            found.append(one)
    return tuple(found)


def _workload(pod: str) -> str:
    """`namespace/name` of a pod without the part that is made up for each."""
    return pod.rpartition("-")[0] or pod
