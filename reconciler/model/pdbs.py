"""What PodDisruptionBudgets say about a pod: whether it may be evicted now, and whether it ever may.

Only pods that the drain would evict are asked about. Source: disruption reference §1.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.model import pods
from reconciler.model.objects import Pod, PodDisruptionBudget
from reconciler.model.selectors import selector_of


@dataclass(frozen=True, slots=True)
class _Rows:
    """The budgets of one namespace: those that ask for a certain label, by one such label; and the others."""

    by_label: Mapping[tuple[str, str], tuple[PodDisruptionBudget, ...]]
    others: tuple[PodDisruptionBudget, ...]

    def near(self, labels: Mapping[str, str]) -> list[PodDisruptionBudget]:
        """All that may select these labels, and few that don't."""
        found = list(self.others)
        for item in labels.items():
            found += self.by_label.get(item, ())
        return found


@dataclass(frozen=True, slots=True)
class Pdbs:
    """The cluster's PodDisruptionBudgets by namespace."""

    by_namespace: Mapping[str, _Rows]

    @classmethod
    def of(cls, pdbs: Mapping[str, PodDisruptionBudget]) -> Pdbs:
        grouped: dict[str, list[PodDisruptionBudget]] = {}
        for key in sorted(pdbs):
            grouped.setdefault(pdbs[key].metadata.namespace, []).append(pdbs[key])
        return cls({namespace: _rows(found) for namespace, found in grouped.items()})

    def blocking(self, pod: Pod, now: datetime) -> tuple[str, ...]:
        """Keys (`namespace/name`) of the budgets that do not let this pod go now; all of them if there are several."""
        found = self._matching(pod, now)
        if not found:
            return ()
        if len(found) > 1:
            return tuple(_key(pdb) for pdb in found)
        return tuple(_key(pdb) for pdb in found if pdb.status.disruptions_allowed == 0 and not _forgives(pdb, pod))

    def forbids(self, pod: Pod, now: datetime) -> bool:
        """Whether no eviction of the pod can ever be allowed: the budget allows none at all, or there are several."""
        found = self._matching(pod, now)
        return len(found) > 1 or any(_closed(pdb) and not _forgives(pdb, pod) for pdb in found)

    def _matching(self, pod: Pod, now: datetime) -> list[PodDisruptionBudget]:
        """By name."""
        rows = self.by_namespace.get(pod.metadata.namespace)
        if rows is None:
            return []
        own = pod.metadata.labels
        found = [pdb for pdb in rows.near(own) if selector_of(pdb.spec.selector, {}, ()).matches(own)]
        return sorted(found, key=_key) if found and pods.evictable(pod, now) else []


def _rows(pdbs: Iterable[PodDisruptionBudget]) -> _Rows:
    by_label: dict[tuple[str, str], tuple[PodDisruptionBudget, ...]] = {}
    others = []
    for pdb in pdbs:
        wanted = pdb.spec.selector.match_labels if pdb.spec.selector is not None else {}
        if wanted:
            first = min(wanted.items())
            by_label[first] = (*by_label.get(first, ()), pdb)
        else:
            others.append(pdb)
    return _Rows(by_label, tuple(others))


def _key(pdb: PodDisruptionBudget) -> str:
    return f"{pdb.metadata.namespace}/{pdb.metadata.name}"


def _forgives(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """AlwaysAllow lets pods go that are not ready anyway."""
    unready = any(c.type == "Ready" and c.status == "False" for c in pod.status.conditions)
    return unready and pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"


def _closed(pdb: PodDisruptionBudget) -> bool:
    return str(pdb.spec.max_unavailable) in ("0", "0%") or pdb.spec.min_available == "100%"
