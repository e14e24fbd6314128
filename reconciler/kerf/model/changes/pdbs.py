"""What PodDisruptionBudgets say about a pod: whether it may be evicted now, and whether it ever may.

Only pods that the drain would evict are asked about. A budget's status changes with every pod, but what it says of
evictions seldom does, and only that is noted in the journal. Sources: disruption reference §1.3, and the API server's
eviction subresource, whose rule this is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from kerf.model.changes.journal import Journal
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod, PodDisruptionBudget
from kerf.model.kubernetes.selectors import Selector, selector_of


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget as far as evictions go. `key` is `namespace/name`; `closed`: it never allows any.

    `frees_unready`: pods that are not ready may be evicted now, whatever it allows. So it is with AlwaysAllow; with
    IfHealthyBudget while the application is healthy.
    """

    key: str
    selector: Selector
    allows: bool
    closed: bool
    frees_unready: bool

    @classmethod
    def of(cls, pdb: PodDisruptionBudget) -> Budget:
        status = pdb.status
        return cls(
            f"{pdb.metadata.namespace}/{pdb.metadata.name}",
            selector_of(pdb.spec.selector, {}, ()),
            allowed(pdb) > 0,
            str(pdb.spec.max_unavailable) in ("0", "0%") or pdb.spec.min_available == "100%",
            pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
            or status.current_healthy >= status.desired_healthy > 0,
        )

    def frees(self, pod: Pod) -> bool:
        """Whether the pod may be evicted without being counted, because it is not ready."""
        return self.frees_unready and not pods.ready(pod)


def allowed(pdb: PodDisruptionBudget) -> int:
    """The number of evictions that its status allows now; 0 while that is older than the budget's last edit."""
    return pdb.status.disruptions_allowed if pdb.status.observed_generation >= pdb.metadata.generation else 0


@dataclass(frozen=True, slots=True)
class Selectors:
    """The budgets of one namespace, by key: those that ask for a certain label, by one such label; and the others."""

    by_label: Mapping[tuple[str, str], tuple[Selecting, ...]]
    others: tuple[Selecting, ...]

    def matching(self, labels: Mapping[str, str]) -> list[str]:
        """Keys of the budgets that select these labels, sorted."""
        near = [*self.others, *(row for item in labels.items() for row in self.by_label.get(item, ()))]
        return sorted(key for key, selector in near if selector.matches(labels))


#: A budget's key and selector.
Selecting = tuple[str, Selector]


def why_held(pod: Pod, holding: Sequence[str]) -> str:
    """For a person, how the budgets of these keys (one or more) keep the pod."""
    if len(holding) > 1:
        several = f"{pods.named(pod)} has several PodDisruptionBudgets, which eviction does not support"
        return f"{several}: {', '.join(holding)}"
    return f"PodDisruptionBudget {holding[0]} does not allow the eviction of {pods.named(pod)}"


@dataclass(frozen=True, slots=True)
class Pdbs:
    """The cluster's PodDisruptionBudgets: selectors by namespace, and what each budget says, by key."""

    selectors: Mapping[str, Selectors]
    budgets: Mapping[str, Budget]

    def blocking(self, pod: Pod, now: datetime) -> tuple[str, ...]:
        """Keys (`namespace/name`) of the budgets that do not allow the eviction of this pod now; all of them if there
        are several."""
        found = self._matching(pod, now)
        if len(found) > 1:
            return tuple(budget.key for budget in found)
        return tuple(budget.key for budget in found if not budget.allows and not budget.frees(pod))

    def forbids(self, pod: Pod, now: datetime) -> bool:
        """Whether no eviction of the pod can ever be allowed: the budget allows none at all, or there are several."""
        found = self._matching(pod, now)
        return len(found) > 1 or any(budget.closed and not budget.frees(pod) for budget in found)

    def _matching(self, pod: Pod, now: datetime) -> list[Budget]:
        """By key. A pod in phase Pending is under no budget: it has not begun to serve."""
        if pod.status.phase == "Pending":
            return []
        rows = self.selectors.get(pod.metadata.namespace)
        found = rows.matching(pod.metadata.labels) if rows is not None else []
        return [self.budgets[key] for key in found] if found and pods.evictable(pod, now) else []


class PdbIndex:
    """Budgets and selectors that follow PodDisruptionBudgets."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._budgets: dict[str, Budget] = {}
        self._selectors: dict[str, Selectors] = {}
        self._keys: dict[str, set[str]] = {}

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """By key; live, read-only."""
        return MappingProxyType(self._budgets)

    @property
    def selectors(self) -> Mapping[str, Selectors]:
        """By namespace; live, read-only."""
        return MappingProxyType(self._selectors)

    def replace(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        """One came (no `old`), changed, or went (no `new`)."""
        before = Budget.of(old) if old is not None else None
        after = Budget.of(new) if new is not None else None
        if before == after:
            return
        if after is not None:
            self._budgets[after.key] = after
        elif before is not None:
            del self._budgets[before.key]
        for budget in (before, after):
            if budget is not None:
                self._journal.touch("pdb_budgets", budget.key)
        if before is None or after is None or before.selector != after.selector:
            namespace = (new or old).metadata.namespace  # type: ignore[union-attr]
            self._select(namespace, before, after)

    def _select(self, namespace: str, before: Budget | None, after: Budget | None) -> None:
        keys = self._keys.setdefault(namespace, set())
        keys -= {before.key} if before is not None else set()
        keys |= {after.key} if after is not None else set()
        if keys:
            self._selectors[namespace] = _rows((key, self._budgets[key].selector) for key in sorted(keys))
        else:
            del self._keys[namespace]
            self._selectors.pop(namespace, None)
        self._journal.touch("pdb_selectors", namespace)


def _rows(budgets: Iterable[Selecting]) -> Selectors:
    by_label: dict[tuple[str, str], tuple[Selecting, ...]] = {}
    others = []
    for key, selector in budgets:
        if selector.pairs:
            first = selector.pairs[0]
            by_label[first] = (*by_label.get(first, ()), (key, selector))
        else:
            others.append((key, selector))
    return Selectors(by_label, tuple(others))
