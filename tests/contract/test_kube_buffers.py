"""CapacityBuffers at the API server: what is read of them and of what they refer to, and the status that is written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kerf.model import kinds
from kerf.model.cluster import build
from kerf.model.plan import PatchObject
from kerf.model.settings import FeatureGates, Settings
from kerf.provisioning.provision import provision

from .kube_clusters import Cluster
from .kube_objects import deployment, pod_template

SETTINGS = Settings("contract", gates=FeatureGates(capacity_buffer=True))


def buffer(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": meta, "spec": spec}


def written(cluster: Cluster, *objects: Any) -> Any:
    """The buffer after the write that a plan about these objects asks for."""
    plan = provision(build(objects, now=datetime.now(UTC), settings=SETTINGS))
    (action,) = plan.actions
    assert isinstance(action, PatchObject)
    return cluster.kube.patch(
        action.ref, action.patch, subresource=action.subresource, resource_version=action.resource_version
    )


def test_the_status_that_is_decided_is_taken(cluster: Cluster, name: str) -> None:
    stored = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"}}
    template = cluster.kube.create(kinds.POD_TEMPLATE, {**stored, "template": pod_template(name)})
    made = cluster.kube.create(kinds.CAPACITY_BUFFER, buffer(name, podTemplateRef={"name": name}, replicas=2))
    ready = written(cluster, template, made)
    assert (ready.status.replicas, ready.status.pod_template_ref.name) == (2, name)
    assert ready.status.pod_template_generation == template.metadata.generation
    assert [(c.type, c.status, c.reason) for c in ready.status.conditions] == [
        ("ReadyForProvisioning", "True", "Resolved")
    ]
    lost = written(cluster, ready)
    assert (lost.status.replicas, lost.status.pod_template_ref, lost.status.pod_template_generation) == (0, None, None)
    assert {c.reason for c in lost.status.conditions} == {"PodTemplateNotFound", "NotReadyForProvisioning"}
    assert lost.metadata.generation == made.metadata.generation


def test_a_share_of_a_workload_that_the_server_keeps(cluster: Cluster, name: str) -> None:
    workload = cluster.kube.create(kinds.DEPLOYMENT, deployment(name, 3))
    ref = {"kind": "Deployment", "name": name}
    made = cluster.kube.create(kinds.CAPACITY_BUFFER, buffer(name, scalableRef=ref, percentage=50))
    assert made.spec.provisioning_strategy == "buffer.x-k8s.io/active-capacity"
    assert written(cluster, workload, made).status.replicas == 2
