"""Rules of single nodes that are easily misread: ports, resources under resize, volumes, nominations."""

from __future__ import annotations

from typing import Any, Final

from tests.oracle.known import FITS, IN_A, TERMINATING, Known, known, resized
from tests.oracle.objects import Json, claim, host_port, in_zones, mounts, node, pod, storage_class, volume

TWO_CPU: Final = pod("web", requests={"cpu": "2"})
FULL: Final = "NodeResourcesFit"

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
