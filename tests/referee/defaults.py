"""Default spread constraints: a pod that asks for no spread of its own is judged as if it had asked for the defaults.

They count whom all Services that select the pod, and its controller, select together. A ReplicationController's pairs
take the place of those of Services; a ReplicaSet or StatefulSet is asked beside them.
"""

from __future__ import annotations

import msgspec

from kerf.model.kubernetes.objects import Expression, LabelSelector, Pod
from kerf.model.snapshot import Snapshot
from tests.referee.selecting import matches


def with_defaults(snapshot: Snapshot, pod: Pod) -> Pod:
    defaults = snapshot.settings.default_constraints
    if pod.spec.topology_spread_constraints or not defaults:
        return pod
    rows = tuple(_rows(_pairs(snapshot, pod)) + _workload(snapshot, pod))
    if not rows:
        return pod
    meant = LabelSelector(match_expressions=rows)
    own = tuple(msgspec.structs.replace(default, label_selector=meant) for default in defaults)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, topology_spread_constraints=own))


def _pairs(snapshot: Snapshot, pod: Pod) -> LabelSelector:
    found: dict[str, str] = {}
    for service in snapshot.services.values():
        own = service.spec.selector
        same = service.metadata.namespace == pod.metadata.namespace
        if same and own is not None and matches(LabelSelector(match_labels=own), pod.metadata.labels):
            found.update(own)
    controller = snapshot.replication_controllers.get(_controller(pod, "v1", "ReplicationController"))
    if controller is not None:
        found.update(controller.spec.selector or {})
    return LabelSelector(match_labels=found)


def _workload(snapshot: Snapshot, pod: Pod) -> list[Expression]:
    replica_set = snapshot.replica_sets.get(_controller(pod, "apps/v1", "ReplicaSet"))
    stateful_set = snapshot.stateful_sets.get(_controller(pod, "apps/v1", "StatefulSet"))
    workload = replica_set if replica_set is not None else stateful_set
    return [] if workload is None or workload.spec.selector is None else _rows(workload.spec.selector)


def _controller(pod: Pod, api_version: str, kind: str) -> str:
    """The key of the pod's controller, if it is of this kind; else what is the key of nothing."""
    names = [
        owner.name
        for owner in pod.metadata.owner_references
        if owner.controller and (owner.api_version, owner.kind) == (api_version, kind)
    ]
    return f"{pod.metadata.namespace}/{names[0]}" if names else ""


def _rows(selector: LabelSelector) -> list[Expression]:
    pairs = sorted(selector.match_labels.items())
    return [Expression(key=k, operator="In", values=(v,)) for k, v in pairs] + list(selector.match_expressions)
