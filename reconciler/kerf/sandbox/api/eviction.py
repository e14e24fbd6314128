"""Evictions and the budgets that limit them: the pod's eviction subresource and the disruption controller.

A budget's status says how many disruptions are allowed now. An eviction takes one and deletes the pod; the controller
counts again when pods change. Sources: Kubernetes' eviction API and policy/v1 PodDisruptionBudget.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod, PodDisruptionBudget
from kerf.ports import Conflict, EvictionBlocked, SeveralBudgets
from kerf.sandbox.api import selectors
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.api.kinds import BY_NAME
from kerf_api.v1.meta import ObjectMeta, OwnerReference

#: The kinds that have a number of replicas.
_SCALED = ("Deployment", "ReplicaSet", "StatefulSet")


def ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def evict(server: ApiServer, namespace: str, name: str, uid: str = "") -> None:
    """Raises AlreadyGone, Conflict (another UID), EvictionBlocked (no budget left), SeveralBudgets."""
    pod: Pod = server.get(kinds.POD, namespace, name).value
    if uid and uid != pod.metadata.uid:
        raise Conflict(f'pods "{name}": the UID in the precondition is not {pod.metadata.uid}')
    if pod.status.phase not in ("Pending", "Succeeded", "Failed") and not pod.metadata.deleting:
        _take(server, pod)
    server.delete(kinds.POD, namespace, name, uid=uid)


def _take(server: ApiServer, pod: Pod) -> None:
    """One disruption from the pod's budget, if it has one and needs it."""
    budgets = [r.value for r in server.records(kinds.PDB, pod.metadata.namespace) if _covers(r.value, pod)]
    if len(budgets) > 1:
        raise SeveralBudgets(
            f"pod {pod.key} has more than one PodDisruptionBudget, which the eviction subresource does not support"
        )
    if not budgets or _free(budgets[0], pod):
        return
    budget = budgets[0]
    stale = budget.status.observed_generation < budget.metadata.generation
    if stale or budget.status.disruptions_allowed <= 0:
        raise EvictionBlocked(f"eviction of {pod.key} would violate the budget {budget.metadata.name}")
    left = {"status": {"disruptionsAllowed": budget.status.disruptions_allowed - 1}}
    server.patch(kinds.PDB, pod.metadata.namespace, budget.metadata.name, left, subresource="status")


def _free(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the pod may be evicted without a disruption because it is not healthy."""
    if ready(pod):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    return budget.metadata.namespace == pod.metadata.namespace and selectors.matches(
        budget.spec.selector, pod.metadata.labels
    )


class DisruptionController:
    """Keeps the status of PodDisruptionBudgets true."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._dirty: dict[str, None] = {}
        server.listen(self._heard)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is not None and record.kind.name in ("Pod", "PodDisruptionBudget"):
            self._dirty[record.key[0]] = None

    def settle(self) -> bool:
        dirty, self._dirty = list(self._dirty), {}
        for namespace in dirty:
            for record in list(self._server.records(kinds.PDB, namespace)):
                self._count(record)
        return bool(dirty)

    def _count(self, record: Record) -> None:
        budget: PodDisruptionBudget = record.value
        covered = [r.value for r in self._server.records(kinds.POD, record.key[0]) if _covers(budget, r.value)]
        expected, desired = self._wanted(budget, covered)
        healthy = sum(ready(pod) and not pod.metadata.deleting for pod in covered)
        status = {
            "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "observedGeneration": budget.metadata.generation,
        }
        self._server.patch(kinds.PDB, *record.key, {"status": status}, subresource="status")

    def _wanted(self, budget: PodDisruptionBudget, pods: list[Pod]) -> tuple[int, int]:
        """(pods expected, healthy pods desired). Percentages and maxUnavailable count what the owners ask for.

        Pods that are being deleted or have ended are among the pods. No pods are expected where an owner has no scale:
        then the controller allows no disruption.
        """
        least, most = budget.spec.min_available, budget.spec.max_unavailable
        if isinstance(least, int):
            return len(pods), least
        expected = self._scale(pods)
        if most is not None:
            return expected, max(0, expected - _share(most, expected))
        return expected, _share(least if least is not None else 1, expected)

    def _scale(self, pods: list[Pod]) -> int:
        """Replicas of the controllers of these pods; a pod without one does not count."""
        replicas: dict[str, int] = {}
        for pod in pods:
            owner = _controller(pod.metadata)
            if owner is None:
                continue
            found = self._owner(pod.metadata.namespace, owner)
            if found is None:
                return 0
            replicas[found.manifest["metadata"]["uid"]] = found.value.spec.replicas
        return sum(replicas.values())

    def _owner(self, namespace: str, owner: OwnerReference) -> Record | None:
        """The object whose replicas count: of a Deployment's ReplicaSet the Deployment."""
        if owner.kind not in _SCALED:
            return None
        found = self._server.find(BY_NAME[owner.kind], namespace, owner.name)
        above = _controller(found.value.metadata) if found is not None else None
        return self._owner(namespace, above) if above is not None and above.kind == "Deployment" else found


def _controller(meta: ObjectMeta) -> OwnerReference | None:
    return next((owner for owner in meta.owner_references if owner.controller), None)


def _share(value: str | int, of: int) -> int:
    """A count, or a percentage rounded up."""
    if isinstance(value, int):
        return value
    return ceil(Fraction(int(value.rstrip("%")) * of, 100)) if value.endswith("%") else int(value)
