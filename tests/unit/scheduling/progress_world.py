"""NodeClaims that were made for pods, and their Nodes, minutes after they came up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from kerf.model.instants import rfc3339
from kerf.model.kubernetes.objects import Node, Pod
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.scheduling import worlds as w

MINUTE = timedelta(minutes=1)
FOREIGN = {"key": "corp.example.com/agent", "value": "missing", "effect": "NoSchedule"}


def claim(
    name: str, *pods: Pod, minutes: float = 2, initialized: bool = True, pool: str = "default", **more: Any
) -> NodeClaim:
    """Made for these pods; initialized (or only registered) so many minutes ago. Keywords: annotations, allocatable."""
    since = rfc3339(w.NOW - minutes * MINUTE)
    types = ("Launched", "Registered", *(("Initialized",) if initialized else ()))
    conditions = [{"type": t, "status": "True", "lastTransitionTime": since} for t in types]
    notes = {labels.PLANNED_PODS: ",".join(sorted(pod_mark(pod.metadata.uid) for pod in pods))}
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    amounts = more.get("allocatable", {"cpu": "4", "memory": "4Gi", "pods": "110"})
    manifest = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": rfc3339(w.NOW - (minutes + 1) * MINUTE),
            "labels": {labels.NODEPOOL: pool, labels.INSTANCE_TYPE: "default"},
            "annotations": {**notes, **more.get("annotations", {})},
        },
        "spec": {"nodeClassRef": ref, "requirements": []},
        "status": {
            "providerID": f"aws:///z1/i-{name}",
            "imageID": "ami-1",
            "allocatable": amounts,
            "conditions": conditions,
        },
    }
    return decode(NodeClaim, manifest)


def ready(name: str, *, unschedulable: bool = False, ready: str = "True", **more: Any) -> Node:
    """The Node of such a claim."""
    made = w.node(name, labels={labels.NODEPOOL: "default", labels.INSTANCE_TYPE: "default"}, **more)
    condition = decode(
        Node, {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}
    )
    status = msgspec.structs.replace(made.status, conditions=condition.status.conditions)
    spec = msgspec.structs.replace(made.spec, unschedulable=unschedulable)
    return msgspec.structs.replace(made, status=status, spec=spec)
