"""A threshold of utilization, as Cluster Autoscaler has it.

A node whose pods request less than half of its CPU and less than half of its memory for ten minutes is deleted if its
pods fit on other nodes. Empty nodes are deleted together, others one at a time, without a replacement. Source: the
defaults of Cluster Autoscaler (`--scale-down-utilization-threshold`, `--scale-down-unneeded-time`,
`--max-empty-bulk-delete`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.candidates.costs import empty
from kerf.disruption.commands import start
from kerf.disruption.methods.methods import METHODS, Method
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.model.kubernetes.pods import requests
from kerf.model.plan import Plan, joined
from kerf.simulating.autoscalers.pacing import Changes, Pace, candidates
from kerf_api.v1.budgets import EMPTY, UNDERUTILIZED


def threshold(changes: Changes) -> tuple[Method, ...]:
    """The methods of disruption, with a threshold instead of emptiness and consolidation."""
    kept = tuple(method for method in METHODS if method.name not in ("emptiness", "consolidation"))
    return (*kept, Method("threshold", Threshold(changes)))


class Threshold:
    """See the module."""

    SHARE: Final = 0.5
    UNNEEDED: Final = timedelta(minutes=10)
    #: The number of empty nodes that are deleted together.
    BULK: Final = 10

    def __init__(self, changes: Changes) -> None:
        self._changes, self._pace = changes, Pace()
        self._since: dict[str, datetime] = {}

    def __call__(self, view: View, ledger: Ledger, ask: Solve) -> Plan:
        now = view.snapshot.now
        low = [one for one in candidates(view) if not one.pool.static and _utilization(one) < self.SHARE]
        self._since = {one.key: self._since.get(one.key, now) for one in low}
        ends = [since + self.UNNEEDED for since in self._since.values()]
        due = min((end for end in ends if end > now), default=None)
        ready = [one for one in low if self._since[one.key] + self.UNNEEDED <= now]
        if not ready or ledger.used:
            return Plan(next_due=due)
        changes = (self._changes(), tuple(one.key for one in ready))
        plan = self._pace.waits(now, changes) or self._begun(view, ready, ask) or self._pace.found_nothing(now, changes)
        return plan + Plan(next_due=due)

    def _begun(self, view: View, ready: Sequence[Candidate], ask: Solve) -> Plan | None:
        """Empty nodes, or the least utilized of the others whose pods fit elsewhere."""
        bare = [one for one in ready if empty(one.pods)]
        if bare:
            return joined(start(view, one, EMPTY, "it is empty") for one in bare[: self.BULK])
        if view.commands or any(state.deleting for state in view.snapshot.state_nodes.values()):
            return None
        for one in sorted(ready, key=lambda one: (_utilization(one), one.key)):
            outcome = simulate(view, [one], ask, Manner.FREELY)
            if outcome.blocker is None and not outcome.new_nodes:
                return start(view, one, UNDERUTILIZED, "its pods fit on other nodes")
        return None


def _utilization(one: Candidate) -> float:
    """The share of a node's allocatable CPU or memory, whichever is larger, that its pods request."""
    allocatable = one.state.allocatable
    return max(sum(requests(pod).get(name, 0) for pod in one.pods) / allocatable[name] for name in ("cpu", "memory"))
