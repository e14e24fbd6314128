"""What real pods and nodes carry beside what decisions read: environment, volumes, container status, managed fields.

A pod of the feed has the parts and the size that one on EKS has (about 7 kB of JSON), a node its conditions, addresses
and list of images (about 9 kB). Nothing is padding in one long string: a reader has to walk past all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

Json = dict[str, Any]

_REGISTRY: Final = "123456789012.dkr.ecr.us-west-2.amazonaws.com"
_CONTROLLER, _KUBELET = "kube-controller-manager", "kubelet"
_VARIABLES: Final = (
    *("LOG_LEVEL", "LOG_FORMAT", "PORT", "METRICS_PORT", "DATABASE_POOL_SIZE", "CACHE_TTL_SECONDS"),
    *(
        "FEATURE_FLAGS_URL",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_SERVICE_NAME",
        "REQUEST_TIMEOUT_SECONDS",
        "UPSTREAM_URL",
    ),
)
_SECRETS: Final = ("DATABASE_URL", "API_KEY", "SIGNING_KEY")
_FIELDS: Final = {"POD_NAME": "metadata.name", "POD_IP": "status.podIP", "NODE_NAME": "spec.nodeName"}
_TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
IMAGES_PER_NODE: Final = 24


# --- pods -------------------------------------------------------------------------------------------------------------
def pod_spec(app: str, requests: Mapping[str, str], wishes: Mapping[str, Any]) -> Json:
    """The spec of a service's pod as the API server has stored it, defaults and all. `wishes` are about its place.

    Parts that are the same in all of a service's pods are encoded here, once.
    """
    return {
        "volumes": msgspec.Raw(msgspec.json.encode(_volumes(app))),
        "containers": msgspec.Raw(msgspec.json.encode([_container(app, requests)])),
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "serviceAccount": app,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": _TOLERATIONS,
        **wishes,
    }


def _volumes(app: str) -> list[Json]:
    token: list[Json] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ]
    return [
        {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "kube-api-access", "projected": {"sources": token, "defaultMode": 420}},
    ]


def _container(app: str, requests: Mapping[str, str]) -> Json:
    plain: list[Json] = [
        {"name": name, "value": f"{app}.{name.lower().replace('_', '-')}.internal"} for name in _VARIABLES
    ]
    secret = [
        {"name": n, "valueFrom": {"secretKeyRef": {"name": f"{app}-secrets", "key": n.lower()}}} for n in _SECRETS
    ]
    fields = [
        {"name": n, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}} for n, path in _FIELDS.items()
    ]
    mounts = {"config": "/etc/app", "tmp": "/tmp", "kube-api-access": "/var/run/secrets/kubernetes.io/serviceaccount"}
    return {
        "name": "main",
        "image": f"{_REGISTRY}/{app}:2026.11.20-3f9c2d1",
        "args": ["serve", "--config=/etc/app/config.yaml"],
        "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9090},
        ],
        "env": plain + secret + fields,
        "resources": {"requests": dict(requests), "limits": {"memory": requests["memory"]}},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
        **{name: _probe(path) for name, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/ready"))},
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sleep", "5"]}}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
    }


def _probe(path: str) -> Json:
    get = {"path": path, "port": "http", "scheme": "HTTP"}
    return {"httpGet": get, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def set_by_controller(labels: Sequence[str], owner_uid: str) -> msgspec.Raw:
    """The fields of a pod that its ReplicaSet's controller set, in the form of managed fields."""
    container: Json = {
        f"f:{name}": {} for name in ("image", "imagePullPolicy", "name", "args", "terminationMessagePath")
    }
    variables: Json = {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in _VARIABLES}
    container |= {"f:env": {".": {}, **variables}, "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}}}}
    spec: Json = {f"f:{n}": {} for n in ("dnsPolicy", "restartPolicy", "schedulerName", "securityContext", "volumes")}
    meta: Json = {
        "f:generateName": {},
        "f:labels": {".": {}, **{f"f:{label}": {} for label in labels}},
        "f:ownerReferences": {".": {}, f'k:{{"uid":"{owner_uid}"}}': {}},
    }
    containers = {'k:{"name":"main"}': {".": {}, **container}}
    return msgspec.Raw(msgspec.json.encode({"f:metadata": meta, "f:spec": {"f:containers": containers, **spec}}))


def _set_by_kubelet() -> msgspec.Raw:
    parts: Json = {f"f:{n}": {} for n in ("containerStatuses", "hostIP", "phase", "podIP", "podIPs", "startTime")}
    told: Json = {f'k:{{"type":"{n}"}}': {".": {}, "f:status": {}, "f:type": {}} for n in ("Ready", "Initialized")}
    return msgspec.Raw(msgspec.json.encode({"f:status": {"f:conditions": told, **parts}}))


_SET_BY_KUBELET: Final = _set_by_kubelet()


def pod_managed_fields(by_controller: msgspec.Raw, moment: str, running: bool) -> list[Json]:
    """Who set which field: the controller the spec, the kubelet the status of a pod that runs."""
    found = [_managed(_CONTROLLER, moment, by_controller)]
    return [*found, _managed(_KUBELET, moment, _SET_BY_KUBELET, "status")] if running else found


def _managed(manager: str, moment: str, fields: Json | msgspec.Raw, subresource: str = "") -> Json:
    row = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": moment, "fieldsType": "FieldsV1"}
    return {**row, "fieldsV1": fields, **({"subresource": subresource} if subresource else {})}


def running_status(app: str, uid: str, host_ip: str, pod_ip: str, moment: str) -> Json:
    """The status that a kubelet reports of a pod that is ready."""
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": t, "status": "True", "lastProbeTime": None, "lastTransitionTime": moment} for t in types]
    image = f"{_REGISTRY}/{app}"
    container = {
        "name": "main",
        "state": {"running": {"startedAt": moment}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": f"{image}:2026.11.20-3f9c2d1",
        "imageID": f"{image}@sha256:{uid.replace('-', '') * 2}",
        "containerID": f"containerd://{uid.replace('-', '')[::-1] * 2}",
        "started": True,
    }
    return {
        "phase": "Running",
        "conditions": conditions,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": moment,
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }


# --- nodes ------------------------------------------------------------------------------------------------------------
_PRESSURES: Final = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}


def dressed_node(node: Json, address: str, moment: str) -> Json:
    """A node of the sandbox with what kubelet and cloud controller say beside it."""
    status = node["status"]
    name = node["metadata"]["name"]
    ready = status["conditions"][0]
    pressures = [
        {"type": t, "status": "False", "reason": r, "message": f"kubelet: {r}", "lastTransitionTime": moment}
        for t, r in _PRESSURES.items()
    ]
    conditions = [{"lastHeartbeatTime": moment, **c} for c in (*pressures, {**ready, "message": "kubelet is posting"})]
    more = {
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(node),
        "images": [_image(number) for number in range(IMAGES_PER_NODE)],
    }
    meta = {**node["metadata"], "managedFields": _node_managed_fields(node["metadata"], moment)}
    return {**node, "metadata": meta, "status": {**status, **more}}


def _node_info(node: Json) -> Json:
    return {
        "machineID": "ec2" + node["metadata"]["uid"].replace("-", "")[3:],
        "systemUUID": node["metadata"]["uid"],
        "bootID": node["metadata"]["uid"][::-1],
        "kernelVersion": "6.12.53-69.119.amzn2023",
        "osImage": "Amazon Linux 2023.9.20251117",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": "v1.36.1-eks-113cf36",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": node["metadata"]["labels"]["kubernetes.io/arch"],
    }


def _image(number: int) -> Json:
    name = f"{_REGISTRY}/service-{number:03d}"
    digest = f"{number:02x}3fa94c" * 8
    return {"names": [f"{name}@sha256:{digest}", f"{name}:2026.11.20-3f9c2d1"], "sizeBytes": 81_000_000 + number * 7919}


def _node_managed_fields(meta: Json, moment: str) -> list[Json]:
    labels: Json = {f"f:{label}": {} for label in meta["labels"]}
    own = {"f:metadata": {"f:labels": {".": {}, **labels}}, "f:spec": {"f:providerID": {}}}
    told: Json = {f'k:{{"type":"{t}"}}': {"f:lastHeartbeatTime": {}, "f:status": {}} for t in (*_PRESSURES, "Ready")}
    return [
        _managed(_KUBELET, moment, own),
        _managed(_KUBELET, moment, {"f:status": {"f:conditions": told, "f:images": {}, "f:nodeInfo": {}}}, "status"),
    ]
