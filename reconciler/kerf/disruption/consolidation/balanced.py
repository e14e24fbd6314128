"""The policy Balanced: a move is worth it when it saves at least half as large a share of its pool's cost as the share
of the pool's pods that it disturbs. Source: disruption reference §3.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kerf.disruption.candidates import costs
from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.view import View
from kerf.model.snapshot import StateNode
from kerf_api.v1.nodepool import NodePool

BALANCED = "Balanced"
#: The share of cost may be smaller than the share of disruption by this factor.
K = 2


@dataclass(frozen=True, slots=True)
class Score:
    """The shares of a pool's cost and of its disruption that a move is."""

    saved: Fraction
    disturbed: Fraction

    @property
    def text(self) -> str:
        return f"{float(self.saved / self.disturbed):.2f}" if self.disturbed else "infinite"


@dataclass(frozen=True, slots=True)
class Totals:
    """What a pool costs (millionths of a dollar per hour), and what disrupting all of it would (in `costs.ONE`)."""

    price: int
    cost: int

    def approves(self, saving: Fraction | int, cost: int) -> bool:
        """Whether a move that saves this much and disrupts this much scores 1/K or more."""
        if saving <= 0 or self.price <= 0 or self.cost <= 0:
            return False
        return K * saving * self.cost >= cost * self.price


class Policy:
    """What the policies of NodePools say of moves. Totals are those of one view, whatever goes meanwhile."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._totals: dict[str, Totals] = {}

    def approves(self, candidates: Sequence[Candidate], saving: int) -> bool:
        """Whether every Balanced pool among the candidates' finds its share of the saving worth the disruption."""
        return all(whole.approves(share, cost) for _, whole, share, cost in self._shares(candidates, saving))

    def scores(self, candidates: Sequence[Candidate], saving: int) -> Iterator[tuple[NodePool, Score]]:
        """Of each of these pools, where it costs anything."""
        for pool, whole, share, cost in self._shares(candidates, saving):
            if whole.price > 0 and whole.cost > 0:
                yield pool, Score(share / whole.price, Fraction(cost, whole.cost))

    def _shares(self, candidates: Sequence[Candidate], saving: int) -> Iterator[tuple[NodePool, Totals, Fraction, int]]:
        """By Balanced pool: its totals, its share of the saving, and what the move costs its pods."""
        price = sum(one.price for one in candidates)
        by_pool: dict[str, list[Candidate]] = {}
        for one in candidates:
            if one.pool.spec.disruption.consolidation_policy == BALANCED:
                by_pool.setdefault(one.pool.name, []).append(one)
        for name, mine in by_pool.items():
            if name not in self._totals:
                self._totals[name] = totals(self._view, mine[0].pool)
            share = Fraction(saving * sum(one.price for one in mine), price) if price else Fraction(0)
            yield mine[0].pool, self._totals[name], share, sum(one.cost for one in mine)


def totals(view: View, pool: NodePool) -> Totals:
    """Over all nodes of the pool."""
    members = [s for s in view.snapshot.state_nodes.values() if s.claim is not None and s.pool_name == pool.name]
    types = view.types_of(pool)
    price = sum(costs.node_price(types, state.labels) for state in members)
    return Totals(price, sum(_cost(view, state) for state in members))


def _cost(view: View, state: StateNode) -> int:
    return costs.reschedule_cost(view.snapshot.pods.on(state.node.name)) if state.node is not None else costs.ONE
