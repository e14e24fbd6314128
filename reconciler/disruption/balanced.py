"""The policy Balanced: a move is worth it when it saves at least half as large a share of its pool's cost as the share
of the pool's pods that it disturbs. Source: disruption reference §3.9.
"""

from __future__ import annotations

from dataclasses import dataclass

from api import labels
from api.v1.nodepool import NodePool
from reconciler.disruption import costs
from reconciler.disruption.view import View
from reconciler.model.snapshot import StateNode

BALANCED = "Balanced"
#: The share of cost may be smaller than the share of disruption by this factor.
_K = 2


@dataclass(frozen=True, slots=True)
class Totals:
    """What a pool costs (millionths of a dollar per hour), and what disrupting all of it would (in `costs.ONE`)."""

    price: int
    cost: int

    def approves(self, saving: int, cost: int) -> bool:
        """Whether a move that saves this much and disrupts this much scores 1/K or more."""
        if saving <= 0 or self.price <= 0 or self.cost <= 0:
            return False
        return _K * saving * self.cost >= cost * self.price


def totals(view: View, pool: NodePool) -> Totals:
    """Over all nodes of the pool."""
    members = [s for s in view.snapshot.state_nodes.values() if s.claim is not None and s.pool_name == pool.name]
    types = view.types_of(pool)
    price = sum(costs.price(types.get(s.labels.get(labels.INSTANCE_TYPE, "")), s.labels) for s in members)
    return Totals(price, sum(_cost(view, state) for state in members))


def _cost(view: View, state: StateNode) -> int:
    return costs.reschedule_cost(view.snapshot.pods.on(state.node.name)) if state.node is not None else costs.ONE
