"""Which pods a provisioning pass is about: valid pending ones, and those on nodes that are going away.

Source: scheduling reference §1.4 to §1.6.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model import pods
from reconciler.model.objects import Pod, PodDisruptionBudget
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.requirements_of import own_problem
from reconciler.scheduling.selectors import selector_of
from reconciler.scheduling.solve import PodRefusal


def pending_pods(snapshot: Snapshot) -> tuple[list[Pod], dict[str, PodRefusal]]:
    """Pending pods in order of their keys, and those for which no node is to be made, with the reason.

    A refusal without text is for a pod that has opted out: nothing is said about it.
    """
    good: list[Pod] = []
    refused: dict[str, PodRefusal] = {}
    for key in sorted(snapshot.pods.pending):
        pod = snapshot.pods.pending[key]
        problem = own_problem(pod)
        if problem is None:
            good.append(pod)
        else:
            refused[key] = PodRefusal("InvalidPod" if problem else "OptedOut", problem)
    return good, refused


def rehoused_pods(snapshot: Snapshot) -> list[Pod]:
    """Pods on nodes that are being deleted, as far as they will want another place, in order of their keys."""
    found: dict[str, Pod] = {}
    for key in sorted(snapshot.state_nodes):
        state = snapshot.state_nodes[key]
        if not state.deleting or state.node is None:
            continue
        for pod in snapshot.pods.on(state.node.name):
            if _moves(snapshot, pod):
                found[pod.key] = pod
    return [found[key] for key in sorted(found)]


def _moves(snapshot: Snapshot, pod: Pod) -> bool:
    if not pods.reschedulable(pod):
        return False
    if pods.active(pod) and pods.protected(pod, snapshot.now):
        return False
    return not (pods.evictable(pod, snapshot.now) and blocked(pod, snapshot.pdbs.values()))


def blocked(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> bool:
    """Whether budgets never let the pod be evicted: more than one matches, or one allows no disruption at all."""
    matching = [b for b in budgets if _covers(b, pod)]
    if len(matching) > 1:
        return True
    return any(_forbids(b) and not (_lets_unhealthy_go(b) and _unready(pod)) for b in matching)


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    same = budget.metadata.namespace == pod.metadata.namespace
    return same and selector_of(budget.spec.selector, {}, ()).matches(pod.metadata.labels)


def _forbids(budget: PodDisruptionBudget) -> bool:
    return str(budget.spec.max_unavailable) in ("0", "0%") or str(budget.spec.min_available) == "100%"


def _lets_unhealthy_go(budget: PodDisruptionBudget) -> bool:
    return budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"


def _unready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "False" for c in pod.status.conditions)
