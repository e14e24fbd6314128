"""Kubernetes objects for small worlds, as JSON: each with no more than a plugin needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
RACK: Final = "example.com/rack"


def node(name: str, *, labels: Mapping[str, str] = {}, allocatable: Mapping[str, str] = {}, **spec: Any) -> Json:
    """A node with 4 CPU, 16 GiB of memory and 110 pods; `allocatable` changes or adds resources."""
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi", **allocatable}
    return {
        "metadata": {"name": name, "labels": {HOST: name, **labels}},
        "spec": spec,
        "status": {"allocatable": resources, "capacity": resources},
    }


def in_zones(*zones: str) -> list[Json]:
    """Nodes n1, n2 and so on, one in each of the zones."""
    return [node(f"n{number}", labels={ZONE: zone}) for number, zone in enumerate(zones, 1)]


def pod(
    name: str,
    *,
    on: str = "",
    labels: Mapping[str, str] = {},
    requests: Mapping[str, str] = {},
    container: Mapping[str, Any] = {},
    status: Mapping[str, Any] = {},
    meta: Mapping[str, Any] = {},
    **spec: Any,
) -> Json:
    """A pod in the namespace `default` with one container; bound if `on` names a node."""
    made: Json = {"name": "app", "image": "app", "resources": {"requests": dict(requests)}, **container}
    bound = {"nodeName": on} if on else {}
    return {
        "metadata": {"namespace": "default", "name": name, "labels": dict(labels), **meta},
        "spec": {"containers": [made], **bound, **spec},
        "status": dict(status),
    }


def term(key: str, app: str, **more: Any) -> Json:
    """A required term of pod affinity or anti-affinity: the pods labelled `app`, by a topology key."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def affinity(*terms: Json) -> Json:
    """Required pod affinity."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def anti_affinity(*terms: Json) -> Json:
    """Required pod anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def node_affinity(*terms: Json) -> Json:
    """Required node affinity."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def spread(key: str, app: str, **more: Any) -> Json:
    """A spread constraint that refuses nodes, with a skew of at most 1."""
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more}


def host_port(number: int, **more: Any) -> Json:
    """The ports of a container that takes one port of its node."""
    return {"ports": [{"containerPort": number, "hostPort": number, **more}]}


# --- volumes ----------------------------------------------------------------------------------------------------
DRIVER: Final = "ebs.csi.aws.com"


def storage_class(name: str = "late", mode: str = "WaitForFirstConsumer", **more: Any) -> Json:
    """A storage class of the EBS driver."""
    return {"metadata": {"name": name}, "provisioner": DRIVER, "volumeBindingMode": mode, **more}


def claim(name: str, *, volume: str = "", modes: Sequence[str] = ("ReadWriteOnce",), of: str = "late") -> Json:
    """A claim of 1 GiB; bound if `volume` names a PersistentVolume."""
    spec: Json = {"accessModes": list(modes), "storageClassName": of, "resources": {"requests": {"storage": "1Gi"}}}
    made: Json = {"metadata": {"namespace": "default", "name": name}, "spec": spec, "status": {"phase": "Pending"}}
    if volume:
        made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume
        made["status"]["phase"] = "Bound"
    return made


def volume(name: str, *, labels: Mapping[str, str] = {}, zones: Sequence[str] = (), bound_to: str = "") -> Json:
    """A PersistentVolume of the EBS driver; with `zones`, it has a node affinity."""
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "late",
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    if zones:
        wanted = {"key": ZONE, "operator": "In", "values": list(zones)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    if bound_to:
        spec["claimRef"] = {"namespace": "default", "name": bound_to}
    return {"metadata": {"name": name, "labels": dict(labels)}, "spec": spec, "status": {"phase": "Available"}}


def mounts(*claims: str) -> list[Json]:
    """The volumes of a pod that uses claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def csi_node(name: str, limit: int) -> Json:
    """The attach limit of a node for the EBS driver."""
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": limit}}
    return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}


# --- devices ----------------------------------------------------------------------------------------------------
GPU: Final = "gpu.example.com"


def device_class() -> Json:
    """A class of all devices of the GPU driver."""
    return {"metadata": {"name": GPU}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}]}}


def device_slice(on: str, *devices: str) -> Json:
    """The devices of a node."""
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "nodeName": on, "pool": pool, "devices": [{"name": name} for name in devices]}
    return {"metadata": {"name": f"slice-{on}"}, "spec": spec}


def device_claim_spec() -> Json:
    """A claim of one device of the class."""
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": GPU}}]}}


def device_claim(name: str) -> Json:
    """A claim of one device."""
    return {"metadata": {"namespace": "default", "name": name}, "spec": device_claim_spec()}


def device_claim_template(name: str) -> Json:
    """A template of claims of one device each."""
    return {"metadata": {"namespace": "default", "name": name}, "spec": {"spec": device_claim_spec()}}
