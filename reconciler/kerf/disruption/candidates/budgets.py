"""How many nodes of each NodePool may still be disrupted, counted once per plan and taken from as commands start.

A node that is not Ready, that is being deleted for any reason or that a command is about, uses up budget whichever
client asked for it. Source: disruption reference §2.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.gauges import Labels, PlanGauge
from kerf.model.memory import Step
from kerf.model.plan import Event, Plan
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.v1.budgets import EXPIRED, REASONS, allowed_disruptions


@dataclass(frozen=True, slots=True)
class PoolBudget:
    """`nodes` count, `disrupting` of them are on their way or not Ready; `allowed` is by reason, before those."""

    nodes: int
    disrupting: int
    allowed: Mapping[str, int]

    def remaining(self, reason: str) -> int:
        return max(0, self.allowed[reason] - self.disrupting)


def budgets_of(view: View) -> dict[str, PoolBudget]:
    """The budget of every NodePool, by name."""
    sums = view.turn.all(_STANDING, view.each).sums
    pools = sorted(view.snapshot.node_pools)
    return {
        name: _budget(view.snapshot, name, sums.get((name, _NODES), 0), sums.get((name, _GOING), 0)) for name in pools
    }


_NODES, _GOING = "nodes", "going"


def _standing(view: View, key: str) -> tuple[tuple[tuple[tuple[str, str], int], ...], None]:
    """What one node adds to its pool's counts."""
    state = view.snapshot.state_nodes[key]
    if not _counts(state):
        return (), None
    return (((state.pool_name, _NODES), 1), ((state.pool_name, _GOING), int(_consumes(state)))), None


_STANDING: Step[View, tuple[tuple[tuple[str, str], int], ...]] = Step(
    "budget counts", "state_nodes", _standing, speaks=lambda _: False, counts=lambda counts: counts
)


def _counts(state: StateNode) -> bool:
    claim = state.claim
    return claim is not None and claim.managed and state.initialized and not claim.is_true("InstanceTerminating")


def _consumes(state: StateNode) -> bool:
    assert state.claim is not None
    assert state.node is not None
    meta = state.claim.metadata
    return meta.deleting or state.node.metadata.deleting or labels.COMMAND in meta.annotations or not state.node.ready


def _budget(snapshot: Snapshot, name: str, nodes: int, disrupting: int) -> PoolBudget:
    rows = snapshot.node_pools[name].spec.disruption.budgets
    allowed = {
        r: allowed_disruptions(budgets=rows, nodes=nodes, now=snapshot.now, reason=r) for r in (*REASONS, EXPIRED)
    }
    return PoolBudget(nodes, disrupting, allowed)


class Ledger:
    """The budgets of one plan with what the plan itself has started; made, used up and thrown away within it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._started: dict[str, int] = {}
        self._taken: set[str] = set()

    @cached_property
    def budgets(self) -> Mapping[str, PoolBudget]:
        return budgets_of(self._view)

    def remaining(self, pool: str, reason: str) -> int:
        budget = self.budgets.get(pool)
        return 0 if budget is None else max(0, budget.remaining(reason) - self._started.get(pool, 0))

    def take(self, pool: str, key: str) -> None:
        """This plan removes one node of the pool; `key` is that of `snapshot.state_nodes`."""
        self._started[pool] = self._started.get(pool, 0) + 1
        self._taken.add(key)

    def affordable(self, order: Iterable[Candidate], reason: str, beside: Iterable[Candidate] = ()) -> list[Candidate]:
        """As many of each NodePool as may still go beside those others, the first ones."""
        going, found = Counter(one.pool.name for one in beside), []
        for one in order:
            if going[one.pool.name] < self.remaining(one.pool.name, reason):
                going[one.pool.name] += 1
                found.append(one)
        return found

    @property
    def taken(self) -> Set[str]:
        """The nodes that this plan removes."""
        return self._taken

    @property
    def used(self) -> bool:
        """Whether the plan has started anything."""
        return bool(self._taken)


def reported(snapshot: Snapshot, budgets: Mapping[str, PoolBudget], reason: str) -> Plan:
    """The gauges of a reason, and an event on each NodePool that has nodes and allows none to be disrupted."""
    gauges: dict[tuple[PlanGauge, Labels], float] = {}
    events = []
    for name, budget in sorted(budgets.items()):
        row = (("nodepool", name), ("reason", reason))
        gauges[PlanGauge.ALLOWED_DISRUPTIONS, row] = budget.allowed[reason]
        gauges[PlanGauge.NODES_CONSUMING_BUDGETS, row] = budget.disrupting
        if budget.nodes and not budget.allowed[reason]:
            pool = snapshot.node_pools[name]
            text = f"No disruption for reason {reason} is allowed by the budgets"
            ref, uid = kinds.ref(pool), pool.metadata.uid
            events.append(Event(ref, uid, "Normal", "DisruptionBlocked", text, reason, 60).standing())
    return Plan(events=tuple(events), gauges=gauges)
