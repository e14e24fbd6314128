"""All views of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kerf.disruption.view import view
from kerf.judgement.values import Budgets
from kerf.model.snapshot import Snapshot
from kerf.provisioning.groups import Group, groups
from kerf.scheduling.facts.nodes import Needs
from kerf.views.blocked import BlockedCost, blocked_costs
from kerf.views.cluster import NodeRow, PoolRow, node_rows, pool_rows
from kerf.views.costs import TEAM, Costs, costs
from kerf.views.upcoming import DUE, RUNNING, Disruption, all_budgets, disruptions


@dataclass(frozen=True, slots=True)
class Board:
    """The views, as of `snapshot.now`. `waiting` counts the pods of `pending`."""

    snapshot: Snapshot
    nodes: tuple[NodeRow, ...]
    pools: tuple[PoolRow, ...]
    costs: Costs
    pending: tuple[Group, ...]
    disruptions: tuple[Disruption, ...]
    budgets: tuple[Budgets, ...]
    blocked: tuple[BlockedCost, ...]

    @property
    def now(self) -> datetime:
        return self.snapshot.now

    @property
    def price(self) -> int:
        """Of all nodes with a known price, in millionths of a dollar per hour."""
        return sum(pool.price for pool in self.pools)

    @property
    def waiting(self) -> int:
        return sum(len(group.pods) for group in self.pending)

    @property
    def urgent(self) -> int:
        """Nodes whose disruption is in progress or due within a day."""
        return len({one.node for one in self.disruptions if one.state in (RUNNING, DUE)})

    @property
    def pods(self) -> int:
        """Pods on nodes that have not ended."""
        return sum(row.pods for row in self.nodes)

    def node(self, name: str) -> NodeRow | None:
        """The row of a node; None when there is none of the name."""
        return next((row for row in self.nodes if row.name == name), None)


def board(snapshot: Snapshot, label: str = TEAM, needs: Needs | None = None) -> Board:
    """All views; costs are by this label of pods too. `needs` has the requests of pods that are known already."""
    seen, needs = view(snapshot), needs or Needs()
    rows = node_rows(seen, needs)
    by_user, found = costs(seen, rows, needs, label), disruptions(rows, snapshot.now)
    blocked = blocked_costs(seen, rows)
    return Board(snapshot, rows, pool_rows(rows), by_user, groups(snapshot), found, all_budgets(seen), blocked)
