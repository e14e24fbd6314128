"""An estimate of a plan without its roll-out: the disrupted nodes, one placement of all their pods, and the price.

The controller reconciles for half a minute without starting any voluntary disruption. That shows drift, launches for
pending pods and deletions. Then `propose` and `decide` give the first consolidation, and one solve places the pods of
all disrupted nodes. An estimate has neither an order nor a duration: budgets and waiting times are not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from kerf.decide import decide
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Blocker, candidate
from kerf.disruption.commands import START_COMMAND
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import reschedulable
from kerf.model.memory import Memory
from kerf.model.plan import PatchObject, Plan
from kerf.model.snapshot import Snapshot, StateNode
from kerf.planning.changes import Change
from kerf.planning.lives import Life
from kerf.planning.outcomes import Departure, Held, Move, Outcome, PlannedNode, Waiting
from kerf.runtime.parts import Parts
from kerf.runtime.proposer import Changes
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.solve import SolveOptions, context_of, solve
from kerf.snapshots.captured import Captured
from kerf_api.v1.budgets import DRIFTED

#: Long enough for conditions, batches of pods and the validation of empty nodes.
_WINDOW: Final = timedelta(seconds=30)
#: Codes of blockers that end by themselves: the node starts, pods are nominated to it, or it is being disrupted.
_PASSING: Final = frozenset({"NoNode", "NotInitialized", "Nominated", "Replacement", "CommandInProgress"})


@dataclass
class _Patient:
    """`decide` without the methods of voluntary disruption; it keeps the memory for the estimate at the end."""

    memory: Memory = field(default_factory=Memory)

    def __call__(self, snapshot: Snapshot, memory: Memory) -> Plan:
        self.memory = memory
        return decide(snapshot, memory, methods=())


class _NoProposer:
    """Consolidation is considered once, at the end."""

    def start(self, snapshot: Snapshot, changes: Changes) -> bool:
        return True

    def forget(self) -> None:
        """It remembers nothing."""

    def rest(self) -> None:
        """It uses nothing."""

    def close(self) -> None:
        """Nothing is open."""


class Estimate:
    """An estimated simulation. Raises Unplannable."""

    def __init__(self, captured: Captured, horizon: timedelta) -> None:
        self._patient, self._horizon = _Patient(), horizon
        self.life = Life(captured, parts=Parts(decide=self._patient, proposer=_NoProposer()))

    def of(self, change: Change) -> Outcome:
        """Apply a change, reconcile, and estimate. Raises BadChange."""
        self.life.apply(change)
        self.life.world.run(self.life, _WINDOW)
        snapshot = self.life.controller.state.snapshot(self.life.world.clock.now())
        return _Result(self.life, snapshot, self._patient.memory, self._horizon).outcome()


class _Result:
    """The estimate from the snapshot at the end of the window."""

    def __init__(self, life: Life, snapshot: Snapshot, memory: Memory, horizon: timedelta) -> None:
        self._life, self._snapshot, self._memory = life, snapshot, memory
        self._until, self._held = life.began + horizon, list[Held]()
        consolidated = dict(self._consolidated())
        self._seen = view(snapshot, memory.turn(snapshot))  # the latest turn of a memory is the one that counts
        self._going = {**consolidated, **dict(self._drifted())}

    def outcome(self) -> Outcome:
        life, pods = self._life, dict(self._leaving())
        asked = [*self._snapshot.pods.pending.values(), *(pod for pod, _ in pods.values())]
        turn = self._seen.turn
        found = solve(
            self._snapshot,
            sorted({pod.key: pod for pod in asked}.values(), key=lambda pod: pod.key),
            SolveOptions(exclude=frozenset(self._going)),
            context=context_of(self._snapshot, turn),
        )
        nodes = self._staying(found.new_nodes)
        cost: dict[str, int] = {}
        for one in nodes:
            cost[one.nodepool] = cost.get(one.nodepool, 0) + one.price
        return Outcome(
            began=life.began,
            ended=life.began,
            at_rest=False,
            departures=tuple(sorted(self._departures(), key=lambda one: one.node.name)),
            arrivals=tuple(one for one in nodes if one.name not in life.diary.first),
            moves=tuple(Move(life.began, key, name) for key, (_, name) in sorted(pods.items())),
            waiting=tuple(Waiting(key, str(refusal)) for key, refusal in sorted(found.unplaced.items())),
            held=tuple(sorted(self._held, key=lambda one: one.node)),
            cost=dict(sorted(cost.items())),
            simulated=False,
        )

    # --- disrupted nodes --------------------------------------------------------------------------------------------
    def _drifted(self) -> Iterator[tuple[str, str]]:
        """Return keys of drifted nodes without a blocker until the horizon, with the reason; the others are held."""
        ledger = Ledger(self._seen)
        for key, state in sorted(self._snapshot.state_nodes.items()):
            drifted = state.claim.condition(DRIFTED) if state.claim is not None else None
            if state.claim is None or state.deleting or drifted is None or drifted.status != "True":
                continue
            blocker = self._blocker(key, state, ledger)
            if blocker:
                self._held.append(Held(state.claim.name, drifted.reason, blocker))
            else:
                yield key, DRIFTED

    def _blocker(self, key: str, state: StateNode, ledger: Ledger) -> str:
        """Return the blocker of a drifted node until the horizon; empty when the node is disrupted."""
        found = candidate(self._seen, key, eventual=True)
        if isinstance(found, Blocker):
            passing = found.code in _PASSING or (found.until is not None and found.until <= self._until)
            return "" if passing else found.text
        budget = ledger.budgets.get(state.pool_name)
        if budget is not None and budget.allowed[DRIFTED]:
            return ""
        if any(turn <= self._until for turn in self._life.pace.turns(self._snapshot.now)):
            return ""
        return f"the budgets of NodePool {state.pool_name} allow no disruption for drift"

    def _consolidated(self) -> Iterator[tuple[str, str]]:
        """Return keys of nodes that the first consolidation would remove or replace, and of empty nodes."""
        for proposal in propose(self._snapshot, memory=self._memory):
            yield from ((key, proposal.reason) for key in proposal.candidates)
        names = {one.claim.name: key for key, one in self._snapshot.state_nodes.items() if one.claim is not None}
        for action in decide(self._snapshot, self._memory).actions:
            if isinstance(action, PatchObject) and action.verb == START_COMMAND:
                yield names[action.ref.name], action.reason.code

    def _departures(self) -> Iterator[Departure]:
        diary = self._life.diary
        yield from (replace(one, started=None) for one in diary.departures.values())
        for key, reason in self._going.items():
            claim = self._snapshot.state_nodes[key].claim
            if claim is not None and claim.name in diary.first:
                yield Departure(diary.node(claim), reason, None)

    def _leaving(self) -> Iterator[tuple[str, tuple[Pod, str]]]:
        """Return pods that need another node, by key, with their current NodeClaim."""
        for key, state in self._snapshot.state_nodes.items():
            if state.node is not None and state.claim is not None and (key in self._going or state.deleting):
                rows = self._seen.pods_on(state.node.name)
                yield from ((pod.key, (pod, state.claim.name)) for pod in rows if reschedulable(pod))

    # --- nodes after the change -------------------------------------------------------------------------------------
    def _staying(self, new: tuple[NewNode, ...]) -> list[PlannedNode]:
        """Return the remaining nodes, new nodes for pods, and the successors of nodes of static NodePools."""
        going = {one.name for key in self._going if (one := self._snapshot.state_nodes[key].claim) is not None}
        claims, pools = self._life.claims_staying(), self._snapshot.node_pools
        rows = [self._life.diary.node(one) for one in claims if one.name not in going]
        for claim in claims:
            pool = pools.get(claim.pool_name)
            if claim.name in going and pool is not None and pool.static:
                rows.append(replace(self._life.diary.node(claim), name="", pods=0))
        return [*rows, *map(_planned, new)]


def _planned(new: NewNode) -> PlannedNode:
    """Return a node that does not exist yet: its cheapest type; zone and capacity type if only one is possible."""
    return PlannedNode(
        "",
        new.pool,
        new.instance_types[0],
        new.zones[0] if len(new.zones) == 1 else "",
        new.capacity_types[0] if len(new.capacity_types) == 1 else "",
        new.price,
        len(new.pods),
    )
