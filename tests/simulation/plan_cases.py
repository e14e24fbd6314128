"""Changes whose plan is compared with what then happens: the cluster before, and what is applied and deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.model.settings import FeatureGates
from tests.worlds import daemon_set, deployment, node_class, node_pool, stateful_set, storage_class

Manifest = dict[str, Any]
ALL: Final = [{"nodes": "100%"}]
NEVER: Final = {"consolidateAfter": "Never", "budgets": ALL}
SOON: Final = {"consolidateAfter": "0s", "budgets": ALL}
CATEGORY, CAPACITY, ZONE, ARCH = (
    "karpenter.k8s.aws/instance-category",
    "karpenter.sh/capacity-type",
    "topology.kubernetes.io/zone",
    "kubernetes.io/arch",
)


@dataclass(frozen=True)
class Case:
    """`scaled` are Deployments that get another number of replicas before the plan; `hours` is how long what happens is
    watched. `reserved` machines of a capacity reservation are there, with the tag `RESERVED`."""

    before: tuple[Manifest, ...]
    applied: tuple[Manifest, ...] = ()
    deleted: tuple[tuple[str, str, str], ...] = ()
    hours: float = 0.7
    scaled: Mapping[str, int] = field(default_factory=dict)
    gates: FeatureGates = field(default_factory=FeatureGates)
    reserved: int = 0


def pool(name: str = "general", **given: Any) -> Manifest:
    return node_pool(name, {"disruption": NEVER, **given})


def budgeted(*budgets: dict[str, Any], **given: Any) -> Manifest:
    return pool(disruption={"consolidateAfter": "Never", "budgets": list(budgets)}, **given)


def requiring(key: str, *values: str, **given: Any) -> Manifest:
    return pool(requirements=[{"key": key, "operator": "In", "values": list(values)}], **given)


def web(replicas: int = 6, name: str = "web", **given: Any) -> Manifest:
    return deployment(name, {"replicas": replicas, "cpu": "900m", **given})


def classed(**spec: Any) -> Manifest:
    found = node_class()
    return {**found, "spec": {**found["spec"], **spec}}


def image(version: str) -> Manifest:
    return classed(amiSelectorTerms=[{"alias": version}])


def pdb(least: int, app: str = "web") -> Manifest:
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
    return {**kind, "metadata": {"name": app, "namespace": "default"}, "spec": spec}


def spread(key: str = ZONE) -> Manifest:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    own = {**constraint, "labelSelector": {"matchLabels": {"app": "web"}}}
    return web(topologySpreadConstraints=[own])


def _plain(*applied: Manifest, hours: float = 0.7) -> Case:
    return Case((node_class(), pool(), web()), applied, hours=hours)


def overlay(**spec: Any) -> Manifest:
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay"}
    return {**kind, "metadata": {"name": "prices"}, "spec": spec}


def buffer(replicas: int) -> Manifest:
    kind = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    spec = {"scalableRef": {"kind": "Deployment", "name": "web"}, "replicas": replicas}
    return {**kind, "metadata": {"name": "spare", "namespace": "default"}, "spec": spec}


def _reserving(*applied: Manifest, reserved: int) -> Case:
    terms = [{"tags": RESERVED}]
    return Case((classed(capacityReservationSelectorTerms=terms), pool(), web()), applied, reserved=reserved)


#: The tag of the capacity reservation of cases that have one.
RESERVED: Final = {"reserved-for": "web"}
OVERLAYS: Final = FeatureGates(node_overlay=True)
BUFFERS: Final = FeatureGates(capacity_buffer=True)
TEAM: Final = {"team": "a"}
DEDICATED: Final = [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]
TOLERATING: Final[Mapping[str, Any]] = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
NIGHT: Final = {"nodes": "0", "schedule": "0 0 * * *", "duration": "2h"}

#: Those that `make test` plays; the others are played by `make long`.
SHORT: Final[Mapping[str, Callable[[], Case]]] = {
    "nothing": _plain,
    "label": lambda: _plain(pool(labels=TEAM)),
    "label, one node at a time": lambda: Case(
        (node_class(), pool(), web(12)), (budgeted({"nodes": "1"}, labels=TEAM),)
    ),
    "label, a budget of none": lambda: _plain(budgeted({"nodes": "0"}, labels=TEAM)),
    "requirement": lambda: _plain(requiring(CATEGORY, "r")),
    "taint that pods do not tolerate": lambda: _plain(pool(taints=DEDICATED)),
    "spot to on-demand": lambda: _plain(requiring(CAPACITY, "on-demand")),
    "image": lambda: Case((image("al2023@v20251201"), pool(), web()), (image("al2023@latest"),)),
    "an image at last": lambda: Case((image("al2023@v20250505"), pool(), web()), (image("al2023@latest"),)),
    "user data": lambda: _plain(classed(userData="#!/bin/sh")),
    "a NodePool is deleted": lambda: Case(
        (node_class(), pool(weight=10), pool("other"), web()), deleted=(("NodePool", "", "general"),)
    ),
    "consolidation is allowed": lambda: Case(
        (node_class(), pool(), web(12), web(12, "api")), (pool(disruption=SOON),), scaled={"web": 3, "api": 4}
    ),
    "limit": lambda: _plain(pool(limits={"cpu": "1"})),
}
LONG: Final[Mapping[str, Callable[[], Case]]] = {
    "zone": lambda: _plain(requiring(ZONE, "us-west-2b")),
    "on-demand to spot": lambda: Case(
        (node_class(), requiring(CAPACITY, "on-demand"), web()), (requiring(CAPACITY, "spot"),)
    ),
    "taint that pods tolerate": lambda: Case((node_class(), pool(), web(**TOLERATING)), (pool(taints=DEDICATED),)),
    "taint is removed": lambda: Case((node_class(), pool(taints=DEDICATED), web(**TOLERATING)), (pool(),)),
    "startup taint that no agent removes": lambda: _plain(
        pool(startupTaints=[{"key": "agent", "effect": "NoSchedule"}]), hours=0.2
    ),
    "expiry": lambda: _plain(pool(expireAfter="300h")),
    "grace": lambda: _plain(pool(terminationGracePeriod="1h")),
    "half at a time": lambda: Case((node_class(), pool(), web(12)), (budgeted({"nodes": "50%"}, labels=TEAM),)),
    "a budget that opens at two": lambda: _plain(budgeted(NIGHT, labels=TEAM), hours=3),
    "a budget for drift alone": lambda: _plain(
        budgeted({"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "100%"}, labels=TEAM)
    ),
    "a new NodePool of higher weight": lambda: _plain(pool("other", weight=50)),
    "weights change": lambda: Case(
        (node_class(), pool(weight=10), pool("other"), web()), (pool(weight=1), pool("other", weight=10))
    ),
    "the only NodePool is deleted": lambda: Case((node_class(), pool(), web()), deleted=(("NodePool", "", "general"),)),
    "two NodePools change": lambda: Case(
        (node_class(), pool(labels={"a": "1"}), pool("other", taints=DEDICATED), web(), web(4, "batch", **TOLERATING)),
        (pool(labels={"a": "2"}), pool("other", taints=DEDICATED, labels=TEAM)),
    ),
    "a limit is raised": lambda: Case(
        (node_class(), pool(limits={"cpu": "4"}), web(12)), (pool(limits={"cpu": "100"}),)
    ),
    "a NodePool for pods that wait": lambda: Case((node_class(), pool(taints=DEDICATED), web()), (pool("open"),)),
    "tags": lambda: _plain(classed(tags={"owner": "a"})),
    "volumes": lambda: _plain(
        classed(blockDeviceMappings=[{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {"volumeSize": "50Gi"}}])
    ),
    "metadata options": lambda: _plain(classed(metadataOptions={"httpTokens": "optional"})),
    "monitoring": lambda: _plain(classed(detailedMonitoring=True)),
    "image family": lambda: _plain(image("bottlerocket@latest")),
    "kubelet": lambda: _plain(classed(kubelet={"maxPods": 3})),
    "a budget of pods that blocks": lambda: Case((node_class(), pool(), web(), pdb(6)), (pool(labels=TEAM),)),
    "a budget of pods of one": lambda: Case((node_class(), pool(), web(), pdb(5)), (pool(labels=TEAM),)),
    "a budget of pods is removed": lambda: Case(
        (node_class(), pool(disruption=SOON), web(2), pdb(2)), deleted=(("PodDisruptionBudget", "default", "web"),)
    ),
    "pods that must not be disrupted": lambda: Case(
        (node_class(), pool(), web(annotations={"karpenter.sh/do-not-disrupt": "true"})), (pool(labels=TEAM),)
    ),
    "spread over zones": lambda: Case((node_class(), pool(), spread()), (pool(labels=TEAM),)),
    "spread over hosts": lambda: Case((node_class(), pool(), web(alone=True)), (requiring(CATEGORY, "m"),)),
    "a DaemonSet": lambda: _plain(daemon_set("agent", {"cpu": "500m"})),
    "volumes in zones": lambda: Case(
        (node_class(), storage_class(), pool(), stateful_set("db", {"replicas": 3, "cpu": "900m"})),
        (pool(labels=TEAM),),
    ),
    "empty nodes only": lambda: Case(
        (node_class(), pool(), web(12), web(12, "api")),
        (pool(disruption={**SOON, "consolidationPolicy": "WhenEmpty"}),),
        scaled={"web": 1, "api": 2},
    ),
    "consolidation after ten minutes": lambda: Case(
        (node_class(), pool(), web(12)), (pool(disruption={**SOON, "consolidateAfter": "10m"}),), scaled={"web": 3}
    ),
    "consolidation, one node at a time": lambda: Case(
        (node_class(), pool(), web(16)),
        (pool(disruption={**SOON, "budgets": [{"nodes": "1"}]}),),
        scaled={"web": 4},
    ),
    "consolidation and a label": lambda: Case(
        (node_class(), pool(), web(16)), (pool(disruption=SOON, labels=TEAM),), scaled={"web": 5}
    ),
    "an overlay makes ARM expensive": lambda: Case(
        (node_class(), requiring(CAPACITY, "on-demand", disruption=SOON), web()),
        (overlay(requirements=[{"key": ARCH, "operator": "In", "values": ["arm64"]}], priceAdjustment="+300%"),),
        gates=OVERLAYS,
    ),
    "an overlay and a label": lambda: Case(
        (node_class(), pool(), web()),
        (
            overlay(requirements=[{"key": ARCH, "operator": "In", "values": ["arm64"]}], priceAdjustment="+300%"),
            pool(labels=TEAM),
        ),
        gates=OVERLAYS,
    ),
    "a capacity reservation and a label": lambda: _reserving(pool(labels=TEAM), reserved=6),
    "a full capacity reservation and a label": lambda: _reserving(pool(labels=TEAM), reserved=2),
    "a CapacityBuffer": lambda: Case((node_class(), pool(), web()), (buffer(4),), gates=BUFFERS),
    "a CapacityBuffer and a label": lambda: Case(
        (node_class(), pool(), web(), buffer(4)), (pool(labels=TEAM),), gates=BUFFERS
    ),
}
#: Misses, and why.
EXPLAINED: Final[Mapping[str, str]] = {
    "startup taint that no agent removes": (
        "nodes that never become ready are replaced until the horizon, and the plan stops a few seconds "
        "before or after the launch of the next one"
    ),
    "consolidation after ten minutes": (
        "three nodes are alike in type, zone, age and pods; another one of them is removed"
    ),
}
CASES: Final[Mapping[str, Callable[[], Case]]] = {**SHORT, **LONG}
