"""Workloads for pods whose controllers are missing in a snapshot: without them no evicted pod would be replaced.

Kerf watches ReplicaSets and StatefulSets only with a setting, and knows only the names of Jobs and others. In a plan
each workload keeps its current number of pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import controller
from kerf.sandbox.phases import active
from kerf_api.v1.meta import OwnerReference, encode

#: Kinds of controllers that the sandbox runs itself; pods of others are replaced like those of a ReplicaSet.
_OWN: Final[Mapping[str, Kind]] = {"ReplicaSet": kinds.REPLICA_SET, "StatefulSet": kinds.STATEFUL_SET}
#: Fields of a pod that depend on its node, and are not in its template.
_OF_PLACE: Final = ("nodeName",)
_NO_OTHERS: Final = ("DaemonSet", "Node")


def kind_of(owner: OwnerReference) -> Kind | None:
    """Return the kind of workload that represents an owner; None for owners that exist anyway."""
    return None if owner.kind in _NO_OTHERS else _OWN.get(owner.kind, kinds.REPLICA_SET)


def missing(pods: Iterable[Pod], known: Iterable[str]) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Return manifests of workloads, with kinds, for pods whose controller has a UID that is not known."""
    there, members = set(known), defaultdict[str, list[Pod]](list)
    for pod in pods:
        owner = controller(pod)
        if owner is not None and kind_of(owner) is not None and owner.uid not in there:
            members[owner.uid].append(pod)
    for uid in sorted(members):
        owner = controller(members[uid][0])
        kind = kind_of(owner) if owner is not None else None
        if owner is not None and kind is not None:
            yield kind, _manifest(owner, kind, sorted(members[uid], key=lambda pod: pod.key))


def _manifest(owner: OwnerReference, kind: Kind, pods: list[Pod]) -> dict[str, Any]:
    model = next((pod for pod in pods if active(pod)), pods[0])
    labels = dict(model.metadata.labels)
    template = encode(model)["spec"]
    meta = {"name": owner.name, "namespace": model.metadata.namespace, "uid": owner.uid, "generation": 1}
    spec: dict[str, Any] = {
        "replicas": sum(active(pod) for pod in pods),
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": dict(model.metadata.annotations)},
            "spec": {key: value for key, value in template.items() if key not in _OF_PLACE},
        },
    }
    if kind is kinds.STATEFUL_SET:
        spec |= _ordered(model, spec["template"], pods)
    return {"metadata": meta, "spec": spec}


def _ordered(model: Pod, template: dict[str, Any], pods: list[Pod]) -> dict[str, Any]:
    """Return the fields of a StatefulSet: replicas by its highest ordinal, templates for the claims of each pod."""
    own, shared = list[dict[str, Any]](), list[dict[str, Any]]()
    for volume in template["spec"].get("volumes", ()):
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        (own if claim == f"{volume.get('name')}-{model.metadata.name}" else shared).append(volume)
    template["spec"] = {**template["spec"], "volumes": shared}
    claims = [{"metadata": {"name": volume["name"]}, "spec": {}} for volume in own]
    ordinals = [int(text) for pod in pods if (text := pod.metadata.name.rpartition("-")[2]).isdigit()]
    return {
        "volumeClaimTemplates": claims,
        "replicas": max(ordinals, default=len(pods) - 1) + 1,
        "podManagementPolicy": "Parallel",
    }
