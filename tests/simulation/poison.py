"""Objects that a lax API server would keep although they make no sense, and a Kube port that hands them out.

They lie beside the sandbox's own objects and come through the real door: as JSON, read by the decoders that read the
API server's answers. Writes to them take effect on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from kerf.kube.decoding import KindDecoder
from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import AlreadyGone, Listing, Unavailable
from kerf.sandbox.api.manifests import merged
from kerf_api import labels

LONG = "x" * 10_000
BORN = "2026-01-01T00:00:00Z"
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
#: So far along that a NodePool or a class is used.
READY = {
    "conditions": [
        {"type": type_, "status": "True", "reason": type_, "observedGeneration": 1, "lastTransitionTime": BORN}
        for type_ in ("ValidationSucceeded", "NodeClassReady", "Ready")
    ]
}


class PoisonedKube:
    """The Kube port of a world, with more objects in it. What it does not do itself the world's own port does."""

    def __init__(self, kube: Any, poison: Mapping[Kind, Sequence[Mapping[str, Any]]]) -> None:
        self._kube = kube
        self.problems: list[str] = []
        self._decoders = {kind.name: KindDecoder(kind, self._told) for kind in kinds.KNOWN}
        self.objects: dict[Ref, Mapping[str, Any]] = {}
        for kind, manifests in poison.items():
            for number, manifest in enumerate(manifests):
                self._keep(kind, number, manifest)

    def _keep(self, kind: Kind, number: int, manifest: Mapping[str, Any]) -> None:
        name = f"poison-{number}"
        own = {"name": name, "uid": f"uid-{kind.plural}-{number}", "resourceVersion": "1", "creationTimestamp": BORN}
        meta = {**own, "generation": 1, **({} if kind.cluster_scoped else {"namespace": "default"})}
        whole = {**manifest, "metadata": {**meta, **(manifest.get("metadata") or {})}}
        self.objects[Ref(kind.name, "" if kind.cluster_scoped else "default", name)] = whole

    def _told(self, kind: Kind, problem: str) -> None:
        self.problems.append(f"{kind.name}: {problem}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def list(self, kind: Kind, **selectors: str) -> Listing:
        found: Listing = self._kube.list(kind, **selectors)
        mine = [] if any(selectors.values()) else [one for ref, one in self.objects.items() if ref.kind == kind.name]
        page = {"metadata": {"resourceVersion": found.resource_version}, "items": mine}
        items, _ = self._decoders[kind.name].page(json.dumps(page).encode())
        return replace(found, items=(*found.items, *items))

    def get(self, ref: Ref) -> Any:
        return self._read(ref) if ref in self.objects else self._kube.get(ref)

    def patch(self, ref: Ref, patch: Mapping[str, Any], **how: str) -> Any:
        if ref not in self.objects:
            return self._kube.patch(ref, patch, **how)
        after: dict[str, Any] = dict(merged(self.objects[ref], patch))
        version = int(self.objects[ref]["metadata"]["resourceVersion"]) + 1
        after["metadata"] = {**after["metadata"], "resourceVersion": str(version)}
        self.objects[ref] = after
        return self._read(ref)

    def delete(self, ref: Ref, **how: Any) -> None:
        if ref in self.objects:
            del self.objects[ref]
        else:
            self._kube.delete(ref, **how)

    def evict(self, ref: Ref, **how: Any) -> None:
        if ref in self.objects:
            del self.objects[ref]
        else:
            self._kube.evict(ref, **how)

    def _read(self, ref: Ref) -> Any:
        if ref not in self.objects:
            raise AlreadyGone(str(ref))
        try:
            return self._decoders[ref.kind].one(json.dumps(self.objects[ref]).encode())
        except msgspec.DecodeError as error:
            raise Unavailable(str(error)) from error


# --- the poison -------------------------------------------------------------------------------------------------
def _pool(spec: Any = None, template: Any = None, meta: Any = None) -> dict[str, Any]:
    body: Any = {"nodeClassRef": CLASS_REF, "requirements": []}
    body = body | template if isinstance(template, dict) else body if template is None else template
    whole = {"weight": 100, "template": {"spec": body}}
    return {"metadata": meta or {}, "spec": whole | spec if isinstance(spec, dict) else spec or whole, "status": READY}


def _row(key: Any, operator: Any, *values: Any) -> dict[str, Any]:
    return {"requirements": [{"key": key, "operator": operator, "values": list(values)}]}


def _claim(spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    own = {"labels": {labels.NODEPOOL: "general"}, "finalizers": [labels.TERMINATION_FINALIZER], **meta}
    body: dict[str, Any] = {"nodeClassRef": CLASS_REF, "requirements": [], "resources": {"requests": {"cpu": "1"}}}
    body["taints"] = [{"key": "example.com/poison", "effect": "NoSchedule"}]
    whole = body | spec if isinstance(spec, dict) else body if spec is None else spec
    return {"metadata": own, "spec": whole, "status": {} if status is None else status}


def _pod(spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    """A pending pod."""
    unplaced = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    body = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    whole = body | spec if isinstance(spec, dict) else body if spec is None else spec
    return {"metadata": meta, "spec": whole, "status": status or {"phase": "Pending", "conditions": unplaced}}


def _asking(**requests: Any) -> dict[str, Any]:
    return _pod({"containers": [{"name": "main", "resources": {"requests": requests}}]})


def _node(spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    room = {"cpu": "100m", "memory": "8Gi", "pods": "10"}
    ready = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": meta, "spec": spec or {}, "status": ready if status is None else status}


def _daemon(spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def _overlay(spec: Any) -> dict[str, Any]:
    return {"spec": {"requirements": [], "price": "0.01", **spec} if isinstance(spec, dict) else spec}


def _affinity(row: Mapping[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


#: The world's own scheduler does not know these pods: those that could be placed must not wait for it.
_NOWHERE = {"example.com/nowhere": "here"}
_BUDGET = {"nodes": "many", "schedule": "99 99 * * *", "duration": "soon"}
_SPREAD = {"maxSkew": -3, "topologyKey": "", "whenUnsatisfiable": "Perhaps", "labelSelector": {}}
_PERHAPS = {"matchExpressions": [{"key": "app", "operator": "Perhaps", "values": ["web"]}]}
_WORKLOADS: list[dict[str, Any]] = [
    {"spec": "nothing"},
    {"spec": {"replicas": "many"}},
    {"spec": {"selector": _PERHAPS, "replicas": 1 << 60, "template": {"spec": {"nodeSelector": {"": LONG}}}}},
]
_PAIRS: list[dict[str, Any]] = [{"spec": "nothing"}, {"spec": {"selector": 7}}, {"spec": {"selector": {"": LONG}}}]
POISON: dict[Kind, list[dict[str, Any]]] = {
    kinds.NODE_POOL: [
        _pool("nothing"),
        _pool({"weight": "heavy"}),
        _pool({"limits": {"cpu": "1e99999x"}}),
        _pool({"limits": {"cpu": "lots"}}),
        _pool({"limits": {"cpu": "-5", "memory": "9" * 40}}),
        _pool({"limits": [1, 2]}),
        _pool({"disruption": {"budgets": [_BUDGET]}}, _row("kubernetes.io/arch", "In", "none")),
        _pool({"disruption": {"consolidateAfter": "whenever"}}),
        _pool({"template": 7}),
        _pool(template=_row("", "In", "a")),
        _pool(template=_row("karpenter.k8s.aws/instance-cpu", "Gt", "many")),
        _pool(template=_row("node.kubernetes.io/instance-type", "Perhaps", "a")),
        _pool(template=_row("topology.kubernetes.io/zone", "In", LONG)),
        _pool(template={"taints": [{"key": "a", "effect": "Whatever"}], "expireAfter": "old age"}),
        _pool(template={"nodeClassRef": {"group": "", "kind": "", "name": ""}}),
        _pool(meta={"labels": {"depth": 7}, "annotations": {labels.GARBAGE: "{", labels.BACK_OFF: "[", "a": LONG}}),
    ],
    kinds.NODE_CLASS: [
        {"spec": "nothing", "status": READY},
        {"spec": {"amiSelectorTerms": {"alias": "x"}}, "status": READY},
        {"spec": {"amiSelectorTerms": [{"alias": "nonsense@@"}], "kubelet": {"maxPods": -9}}, "status": READY},
        {"spec": {"userData": LONG, "tags": {"": ""}}, "status": {"amis": "junk", "conditions": 3}},
        {"spec": {"blockDeviceMappings": [{"ebs": {"volumeSize": "1e99999"}}]}, "status": READY},
    ],
    kinds.NODE_OVERLAY: [
        _overlay("nothing"),
        _overlay({"requirements": "all"}),
        _overlay({"requirements": [{"key": 3}]}),
        _overlay(_row("", "In", "a")),
        _overlay(_row("topology.kubernetes.io/zone", "Perhaps", LONG)),
        _overlay(_row("karpenter.k8s.aws/instance-cpu", "Gt", "many")),
        _overlay({"price": 7}),
        _overlay({"price": "1e99999"}),
        _overlay({"price": None, "priceAdjustment": "a little"}),
        _overlay({"price": "9" * 5000}),
        _overlay({"capacity": {"cpu": "1"}}),
        _overlay({"capacity": {"example.com/x": "1e99999", "": "1"}}),
        _overlay({"capacity": ["example.com/x"]}),
        _overlay({"weight": "heavy"}),
        _overlay({"price": None, "capacity": {"example.com/x": "-5"}}),
    ],
    kinds.CAPACITY_BUFFER: [
        {"spec": "nothing"},
        {"spec": {"podTemplateRef": {"name": 7}, "replicas": 3}},
        {"spec": {"podTemplateRef": {"name": "unheard-of"}, "replicas": "many"}},
        {"spec": {"podTemplateRef": {"name": "unheard-of"}, "replicas": 1 << 60, "limits": {"cpu": "1e99999"}}},
        {"spec": {"scalableRef": {"apiGroup": "apps", "kind": "Perhaps", "name": LONG}, "percentage": -5}},
        {"spec": {"replicas": 2}, "status": {"conditions": "all well"}},
    ],
    kinds.POD_TEMPLATE: [
        {"template": "nothing"},
        {"template": {"spec": {"containers": 7}}},
        {"template": {"spec": {"nodeSelector": {"": LONG}}}},
    ],
    **dict.fromkeys((kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.STATEFUL_SET), _WORKLOADS),
    **dict.fromkeys((kinds.SERVICE, kinds.REPLICATION_CONTROLLER), _PAIRS),
    kinds.DEVICE_CLASS: [
        {"spec": "nothing"},
        {"spec": {"selectors": [{"cel": {"expression": "device.driver =="}}, {"cel": 7}]}},
    ],
    kinds.RESOURCE_SLICE: [
        {"spec": "nothing"},
        {"spec": {"driver": "d", "pool": {"name": 3}, "nodeName": "poison-0", "devices": [{"name": "a"}]}},
        {
            "spec": {
                "driver": "d",
                "allNodes": True,
                "devices": [{"name": "a", "capacity": {"m": {"value": "1e99999"}}}],
            }
        },
        {"spec": {"driver": "d", "devices": [{"name": "a"}, {"name": "a"}], "nodeSelector": {"nodeSelectorTerms": []}}},
    ],
    kinds.RESOURCE_CLAIM: [
        {"spec": "nothing", "status": {"reservedFor": "all"}},
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": LONG, "count": -3}}]}}},
        {
            "status": {
                "allocation": {"devices": {"results": [{"device": "a"}]}, "nodeSelector": {"nodeSelectorTerms": 3}}
            }
        },
    ],
    kinds.NODE_CLAIM: [
        _claim("nothing"),
        _claim({"requirements": [{"key": 3}]}),
        _claim(_row("", "In", "a")),
        _claim(_row("karpenter.sh/capacity-type", "Perhaps")),
        _claim({"resources": {"requests": {"cpu": "1e99999", "memory": "-4"}}}),
        _claim({"expireAfter": "old age", "terminationGracePeriod": "a while"}),
        _claim(status={"providerID": "aws:///us-west-2a/i-shared", "conditions": READY["conditions"]}),
        _claim(status={"providerID": "aws:///us-west-2a/i-shared", "capacity": {"cpu": "lots"}}),
        _claim(status={"providerID": "not a provider ID", "conditions": "all well", "allocatable": {"cpu": []}}),
        _claim(labels={labels.NODEPOOL: ""}, annotations={"long": LONG}),
        _claim(annotations={labels.COMMAND: "{", labels.LAUNCH_REQUEST: "[", labels.LAUNCH_GROUP: "g"}),
        _claim(annotations={labels.TERMINATION_TIMESTAMP: "soon"}, deletionTimestamp=BORN),
    ],
    kinds.NODE: [
        _node("nothing"),
        _node({"providerID": "aws:///us-west-2a/i-shared", "taints": [{"key": "a", "effect": "Perhaps"}]}),
        _node({"providerID": 7, "taints": "all"}),
        _node(status={"allocatable": {"cpu": "lots"}, "capacity": {"memory": "1e99999"}}),
        _node(status={"allocatable": {"cpu": "-4", "memory": "9" * 30}, "conditions": [{"type": 3}]}),
        _node(labels={labels.NODEPOOL: "general", labels.REGISTERED: "true", "long": LONG}),
        _node(deletionTimestamp=BORN, finalizers=[labels.TERMINATION_FINALIZER], annotations={"a": LONG}),
    ],
    kinds.NAMESPACE: [{"metadata": {"labels": None}}, {"metadata": {"labels": {"a": 1, "long": LONG}}}],
    kinds.STORAGE_CLASS: [
        {"provisioner": 7},
        {"volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [{"matchLabelExpressions": "zones"}]},
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "allowedTopologies": 1},
    ],
    kinds.PV: [
        {"spec": {"csi": "yes", "nodeAffinity": {"required": {"nodeSelectorTerms": 4}}}},
        {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}]}}}},
        {"spec": None},
    ],
    kinds.PVC: [{"spec": {"volumeName": []}}, {"spec": {"volumeName": "poison-0"}}, {"spec": 3}],
    kinds.VOLUME_ATTACHMENT: [{"spec": {"nodeName": "poison-0", "source": "disk"}}, {"spec": []}],
    kinds.CSI_NODE: [
        {"spec": {"drivers": "all"}},
        {"spec": {"drivers": [{"name": "ebs.csi.aws.com", "allocatable": {"count": "many"}}, 7]}},
        {"spec": {"drivers": [{"name": "ebs.csi.aws.com", "allocatable": {"count": -(1 << 62)}}]}},
    ],
    kinds.DAEMON_SET: [
        _daemon("nothing"),
        _daemon({"containers": [{"name": "a", "resources": {"requests": {"cpu": "lots"}}}]}),
        _daemon({"containers": [{"name": "a", "resources": {"requests": {"cpu": "-9", "memory": "1e40"}}}]}),
        _daemon(_affinity({"key": "a", "operator": "Perhaps"})),
        _daemon({"nodeSelector": {"": LONG}}),
    ],
    kinds.PDB: [
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Perhaps", "values": ["web"]}]}}},
        {"spec": {"selector": "web", "minAvailable": {"a": 1}}},
        {"spec": {"selector": {"matchLabels": {"app": "other"}}, "minAvailable": "lots"}, "status": "fine"},
    ],
    kinds.POD: [
        _pod("nothing"),
        _pod({"priority": "high"}),
        _asking(cpu="1e99999"),
        _asking(cpu="lots"),
        _asking(cpu="-5"),
        _asking(memory="9" * 30),
        _asking(**{"example.com/unheard-of": "3", "": "1"}),
        _pod(_affinity({"key": "a", "operator": "Perhaps", "values": []})),
        _pod(_affinity({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["many", "more"]})),
        _pod({"nodeSelector": {"": LONG}}),
        _pod({"topologySpreadConstraints": [_SPREAD], "nodeSelector": _NOWHERE}),
        _pod(
            {
                "nodeSelector": _NOWHERE,
                "tolerations": [{"operator": "Perhaps", "effect": "Whatever"}],
                "volumes": [{"name": 3}],
            }
        ),
        _pod({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "poison-1"}}]}),
        _pod(
            {"nodeSelector": _NOWHERE},
            labels={"app": "web", "long": LONG},
            annotations={labels.DO_NOT_DISRUPT: "perhaps"},
        ),
        _pod({"nodeName": "poison-0", "containers": 7}, {"phase": "Running"}),
    ],
}
