"""Workloads and their templates: whose pods are spread by default, and for pods like whose room is kept."""

from __future__ import annotations

from kerf.model.kubernetes.objects import LabelSelector, PodTemplate
from kerf_api.v1.meta import ObjectMeta, Value


class StoredTemplate(Value, frozen=True, kw_only=True):
    """The object of kind PodTemplate, which holds what workloads have within them."""

    metadata: ObjectMeta
    template: PodTemplate = PodTemplate()


class WorkloadSpec(Value, frozen=True, kw_only=True):
    """One replica by default."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    pod_management_policy: str = "OrderedReady"


class WorkloadStatus(Value, frozen=True, kw_only=True):
    replicas: int = 0
    ready_replicas: int = 0


class Workload(Value, frozen=True, kw_only=True):
    """What the kinds below have in common."""

    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class Deployment(Workload, frozen=True, kw_only=True):
    pass


class ReplicaSet(Workload, frozen=True, kw_only=True):
    pass


class StatefulSet(Workload, frozen=True, kw_only=True):
    pass
