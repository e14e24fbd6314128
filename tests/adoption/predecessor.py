"""What Karpenter 1.14.1 has written when it stops: objects, statuses, finalizers, hashes, tags.

Names, versions and values are those of a recorded cluster (`RECORDED_HASH`, `RECORDED_POOL_HASH`); what differs from
one cluster to the next is an argument. A v5 hash of an EC2NodeClass is the v6 hash without its fourth part, the text of
the kubelet's settings. Of a class that has such settings the two differ in more than that: its v5 hash is any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kerf_api.v1 import meta
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import nodeclass_hash, nodepool_hash, text_hash
from kerf_api.v1.nodepool import NodePool

Manifest = dict[str, Any]

#: What it wrote on the recorded class and pool, with this CA bundle.
RECORDED_HASH: Final = "7725560997121056310"
RECORDED_POOL_HASH: Final = "17889065497843718383"
RECORDED_CA: Final = "YWRvcHRpb24gdGVzdCBjYSBidW5kbGU="
CLASS_VERSION, POOL_VERSION = "v5", "v3"
_SINCE: Final = "2026-11-20T12:34:25Z"
_CLASS_CONDITIONS: Final = (
    "AMIsReady",
    "CapacityReservationsReady",
    "PlacementGroupReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "Ready",
)
_POOL_CONDITIONS: Final = ("ValidationSucceeded", "NodeClassReady", "NodeRegistrationHealthy", "Ready")
_CLAIM_CONDITIONS: Final = (
    "Launched",
    "Registered",
    "Initialized",
    "Consolidatable",
    "ConsistentStateFound",
    "Ready",
)
#: What an image demands of an instance type.
_VARIANTS: Final = {
    "standard": (("instance-gpu-count", "DoesNotExist"), ("instance-accelerator-count", "DoesNotExist")),
    "nvidia": (("instance-gpu-count", "Exists"),),
    "neuron": (("instance-accelerator-count", "Exists"),),
}
#: On a claim, and not copied to its node: what has been tagged.
_TAGGED: Final = {"compatibility.karpenter.k8s.aws/cluster-name-tagged": "true", "karpenter.k8s.aws/tagged": "true"}


@dataclass(frozen=True, kw_only=True)
class Launched:
    """One claim with its instance and node. `labels` are those of the instance type, `capacity` is the node's."""

    claim: str
    node: str
    instance_id: str
    instance_type: str
    zone: str
    zone_id: str
    capacity_type: str
    image_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.zone}/{self.instance_id}"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What an EC2NodeClass's selectors came to, as its status has it, and the cluster that hashes are made with."""

    cluster: str
    ca_bundle: str
    role: str
    amis: Sequence[Manifest]
    subnets: Sequence[Manifest]
    security_groups: Sequence[Manifest]


# --- objects ----------------------------------------------------------------------------------------------------
def node_class(name: str, around: Surroundings, **more: Any) -> Manifest:
    """`more` are further fields of the spec."""
    selector = [{"tags": {"karpenter.sh/discovery": around.cluster}}]
    spec = {
        "role": around.role,
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "tags": {"team": "platform"},
        **more,
    }
    made = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "spec": spec}
    hashes = {"ec2nodeclass-hash": v5_hash(spec, around.ca_bundle), "ec2nodeclass-hash-version": CLASS_VERSION}
    metadata = {
        "name": name,
        "annotations": {f"karpenter.k8s.aws/{key}": value for key, value in hashes.items()},
        "finalizers": ["karpenter.k8s.aws/termination"],
    }
    status = {
        "amis": list(around.amis),
        "subnets": list(around.subnets),
        "securityGroups": list(around.security_groups),
        "instanceProfile": profile(around.cluster, name),
        "conditions": _conditions(_CLASS_CONDITIONS),
    }
    return {**made, "metadata": metadata, "status": status}


def ami(id_: str, name: str, arch: str, variant: str) -> Manifest:
    """A row of `status.amis`; variants are standard, nvidia and neuron."""
    return {"id": id_, "name": name, "requirements": _demands(arch, variant)}


def _demands(arch: str, variant: str) -> list[Manifest]:
    rows: list[Manifest] = [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]
    return rows + [{"key": f"karpenter.k8s.aws/{key}", "operator": operator} for key, operator in _VARIANTS[variant]]


#: What the image of an ordinary node demands.
STANDARD_AMD64: Final = _demands("amd64", "standard")


def v5_hash(spec: Mapping[str, Any], ca_bundle: str) -> str:
    """Of the spec of a class with its defaults; see the module."""
    if spec.get("kubelet"):
        return "4067990795380418201"
    value = meta.decode(EC2NodeClass, {"metadata": {"name": "any"}, "spec": dict(spec)})
    return str(int(nodeclass_hash(value, ca_bundle)) ^ int(text_hash("null")))


