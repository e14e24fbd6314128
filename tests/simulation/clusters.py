"""The small cluster of a seed: NodePools, a node class, apps of several shapes, their budgets, daemons and volumes.

The general pool can host everything without limits, so that at the end every pod has a place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.worlds import node_class

TEAM = {"key": "team", "value": "data", "effect": "NoSchedule"}
_POOLS = ("general", "spot", "data")
_STORAGE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp3"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is applied at the start; the names that deeds choose from."""

    manifests: tuple[Manifest, ...]
    pools: tuple[str, ...]
    #: Apps that roll (Deployments), and all of them.
    deployments: tuple[str, ...]
    apps: tuple[str, ...]
    #: Nodes have an end, so that the cluster never rests for long.
    expires: bool


def cluster(dice: Random) -> Cluster:
    """The cluster that these dice make."""
    pools = {name: _pool(dice, name) for name in ("general", *dice.sample(_POOLS[1:], dice.randint(0, 2)))}
    apps = {f"app{n}": _deployment(dice, f"app{n}", "data" in pools) for n in range(dice.randint(1, 3))}
    stateful = [_stateful_set(dice, "store")] if dice.random() < 0.4 else []
    names = (*apps, *(row["metadata"]["name"] for row in stateful))
    budgets = [pdb(name, dice.choice(_LIMITS)) for name in names if dice.random() < 0.5]
    return Cluster(
        manifests=(node_class(), _STORAGE, *pools.values(), daemon_set("agent"), *budgets, *apps.values(), *stateful),
        pools=tuple(pools),
        deployments=tuple(apps),
        apps=names,
        expires=any("expireAfter" in pool["spec"]["template"]["spec"] for pool in pools.values()),
    )


def _pool(dice: Random, name: str) -> Manifest:
    bought = {"spot": ["spot"], "data": ["on-demand"]}.get(name) or dice.choice((["on-demand"], ["spot", "on-demand"]))
    template: Manifest = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": bought}],
    }
    if name == "data":
        template["taints"] = [TEAM]
    if dice.random() < 0.2:
        template["expireAfter"] = "12m"
    if dice.random() < 0.3:
        template["terminationGracePeriod"] = dice.choice(("90s", "4m"))
    disruption = {
        "consolidationPolicy": dice.choice(("WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized")),
        "consolidateAfter": dice.choice(("0s", "30s", "2m")),
        "budgets": [{"nodes": dice.choice(("1", "2", "50%", "100%"))}],
    }
    spec = {"template": {"spec": template}, "disruption": disruption, "weight": dice.randint(1, 50)}
    if name != "general" and dice.random() < 0.5:
        spec["limits"] = {"cpu": str(dice.choice((4, 8)))}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


# --- workloads --------------------------------------------------------------------------------------------------
def _deployment(dice: Random, name: str, tainted: bool) -> Manifest:
    pod = _pod(dice)
    selector = {"labelSelector": {"matchLabels": {"app": name}}}
    shape = dice.choice(("plain", "zones", "hosts", "alone"))
    if shape == "zones":
        spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        pod["topologySpreadConstraints"] = [{**spread, **selector}]
    elif shape == "hosts":
        spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        pod["topologySpreadConstraints"] = [{**spread, **selector}]
    elif shape == "alone":
        term = {"topologyKey": "kubernetes.io/hostname", **selector}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if tainted and dice.random() < 0.5:
        pod["tolerations"] = [{"key": "team", "operator": "Exists"}]
    return _workload("Deployment", name, pod, replicas=dice.randint(1, 4))


def _stateful_set(dice: Random, name: str) -> Manifest:
    """Each pod has a volume that lives in one zone, for ever."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"], "resources": {}},
    }
    policy = dice.choice(("OrderedReady", "Parallel"))
    more = {"serviceName": name, "podManagementPolicy": policy, "volumeClaimTemplates": [claim]}
    return _workload("StatefulSet", name, _pod(dice), replicas=dice.randint(1, 3), **more)


def _pod(dice: Random) -> Manifest:
    requests = {"cpu": dice.choice(("250m", "600m", "1")), "memory": dice.choice(("256Mi", "1Gi"))}
    return {
        "containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": dice.choice((5, 30)),
    }


def daemon_set(name: str) -> Manifest:
    """A DaemonSet that goes to every node."""
    requests = {"cpu": "50m", "memory": "32Mi"}
    pod = {
        "containers": [{"name": "agent", "image": "agent", "resources": {"requests": requests}}],
        "tolerations": [{"key": "team", "operator": "Exists"}],
    }
    return _workload("DaemonSet", name, pod)


def _workload(kind: str, name: str, pod: Manifest, **more: Any) -> Manifest:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {**more, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


_LIMITS: tuple[Mapping[str, Any], ...] = ({"maxUnavailable": 1}, {"maxUnavailable": "50%"})


def pdb(app: str, limit: Mapping[str, Any], name: str = "") -> Manifest:
    """The PodDisruptionBudget of an app."""
    metadata = {"name": name or app, "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": app}}, **limit}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def job(name: str, seconds: int) -> Manifest:
    """A pod without a controller that is done some time after it started."""
    requests = {"cpu": "500m", "memory": "512Mi"}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "job"}}
    metadata["annotations"] = {"kubelet.kerf.test/completes-after": str(seconds)}
    spec = {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
