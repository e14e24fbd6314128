"""The forecast of a change: two simulations of the same snapshot, one with the change and one without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from kerf.model.snapshot import Snapshot
from kerf.planning.approvals import Approval
from kerf.planning.changes import NOTHING, Change
from kerf.planning.estimates import Estimate
from kerf.planning.lives import DAY, Life, Progress
from kerf.planning.outcomes import Departure, Outcome, PlannedNode, Waiting
from kerf.planning.risks import Ending, Risk, risks
from kerf.provisioning import hindrances
from kerf.snapshots.captured import Captured


@dataclass(frozen=True, slots=True)
class Present:
    """The cluster in the snapshot. `cost` is by NodePool, in millionths of a dollar per hour; `hindered` has the
    NodePools that get no nodes, with cause and fix: the simulation has neither permissions nor quotas."""

    nodes: int
    pods: int
    waiting: int
    cost: Mapping[str, int]
    hindered: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.cost.values())


@dataclass(frozen=True, slots=True)
class Forecast:
    """Attributes:
    now: the current cluster.
    planned: the result with the change.
    otherwise: the result without it; equal to `planned` when there is no change.
    risks: risks of the final state with the change.
    guesses: assumptions about unknown values.
    approvals: the NodePools whose change waits for approval; the plan shows the time after the approval.
    """

    now: Present
    planned: Outcome
    otherwise: Outcome
    risks: tuple[Risk, ...] = ()
    guesses: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()

    @property
    def caused(self) -> tuple[Departure, ...]:
        """Nodes that are disrupted only because of the change."""
        anyway = {one.node.name for one in self.otherwise.departures}
        return tuple(one for one in self.planned.departures if one.node.name not in anyway)

    @property
    def newly_waiting(self) -> tuple[Waiting, ...]:
        """Pods without a place at the end that have one without the change, compared by workload: pod names differ."""
        return _beyond(self.planned.waiting, self.otherwise.waiting)

    @property
    def newly_placed(self) -> tuple[Waiting, ...]:
        """Pods with a place at the end that have none without the change."""
        return _beyond(self.otherwise.waiting, self.planned.waiting)


@dataclass(frozen=True, slots=True)
class Manner:
    """Options of a plan: the horizon, whether the roll-out is simulated, and the callback for its progress."""

    horizon: timedelta = DAY
    simulate: bool = True
    progress: Callable[[Progress], None] = lambda _: None


def forecast(captured: Captured, change: Change, manner: Manner = Manner()) -> Forecast:
    """Return the forecast of a change. Raises Unplannable and BadChange."""
    return forecasts(captured, [change], manner)[0]


def forecasts(captured: Captured, changes: Sequence[Change], manner: Manner = Manner()) -> list[Forecast]:
    """Return the forecast of each change alone; the simulation without a change runs once.

    Raises Unplannable, BadChange.
    """
    if not manner.simulate:
        return _estimates(captured, changes, manner)
    lives = [Life(captured, change, progress=manner.progress) for change in changes]
    now = [_present(life, captured.snapshot) for life in lives]
    planned = [life.run(manner.horizon) for life in lives]
    without = next((one for change, one in zip(changes, planned, strict=True) if not change), None)
    otherwise = without or Life(captured, NOTHING, progress=manner.progress).run(manner.horizon)
    return [
        _found(life, present, one, otherwise, life.staying(), manner)
        for life, present, one in zip(lives, now, planned, strict=True)
    ]


def _estimates(captured: Captured, changes: Sequence[Change], manner: Manner) -> list[Forecast]:
    """Estimate each change. The first estimate reuses the simulation without a change: another one takes as long."""
    found: list[Forecast] = []
    for change in changes:
        estimate = Estimate(captured, manner.horizon)
        life, now = estimate.life, _present(estimate.life, captured.snapshot)
        otherwise = found[0].otherwise if found else estimate.of(NOTHING)
        planned = estimate.of(change) if change else otherwise
        found.append(_found(life, now, planned, otherwise, _after(life, planned), manner))
    return found


def _found(
    life: Life, now: Present, planned: Outcome, otherwise: Outcome, nodes: Sequence[PlannedNode], manner: Manner
) -> Forecast:
    snapshot = life.controller.state.snapshot(life.world.clock.now())
    ending = Ending(snapshot, planned, nodes, manner.horizon, life.diary.guarded, now.hindered)
    return Forecast(now, planned, otherwise, risks(ending), tuple(life.guesses), life.approvals.found())


def _after(life: Life, outcome: Outcome) -> tuple[PlannedNode, ...]:
    """Return the nodes after an estimate."""
    going = {one.node.name for one in outcome.departures}
    stay = [one for one in life.staying() if one.name in life.diary.first and one.name not in going]
    return (*stay, *outcome.arrivals)


def _present(life: Life, snapshot: Snapshot) -> Present:
    cost: Counter[str] = Counter()
    for claim in snapshot.node_claims.values():
        machine = life.world.ec2.instances.get(claim.instance_id)
        cost[claim.pool_name] += machine.price if machine is not None else 0
    first = {name: next(hindrances.of(snapshot, pool), None) for name, pool in snapshot.node_pools.items()}
    return Present(
        nodes=len(snapshot.node_claims),
        pods=len(snapshot.pods),
        waiting=len(snapshot.pods.pending),
        cost=dict(sorted(cost.items())),
        hindered={name: str(found) for name, found in sorted(first.items()) if found is not None},
    )


def _beyond(some: tuple[Waiting, ...], others: tuple[Waiting, ...]) -> tuple[Waiting, ...]:
    """Return the pods of each workload that exceed the number in `others`."""
    left = Counter(_workload(one.pod) for one in others)
    found = []
    for one in some:
        if left[_workload(one.pod)] > 0:
            left[_workload(one.pod)] -= 1
        else:
            found.append(one)
    return tuple(found)


def _workload(pod: str) -> str:
    """`namespace/name` of a pod without its generated suffix."""
    return pod.rpartition("-")[0] or pod