def node_pool(name: str, class_name: str, **more: Any) -> Manifest:
    """`more` are fields of the spec beside the template."""
    template = {
        "metadata": {"labels": {"team": "platform"}, "annotations": {"example.com/owner": "platform"}},
        "spec": {
            "expireAfter": "720h",
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class_name},
            "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["17"]},
            ],
        },
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m", "budgets": [{"nodes": "10%"}]}
    spec = {"template": template, "disruption": disruption, "limits": {"cpu": "200"}, **more}
    made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": spec}
    hashed = nodepool_hash(meta.decode(NodePool, {"metadata": {"name": name}, "spec": spec}))
    annotations = {"karpenter.sh/nodepool-hash": hashed, "karpenter.sh/nodepool-hash-version": POOL_VERSION}
    status = {"conditions": _conditions(_POOL_CONDITIONS), "nodeClassObservedGeneration": 1}
    return {**made, "metadata": {"name": name, "annotations": annotations}, "status": status}


def node_claim(one: Launched, pool: Manifest, of_class: Manifest, cluster: str) -> Manifest:
    """The claim when its node is initialized."""
    pool_name, class_name = pool["metadata"]["name"], of_class["metadata"]["name"]
    template = pool["spec"]["template"]
    annotations = {
        **_TAGGED,
        **template["metadata"]["annotations"],
        **_hashes(of_class),
        **_hashes(pool),
        "karpenter.k8s.aws/instance-profile-name": profile(cluster, class_name),
        "karpenter.sh/nodeclaim-min-values-relaxed": "false",
    }
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [one.capacity_type]},
        {"key": "karpenter.k8s.aws/ec2nodeclass", "operator": "In", "values": [class_name]},
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": [pool_name]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [one.instance_type]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [one.zone]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gte", "values": ["5"]},
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lte", "values": ["16"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "team", "operator": "In", "values": ["platform"]},
    ]
    own = {key: template["spec"][key] for key in ("expireAfter", "nodeClassRef")}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": one.claim,
            "generateName": f"{pool_name}-",
            "annotations": annotations,
            "labels": _labels(one, pool_name, class_name, template["metadata"]["labels"]),
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [_owner("NodePool", pool)],
        },
        "spec": {
            **own,
            "requirements": requirements,
            "resources": {"requests": {"cpu": "900m", "memory": "1Gi", "pods": "1"}},
        },
        "status": {
            "allocatable": dict(one.allocatable),
            "capacity": dict(one.capacity),
            "conditions": _conditions(_CLAIM_CONDITIONS),
            "imageID": one.image_id,
            "lastPodEventTime": _SINCE,
            "nodeName": one.node,
            "providerID": one.provider_id,
        },
    }


def node(one: Launched, claim: Manifest) -> Manifest:
    """The Node, registered and initialized."""
    given = claim["metadata"]
    own = {
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/do-not-sync-taints": "true",
        "kubernetes.io/hostname": one.node,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": one.node,
            "labels": {**given["labels"], **own},
            "annotations": {key: value for key, value in given["annotations"].items() if key not in _TAGGED},
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [_owner("NodeClaim", claim)],
        },
        "spec": {"providerID": one.provider_id},
        "status": {
            "capacity": dict(one.capacity),
            "allocatable": dict(one.allocatable),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": _SINCE}],
        },
    }


def instance_tags(one: Launched, pool: str, class_name: str, cluster: str) -> dict[str, str]:
    """Those of CreateFleet, and the two that come after registration."""
    return {**resource_tags(pool, class_name, cluster), "karpenter.sh/nodeclaim": one.claim, "Name": one.node}


def resource_tags(pool: str, class_name: str, cluster: str) -> dict[str, str]:
    """Of an instance when it is launched, and of its launch template."""
    return {
        "team": "platform",
        "karpenter.sh/nodepool": pool,
        "karpenter.k8s.aws/ec2nodeclass": class_name,
        "eks:eks-cluster-name": cluster,
        f"kubernetes.io/cluster/{cluster}": "owned",
    }


# --- an instance profile ----------------------------------------------------------------------------------------
def profile(cluster: str, class_name: str) -> str:
    """Karpenter's name has a random part, of which no other can be told: a number stands for it."""
    return f"{cluster}_{text_hash(class_name)}"


def profile_path(region: str, cluster: str, class_uid: str) -> str:
    return f"/karpenter/{region}/{cluster}/{class_uid}/"


# --- aids -------------------------------------------------------------------------------------------------------
def _labels(one: Launched, pool: str, class_name: str, template: Mapping[str, str]) -> dict[str, str]:
    return {
        **one.labels,
        **template,
        "karpenter.k8s.aws/ec2nodeclass": class_name,
        "karpenter.k8s.aws/instance-tenancy": "default",
        "karpenter.sh/capacity-type": one.capacity_type,
        "karpenter.sh/nodepool": pool,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": one.instance_type,
        "topology.k8s.aws/zone-id": one.zone_id,
        "topology.kubernetes.io/region": one.zone[:-1],
        "topology.kubernetes.io/zone": one.zone,
    }


def _hashes(parent: Manifest) -> dict[str, str]:
    return {key: value for key, value in parent["metadata"]["annotations"].items() if "-hash" in key}


def _owner(kind: str, owner: Manifest) -> Manifest:
    """Without the UID, which whoever stores the objects has to fill in."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "blockOwnerDeletion": True,
    }


def _conditions(types: Iterable[str]) -> list[Manifest]:
    own = {"status": "True", "message": "", "observedGeneration": 1, "lastTransitionTime": _SINCE}
    return [{"type": name, "reason": name, **own} for name in types]
