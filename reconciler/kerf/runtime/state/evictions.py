"""Back-offs of what pods block, and their end when a PodDisruptionBudget allows more disruptions than before or goes.

The API server counts an eviction against `disruptionsAllowed` at once, and only the disruption controller raises it
again. So each rise by n ends the back-offs of n pods whose latest eviction a budget refused: one more attempt each.
Other attempts wait as long as before: those under a budget whose status is 0, or older than its last edit (its
controller is slow or down), and those that failed for another reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from typing import Final

from kerf.disruption.forced.interruption import CODES
from kerf.model import ends, kinds
from kerf.model.backoff import Steps
from kerf.model.changes.pdbs import Budget, allowed
from kerf.model.claims import deadline_of
from kerf.model.cluster import Cluster
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod, PodDisruptionBudget
from kerf.runtime.state.backoff import Backoff
from kerf_api.v1.nodeclaim import NodeClaim

#: Of an eviction that is refused, and of a deletion of a NodeClaim before which pods had come.
EVICTION_STEPS: Final = Steps(timedelta(milliseconds=100), timedelta(seconds=10))
_EVICTION: Final = "eviction/"
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
#: Whether a node has time, the deadline of its drain, the beginning of the drain, and its name.
_Turn = tuple[bool, datetime, datetime, str]


class Evictions(Backoff):
    """See the module. The subject of an eviction is `eviction/` and the pod's key."""

    def __init__(self) -> None:
        super().__init__(EVICTION_STEPS)
        #: Subjects whose latest attempt a budget refused.
        self._by_budget: set[str] = set()

    def refused_by_budget(self, subject: str, now: datetime) -> datetime:
        """As `failed`; a budget that allows more disruptions may end this wait."""
        until = self.failed(subject, now)
        self._by_budget.add(subject)
        return until

    def failed(self, subject: str, now: datetime, at_least_seconds: float = 0.0) -> datetime:
        self._by_budget.discard(subject)
        return super().failed(subject, now, at_least_seconds)

    def succeeded(self, subject: str) -> None:
        self._by_budget.discard(subject)
        super().succeeded(subject)

    def budget_changed(
        self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None, cluster: Cluster, now: datetime
    ) -> None:
        """End as many waits of pods under this budget as it allows more disruptions than before; all if it is gone."""
        budget = new if new is not None else old
        if budget is None or not self._by_budget:
            return
        before = allowed(old) if old is not None else 0
        more = allowed(new) - before if new is not None else len(self._by_budget)
        if more > 0:
            waiting = list(self._waiting(budget, cluster, now))
            turns = {node: _turn(node, cluster) for node in {pod.spec.node_name for pod in waiting}}
            for pod in nsmallest(more, waiting, key=lambda pod: (turns[pod.spec.node_name], pod.key)):
                self.end(_EVICTION + pod.key, now)

    def _waiting(self, pdb: PodDisruptionBudget, cluster: Cluster, now: datetime) -> Iterator[Pod]:
        """The pods under this budget that are left alone because a budget refused their eviction."""
        table, selector = cluster.objects(kinds.POD), Budget.of(pdb).selector
        prefix = f"{_EVICTION}{pdb.metadata.namespace}/"
        for subject in self._by_budget:
            until = self.until(subject)
            if until is None or until <= now or not subject.startswith(prefix):
                continue
            pod = table.get(subject.removeprefix(_EVICTION))
            if pod is not None and selector.matches(pod.metadata.labels) and pods.evictable(pod, now):
                yield pod


def _turn(node: str, cluster: Cluster) -> _Turn:
    """The order of nodes whose pods wait for one budget: first those whose instance EC2 reclaims or stops, then by the
    deadline of the drain; then one node after another, so that the first is soon empty."""
    claims = cluster.claims_of(node)
    since = (claim.metadata.deletion_timestamp or _LATEST for claim in claims)
    return (
        not any(ends.code(claim) in CODES for claim in claims),
        min(map(_deadline, claims), default=_LATEST),
        min(since, default=_LATEST),
        node,
    )


def _deadline(claim: NodeClaim) -> datetime:
    try:
        return deadline_of(claim) or _LATEST
    except ValueError:  # the drain replaces it
        return _LATEST
