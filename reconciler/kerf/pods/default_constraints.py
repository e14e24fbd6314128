"""Default spread constraints: pods that ask for no spread of their own are planned as if they had asked for these.

The setting says everything but whom a constraint counts; that follows from what the pod belongs to: the Services that
select it, and the ReplicationController, ReplicaSet or StatefulSet that controls it. Pods of one workload get one and
the same selector, so that they stay of one class. Source: scheduling reference §5.9 and the kube-scheduler's rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kerf.model.kubernetes.objects import Expression, LabelSelector, Pod, TopologySpreadConstraint
from kerf.model.kubernetes.pods import controller
from kerf.model.snapshot import Snapshot
from kerf_api.v1.meta import OwnerReference

Constraints = tuple[TopologySpreadConstraint, ...]
_Pairs = Mapping[str, str]


class DefaultSpread:
    """The defaults of one snapshot; what was found out about pods that belong to the same is kept."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._constraints = snapshot, snapshot.settings.default_constraints
        self._services: dict[str, list[_Pairs]] = {}
        for service in snapshot.services.values() if self._constraints else ():
            if service.spec.selector and not service.metadata.unreadable:
                self._services.setdefault(service.metadata.namespace, []).append(service.spec.selector)
        self._known: dict[object, Constraints] = {}

    def given(self, pods: Iterable[Pod]) -> list[Pod]:
        """The pods, with the defaults on each that has no constraint of its own and belongs to something."""
        return [self._with_defaults(pod) for pod in pods] if self._constraints else list(pods)

    def _with_defaults(self, pod: Pod) -> Pod:
        if pod.spec.topology_spread_constraints:
            return pod
        constraints = self._for(pod)
        return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints)) if constraints else pod

    def _for(self, pod: Pod) -> Constraints:
        meta = pod.metadata
        owner = controller(pod)
        mark = (owner.api_version, owner.kind, owner.name) if owner is not None else None
        key = (meta.namespace, mark, frozenset(meta.labels.items()))
        known = self._known.get(key)
        if known is None:
            selector = self._selector(meta.namespace, meta.labels, owner)
            rows = self._constraints if selector is not None else ()
            known = self._known[key] = tuple(replace(row, label_selector=selector) for row in rows)
        return known

    def _selector(self, namespace: str, own: _Pairs, owner: OwnerReference | None) -> LabelSelector | None:
        """Whom the constraints of such a pod count; None when it belongs to nothing."""
        pairs = dict[str, str]()
        for selector in self._services.get(namespace, ()):
            if all(own.get(key) == value for key, value in selector.items()):
                pairs |= selector
        rows: tuple[Expression, ...] = ()
        if owner is not None and (workload := self._workload(namespace, owner)) is not None:
            if isinstance(workload, LabelSelector):
                rows = _added(pairs, workload)
            else:
                pairs |= workload
        if not pairs and not rows:
            return None
        return LabelSelector(match_labels=dict(sorted(pairs.items())), match_expressions=rows)

    def _workload(self, namespace: str, owner: OwnerReference) -> LabelSelector | _Pairs | None:
        """The selector of who controls a pod; None when that is unknown, or of another kind."""
        tables: Mapping[tuple[str, str], Mapping[str, Any]] = {
            ("v1", "ReplicationController"): self._snapshot.replication_controllers,
            ("apps/v1", "ReplicaSet"): self._snapshot.replica_sets,
            ("apps/v1", "StatefulSet"): self._snapshot.stateful_sets,
        }
        found = tables.get((owner.api_version, owner.kind), {}).get(f"{namespace}/{owner.name}")
        return None if found is None or found.metadata.unreadable else found.spec.selector


def _added(pairs: dict[str, str], selector: LabelSelector) -> tuple[Expression, ...]:
    """What a workload's selector asks for beside `pairs`, which take in its own; a contradiction stays one."""
    rows = list(selector.match_expressions)
    for key, value in sorted(selector.match_labels.items()):
        if pairs.setdefault(key, value) != value:
            rows.append(Expression(key=key, operator="In", values=(value,)))
    return tuple(rows)
