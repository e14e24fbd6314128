"""What PodDisruptionBudgets say about a pod: whether it may be evicted now, and whether it ever may.

Only pods that the drain would evict are asked about. Source: disruption reference §1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.model import pods
from reconciler.model.objects import Expression, LabelSelector, Pod, PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class Pdbs:
    """The cluster's PodDisruptionBudgets by namespace, each list sorted by name."""

    by_namespace: Mapping[str, tuple[PodDisruptionBudget, ...]]

    @classmethod
    def of(cls, pdbs: Mapping[str, PodDisruptionBudget]) -> Pdbs:
        grouped: dict[str, list[PodDisruptionBudget]] = {}
        for key in sorted(pdbs):
            grouped.setdefault(pdbs[key].metadata.namespace, []).append(pdbs[key])
        return cls({namespace: tuple(rows) for namespace, rows in grouped.items()})

    def blocking(self, pod: Pod, now: datetime) -> tuple[str, ...]:
        """Keys (`namespace/name`) of the budgets that do not let this pod go now; all of them if there are several."""
        found = self._matching(pod, now)
        if len(found) > 1:
            return tuple(_key(pdb) for pdb in found)
        return tuple(_key(pdb) for pdb in found if pdb.status.disruptions_allowed == 0 and not _forgives(pdb, pod))

    def forbids(self, pod: Pod, now: datetime) -> bool:
        """Whether no eviction of the pod can ever be allowed: the budget allows none at all, or there are several."""
        found = self._matching(pod, now)
        return len(found) > 1 or any(_closed(pdb) and not _forgives(pdb, pod) for pdb in found)

    def _matching(self, pod: Pod, now: datetime) -> list[PodDisruptionBudget]:
        rows = self.by_namespace.get(pod.metadata.namespace, ())
        if not rows or not pods.evictable(pod, now):
            return []
        return [pdb for pdb in rows if selects(pdb.spec.selector, pod.metadata.labels)]


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Kubernetes' label selection: None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    exact = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return exact and all(_meets(row, labels) for row in selector.match_expressions)


def _meets(row: Expression, labels: Mapping[str, str]) -> bool:
    if row.operator == "Exists":
        return row.key in labels
    if row.operator == "DoesNotExist":
        return row.key not in labels
    listed = labels.get(row.key) in row.values
    return listed if row.operator == "In" else not listed


def _key(pdb: PodDisruptionBudget) -> str:
    return f"{pdb.metadata.namespace}/{pdb.metadata.name}"


def _forgives(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """AlwaysAllow lets pods go that are not ready anyway."""
    unready = any(c.type == "Ready" and c.status == "False" for c in pod.status.conditions)
    return unready and pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"


def _closed(pdb: PodDisruptionBudget) -> bool:
    return pdb.spec.max_unavailable in (0, "0", "0%") or pdb.spec.min_available == "100%"
