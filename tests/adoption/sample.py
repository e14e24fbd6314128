"""Thirty nodes of three EC2NodeClasses as Karpenter 1.14.1 leaves them, ten of each, every node with one pod.

The nodes are such that nobody who thinks of money would touch one: `web` has on-demand machines of the cheapest type
for its pods, which fill them and ask for on-demand; `batch` and `default` let nodes go only when they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from . import predecessor
from .predecessor import Launched, Manifest, Surroundings

EACH: Final = 10
#: What each class has beside what the recorded one has. The kubelet's settings make a v5 hash that no other can tell.
CLASSES: Final[Mapping[str, Mapping[str, Any]]] = {
    "default": {},
    "batch": {"kubelet": {"maxPods": 58}, "userData": "#!/bin/sh\necho batch\n"},
    "web": {
        "detailedMonitoring": True,
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {"volumeSize": "40Gi", "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True},
            }
        ],
    },
}
_BUDGETS: Final = [{"nodes": "10%"}]
#: The pools' `disruption`, by class; each pool is of the class of its name.
DISRUPTION: Final[Mapping[str, Mapping[str, Any]]] = {
    "default": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m", "budgets": _BUDGETS},
    "batch": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "budgets": _BUDGETS},
    "web": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m", "budgets": _BUDGETS},
}
CAPACITY_TYPES: Final = {"default": "spot", "batch": "spot", "web": "on-demand"}
#: What a pod asks for: nearly all of a machine of four vCPUs and 16 GiB.
REQUESTS: Final = {"cpu": "3500m", "memory": "13Gi"}

#: The instance behind the pool's node of this number.
Machines = Callable[[str, int], Launched]

CLUSTER: Final = "adoption"
_ZONES: Final = {"us-west-2a": "usw2-az2", "us-west-2b": "usw2-az1", "us-west-2c": "usw2-az3"}
#: The images of the recorded cluster: architecture and variant.
_AMIS: Final = (
    ("amd64", "standard"),
    ("amd64", "nvidia"),
    ("amd64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
)
#: Where the sandbox has them.
SANDBOX: Final = Surroundings(
    cluster=CLUSTER,
    ca_bundle=predecessor.RECORDED_CA,
    role="KarpenterNodeRole-adoption",
    amis=[predecessor.ami(f"ami-0ad0000000000000{n}", f"al2023-{n}", *row) for n, row in enumerate(_AMIS, 1)],
    subnets=[
        {"id": f"subnet-{number:017x}", "zone": zone, "zoneID": id_}
        for number, (zone, id_) in enumerate(_ZONES.items(), 1)
    ],
    security_groups=[{"id": "sg-2c812f12d2b90333e", "name": "adoption-node"}],
)
#: What every node is, and what its labels say of that.
INSTANCE_TYPE: Final = "m6a.xlarge"
TYPE_LABELS: Final = {
    "karpenter.k8s.aws/instance-category": "m",
    "karpenter.k8s.aws/instance-family": "m6a",
    "karpenter.k8s.aws/instance-generation": "6",
    "karpenter.k8s.aws/instance-size": "xlarge",
    "karpenter.k8s.aws/instance-cpu": "4",
    "karpenter.k8s.aws/instance-memory": "16384",
}


def machine(pool: str, number: int) -> Launched:
    """The sandbox's."""
    place = list(CLASSES).index(pool) * EACH + number
    zone = list(_ZONES)[number % len(_ZONES)]
    return Launched(
        claim=f"{pool}-{number:05d}",
        node=f"ip-10-20-{number % 3 * 32}-{place}.us-west-2.compute.internal",
        instance_id=f"i-{place:017x}",
        instance_type=INSTANCE_TYPE,
        zone=zone,
        zone_id=_ZONES[zone],
        capacity_type=CAPACITY_TYPES[pool],
        image_id="ami-0ad00000000000001",
        labels=TYPE_LABELS,
        capacity={"cpu": "4", "memory": "15500Mi", "pods": "58", "ephemeral-storage": "20Gi"},
        allocatable={"cpu": "3920m", "memory": "14600Mi", "pods": "58", "ephemeral-storage": "18Gi"},
    )


def parents(around: Surroundings) -> tuple[dict[str, Manifest], dict[str, Manifest]]:
    """The classes and the pools, by name."""
    classes = {name: predecessor.node_class(name, around, **spec) for name, spec in CLASSES.items()}
    pools = {name: predecessor.node_pool(name, name, disruption=dict(DISRUPTION[name])) for name in CLASSES}
    return classes, pools


def manifests(around: Surroundings = SANDBOX, machines: Machines = machine) -> Iterator[Manifest]:
    """All objects, pods bound to their nodes included. Owners come without UIDs."""
    classes, pools = parents(around)
    yield from (*classes.values(), *pools.values())
    for name in CLASSES:
        replicas = replica_set(name)
        yield replicas
        for number in range(EACH):
            one = machines(name, number)
            claim = predecessor.node_claim(one, pools[name], classes[name], around.cluster)
            yield claim
            yield predecessor.node(one, claim)
            yield _pod(replicas, number, one.node)


def replica_set(name: str) -> Manifest:
    """Of the pods of a pool; it has no Deployment above it."""
    labels = {"app": name}
    bought = {"karpenter.sh/capacity-type": CAPACITY_TYPES[name], "karpenter.sh/nodepool": name}
    pod = {
        "nodeSelector": bought,
        "containers": [{"name": "main", "image": "main:1", "resources": {"requests": REQUESTS}}],
        "terminationGracePeriodSeconds": 0,
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": EACH, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def _pod(replicas: Manifest, number: int, node: str) -> Manifest:
    name = replicas["metadata"]["name"]
    template = replicas["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{number}",
            "namespace": "default",
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner],
        },
        "spec": {**template["spec"], "nodeName": node},
    }
