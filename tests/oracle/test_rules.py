"""Rules of the kube-scheduler that are easily misread, each as a small world with a known end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.client import Oracle
from tests.oracle.known import FITS, IN_A, IN_B, TERMINATING, Known, judge, known, resized
from tests.oracle.objects import (
    HOST,
    RACK,
    ZONE,
    Json,
    affinity,
    anti_affinity,
    claim,
    host_port,
    mounts,
    node,
    node_affinity,
    pod,
    spread,
    storage_class,
    term,
    volume,
)

WEB, A, B = {"app": "web"}, {"app": "a"}, {"app": "b"}
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
TWO_CPU = pod("web", requests={"cpu": "2"})
FULL = "NodeResourcesFit"


def spreading(*constraints: Json, **spec: Any) -> Json:
    """The pod `web` with spread constraints; it matches their selectors."""
    return pod("web", labels=WEB, topologySpreadConstraints=list(constraints or [spread(ZONE, "web")]), **spec)


def counted(name: str, on: str, **more: Any) -> Json:
    """A bound pod that the spread constraints count."""
    return pod(name, on=on, labels=WEB, **more)


def in_zones(*zones: str, **more: Any) -> list[Json]:
    return [node(f"n{number}", labels={ZONE: zone}, **more) for number, zone in enumerate(zones, 1)]


SPREADS = {
    "a full node counts": known(
        [*in_zones("a"), node("n2", labels=IN_B, allocatable={"pods": "0"})],
        [counted("one", "n1"), spreading()],
        {"n1": "PodTopologySpread", "n2": FULL},
    ),
    "a cordoned node counts": known(
        [*in_zones("a"), node("n2", labels=IN_B, unschedulable=True)],
        [counted("one", "n1"), spreading()],
        {"n1": "PodTopologySpread", "n2": "NodeUnschedulable"},
    ),
    "a tainted node counts, as taints are ignored by default": known(
        [*in_zones("a"), node("n2", labels=IN_B, taints=[TAINT])],
        [counted("one", "n1"), spreading()],
        {"n1": "PodTopologySpread", "n2": "TaintToleration"},
    ),
    "a tainted node does not count under nodeTaintsPolicy Honor": known(
        [*in_zones("a"), node("n2", labels=IN_B, taints=[TAINT])],
        [counted("one", "n1"), spreading(spread(ZONE, "web", nodeTaintsPolicy="Honor"))],
        {"n1": FITS, "n2": "TaintToleration"},
    ),
    "a cordoned node without its taint counts even under nodeTaintsPolicy Honor": known(
        [*in_zones("a"), node("n2", labels=IN_B, unschedulable=True)],
        [counted("one", "n1"), spreading(spread(ZONE, "web", nodeTaintsPolicy="Honor"))],
        {"n1": "PodTopologySpread", "n2": "NodeUnschedulable"},
    ),
    "a node that the selector leaves out does not count": known(
        [node("n1", labels={**IN_A, "team": "x"}), node("n2", labels=IN_B)],
        [counted("one", "n1"), spreading(nodeSelector={"team": "x"})],
        {"n1": FITS, "n2": "NodeAffinity"},
    ),
    "a node that the selector leaves out counts under nodeAffinityPolicy Ignore": known(
        [node("n1", labels={**IN_A, "team": "x"}), node("n2", labels=IN_B)],
        [counted("one", "n1"), spreading(spread(ZONE, "web", nodeAffinityPolicy="Ignore"), nodeSelector={"team": "x"})],
        {"n1": "PodTopologySpread", "n2": "NodeAffinity"},
    ),
    "pods on nodes that do not count are not counted, although their zone is": known(
        [node("n1", labels={**IN_A, "team": "x"}), node("n2", labels=IN_A), node("n3", labels={**IN_B, "team": "x"})],
        [counted("one", "n2"), counted("two", "n2"), spreading(nodeSelector={"team": "x"})],
        {"n1": FITS, "n2": "NodeAffinity", "n3": FITS},
    ),
    "fewer domains than minDomains: the minimum is zero": known(
        in_zones("a", "b"),
        [counted("one", "n1"), counted("two", "n2"), spreading(spread(ZONE, "web", minDomains=3))],
        {"n1": "PodTopologySpread", "n2": "PodTopologySpread"},
    ),
    "a pod that its own selector does not match adds nothing": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels=A),
            pod("web", labels=WEB, topologySpreadConstraints=[spread(ZONE, "a")]),
        ],
        {"n1": FITS, "n2": FITS},
    ),
    "an empty selector counts no pod": known(
        in_zones("a", "b"),
        [counted("one", "n1"), counted("two", "n1"), spreading(spread(ZONE, "web", labelSelector={}))],
        {"n1": FITS, "n2": FITS},
    ),
    "no selector counts no pod": known(
        in_zones("a", "b"),
        [counted("one", "n1"), counted("two", "n1"), spreading(spread(ZONE, "web", labelSelector=None))],
        {"n1": FITS, "n2": FITS},
    ),
    "pods of other namespaces are not counted": known(
        in_zones("a", "b"),
        [counted("one", "n1", meta={"namespace": "other"}), spreading()],
        {"n1": FITS, "n2": FITS},
    ),
    "matchLabelKeys counts the pods of the same revision alone": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels={**WEB, "revision": "1"}),
            pod(
                "web",
                labels={**WEB, "revision": "2"},
                topologySpreadConstraints=[spread(ZONE, "web", matchLabelKeys=["revision"])],
            ),
        ],
        {"n1": FITS, "n2": FITS},
    ),
    "a pod of a DaemonSet counts": known(
        in_zones("a", "b"),
        [
            counted(
                "agent",
                "n1",
                meta={
                    "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d", "controller": True}
                    ]
                },
            ),
            spreading(),
        ],
        {"n1": "PodTopologySpread", "n2": FITS},
    ),
    "a constraint that only prefers neither refuses nor hides nodes": known(
        [*in_zones("a", "b"), node("n3", labels={ZONE: "c"})],
        [
            counted("one", "n1"),
            spreading(spread(ZONE, "web"), spread(RACK, "web", whenUnsatisfiable="ScheduleAnyway")),
        ],
        {"n1": "PodTopologySpread", "n2": FITS, "n3": FITS},
    ),
}

AFFINITIES = {
    "terms over two keys: one pod in the same zone and on the same node": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_A)],
        [
            pod("one", on="n1", labels={"app": "a", "tier": "b"}),
            pod(
                "web",
                affinity=affinity(
                    term(ZONE, "a"), {"topologyKey": HOST, "labelSelector": {"matchLabels": {"tier": "b"}}}
                ),
            ),
        ],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "two terms over one key: pods in two places, each matches both": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels=A),
            pod("web", affinity=affinity(term(ZONE, "a"), {"topologyKey": ZONE, "labelSelector": {}})),
        ],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "the first of its kind may come where a match is on a node without the key": known(
        [node("n1", labels=IN_A), node("n2")],
        [pod("one", on="n2", labels=WEB), pod("web", labels=WEB, affinity=affinity(term(ZONE, "web")))],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "not the first of its kind once one is anywhere with the key": known(
        in_zones("a", "b"),
        [pod("one", on="n2", labels=WEB), pod("web", labels=WEB, affinity=affinity(term(ZONE, "web")))],
        {"n1": "InterPodAffinity", "n2": FITS},
    ),
    "a terminating pod serves affinity": known(
        in_zones("a", "b"),
        [pod("one", on="n1", labels=A, meta=TERMINATING), pod("web", affinity=affinity(term(ZONE, "a")))],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "a pod of another namespace does not serve affinity": known(
        in_zones("a"),
        [pod("one", on="n1", labels=A, meta={"namespace": "other"}), pod("web", affinity=affinity(term(ZONE, "a")))],
        {"n1": "InterPodAffinity"},
    ),
    "a namespace selector reaches pods of other namespaces": known(
        in_zones("a"),
        [
            pod("one", on="n1", labels=A, meta={"namespace": "other"}),
            pod("web", affinity=affinity(term(ZONE, "a", namespaceSelector={"matchLabels": {"team": "x"}}))),
        ],
        {"n1": FITS},
        namespaces=[{"metadata": {"name": "other", "labels": {"team": "x"}}}],
    ),
    "an empty namespace selector reaches all namespaces": known(
        in_zones("a"),
        [
            pod("one", on="n1", labels=A, meta={"namespace": "other"}),
            pod("web", affinity=affinity(term(ZONE, "a", namespaceSelector={}))),
        ],
        {"n1": FITS},
    ),
    "anti-affinity: each term alone": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels=A),
            pod("two", on="n2", labels=B),
            pod("web", affinity=anti_affinity(term(ZONE, "a"), term(ZONE, "b"))),
        ],
        {"n1": "InterPodAffinity", "n2": "InterPodAffinity"},
    ),
    "anti-affinity: a node without the key takes the pod": known(
        [node("n1"), node("n2", labels=IN_A)],
        [pod("one", on="n1", labels=A), pod("web", affinity=anti_affinity(term(ZONE, "a")))],
        {"n1": FITS, "n2": FITS},
    ),
    "anti-affinity to a DaemonSet's pods on every node": known(
        in_zones("a", "b"),
        [
            pod("agent-1", on="n1", labels=A),
            pod("agent-2", on="n2", labels=A),
            pod("web", affinity=anti_affinity(term(HOST, "a"))),
        ],
        {"n1": "InterPodAffinity", "n2": "InterPodAffinity"},
    ),
    "anti-affinity of a terminating pod refuses": known(
        in_zones("a"),
        [
            pod("one", on="n1", affinity=anti_affinity(term(HOST, "web")), meta=TERMINATING),
            pod("web", labels=WEB),
        ],
        {"n1": "InterPodAffinity"},
    ),
    "node affinity: an empty term beside another matches nothing by itself": known(
        [node("n1", labels={"team": "x"}), node("n2")],
        [
            pod(
                "web",
                affinity=node_affinity({}, {"matchExpressions": [{"key": "team", "operator": "Exists"}]}),
            )
        ],
        {"n1": FITS, "n2": "NodeAffinity"},
    ),
}

PORTS = {
    "another address": known(
        [node("n1")],
        [
            pod("other", on="n1", container=host_port(80, hostIP="10.0.0.1")),
            pod("web", container=host_port(80, hostIP="10.0.0.2")),
        ],
        {"n1": FITS},
    ),
    "any address meets one address": known(
        [node("n1")],
        [pod("other", on="n1", container=host_port(80, hostIP="10.0.0.1")), pod("web", container=host_port(80))],
        {"n1": "NodePorts"},
    ),
    "another protocol": known(
        [node("n1")],
        [pod("other", on="n1", container=host_port(80)), pod("web", container=host_port(80, protocol="UDP"))],
        {"n1": FITS},
    ),
    "an init container that ends takes no port": known(
        [node("n1")],
        [
            pod("other", on="n1", container=host_port(80)),
            pod("web", initContainers=[{"name": "init", "image": "init", **host_port(80)}]),
        ],
        {"n1": FITS},
    ),
    "under hostNetwork every container port is a host port": known(
        [node("n1")],
        [
            pod("other", on="n1", container={"ports": [{"containerPort": 80}]}, hostNetwork=True),
            pod("web", container=host_port(80)),
        ],
        {"n1": "NodePorts"},
    ),
}

STATES = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def sidecar(requests: str, actual: str) -> Json:
    """A pod on `n1` whose sidecar is resized."""
    container = {"name": "proxy", "image": "proxy", "restartPolicy": "Always"}
    state = {"name": "proxy", "image": "proxy", "imageID": "", "resources": {"requests": {"cpu": actual}}}
    return pod(
        "other",
        on="n1",
        initContainers=[{**container, "resources": {"requests": {"cpu": requests}}}],
        status={"initContainerStatuses": [state]},
    )


def pod_level(requests: str, **status: Any) -> Json:
    """A pod on `n1` with resources of its own, beside those of its container."""
    return pod("other", on="n1", requests={"cpu": "100m"}, resources={"requests": {"cpu": requests}}, status=status)


RESIZES = {
    "smaller, not yet done: the resources of the status count": known(
        [node("n1")], [resized({"cpu": "1"}, {"resources": {"requests": {"cpu": "3"}}}), TWO_CPU], {"n1": FULL}
    ),
    "smaller, not yet done: the allocated resources count": known(
        [node("n1")],
        [
            resized({"cpu": "1"}, {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "3"}}),
            TWO_CPU,
        ],
        {"n1": FULL},
    ),
    "allocated resources do not count in a status without resources": known(
        [node("n1")], [resized({"cpu": "1"}, {"allocatedResources": {"cpu": "3"}}), TWO_CPU], {"n1": FITS}
    ),
    "larger: the spec counts": known(
        [node("n1")], [resized({"cpu": "3"}, {"resources": {"requests": {"cpu": "1"}}}), TWO_CPU], {"n1": FULL}
    ),
    "larger and deferred: the spec counts": known(
        [node("n1")],
        [resized({"cpu": "3"}, {"resources": {"requests": {"cpu": "1"}}}, conditions=DEFERRED), TWO_CPU],
        {"n1": FULL},
    ),
    "larger and infeasible: the spec does not count": known(
        [node("n1")],
        [resized({"cpu": "8"}, {"resources": {"requests": {"cpu": "1"}}}, conditions=INFEASIBLE), TWO_CPU],
        {"n1": FITS},
    ),
    "smaller and infeasible: the status counts": known(
        [node("n1")], [resized({"cpu": "1"}, STATES, conditions=INFEASIBLE), TWO_CPU], {"n1": FULL}
    ),
    "a sidecar": known([node("n1")], [sidecar("1", "3"), TWO_CPU], {"n1": FULL}),
    "the resources of a pod replace those of its containers": known(
        [node("n1")], [pod_level("3"), TWO_CPU], {"n1": FULL}
    ),
    "the resources of a pod, smaller, not yet done": known(
        [node("n1")], [pod_level("1", resources={"requests": {"cpu": "3"}}), TWO_CPU], {"n1": FULL}
    ),
    "the resources of a pod, smaller, still allocated": known(
        [node("n1")],
        [pod_level("1", resources={"requests": {"cpu": "1"}}, allocatedResources={"cpu": "3"}), TWO_CPU],
        {"n1": FULL},
    ),
    "a terminating pod keeps its resources": known(
        [node("n1")], [pod("other", on="n1", requests={"cpu": "3"}, meta=TERMINATING), TWO_CPU], {"n1": FULL}
    ),
    "a pod that has ended keeps none": known(
        [node("n1")], [pod("other", on="n1", requests={"cpu": "3"}, status={"phase": "Failed"}), TWO_CPU], {"n1": FITS}
    ),
}


def on_volume(nodes: list[Json], refused_by: dict[str, str], labels: dict[str, str]) -> Known:
    """The pod `web` with a bound volume that has labels and no node affinity."""
    return known(
        nodes,
        [pod("web", volumes=mounts("data"))],
        refused_by,
        persistentVolumeClaims=[claim("data", volume="v")],
        persistentVolumes=[volume("v", labels=labels, bound_to="data")],
        storageClasses=[storage_class()],
    )


VOLUMES = {
    "a label with two zones": on_volume(
        in_zones("a", "b", "c"),
        {"n1": FITS, "n2": FITS, "n3": "VolumeZone"},
        {"topology.kubernetes.io/zone": "a__b"},
    ),
    "the label of a region": on_volume(
        [node("n1", labels={**IN_A, "topology.kubernetes.io/region": "r"}), node("n2", labels=IN_A)],
        {"n1": FITS, "n2": "VolumeZone"},
        {"topology.kubernetes.io/region": "r"},
    ),
    "the old label of a zone": on_volume(
        in_zones("a", "b"),
        {"n1": FITS, "n2": "VolumeZone"},
        {"failure-domain.beta.kubernetes.io/zone": "a"},
    ),
    "a node without zone and region takes any": on_volume(
        [node("n1")], {"n1": FITS}, {"topology.kubernetes.io/zone": "a"}
    ),
    "a ReadWriteOncePod claim that a terminating pod uses": known(
        [node("n1")],
        [pod("other", on="n1", volumes=mounts("data"), meta=TERMINATING), pod("web", volumes=mounts("data"))],
        {"n1": "VolumeRestrictions"},
        persistentVolumeClaims=[claim("data", modes=["ReadWriteOncePod"])],
        storageClasses=[storage_class()],
    ),
    "a ReadWriteOncePod claim that only a pending pod uses": known(
        [node("n1")],
        [pod("other", volumes=mounts("data")), pod("web", volumes=mounts("data"))],
        {"n1": FITS},
        persistentVolumeClaims=[claim("data", modes=["ReadWriteOncePod"])],
        storageClasses=[storage_class()],
    ),
    "an unbound claim of a class that binds at once": known(
        [node("n1")],
        [pod("web", volumes=mounts("data"))],
        {"n1": "VolumeBinding"},
        persistentVolumeClaims=[claim("data", of="early")],
        storageClasses=[storage_class("early", "Immediate")],
    ),
    "a free volume in one zone, and a class that provisions in any": known(
        in_zones("a", "b"),
        [pod("web", volumes=mounts("data"))],
        {"n1": FITS, "n2": FITS},
        persistentVolumeClaims=[claim("data")],
        persistentVolumes=[volume("v", zones=["a"])],
        storageClasses=[storage_class()],
    ),
}

NOMINATIONS = {
    "to a node that is gone: counts nowhere": known(
        [node("n1")],
        [pod("other", requests={"cpu": "3"}, status={"nominatedNodeName": "gone"}), TWO_CPU],
        {"n1": FITS},
    ),
    "of lower priority: does not count": known(
        [node("n1")],
        [
            pod("other", requests={"cpu": "3"}, status={"nominatedNodeName": "n1"}, priority=-1),
            TWO_CPU,
        ],
        {"n1": FITS},
    ),
    "of the pod itself: another node may take it": known(
        [node("n1"), node("n2")],
        [pod("web", requests={"cpu": "2"}, status={"nominatedNodeName": "n1"})],
        {"n1": FITS, "n2": FITS},
    ),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{group}: {name}")
        for group, cases in {
            "spread": SPREADS,
            "affinity": AFFINITIES,
            "port": PORTS,
            "resize": RESIZES,
            "volume": VOLUMES,
            "nomination": NOMINATIONS,
        }.items()
        for name, case in cases.items()
    ],
)
def test_a_rule_of_the_kube_scheduler(case: Known, oracle: Oracle) -> None:
    judge(case, oracle)
