"""Small worlds with a known end, at least one for each plugin of the default profile that filters nodes.

Each world says of the pod `web` which nodes take it; of the others, which plugin refuses them.
"""

from __future__ import annotations

import pytest

from tests.oracle.client import Oracle
from tests.oracle.known import FITS, IN_A, IN_B, TERMINATING, judge, known, resized
from tests.oracle.objects import (
    RACK,
    ZONE,
    affinity,
    anti_affinity,
    claim,
    csi_node,
    device_claim,
    device_claim_template,
    device_class,
    device_slice,
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

SIDECAR = {"name": "proxy", "image": "proxy", "restartPolicy": "Always", **host_port(9901)}
HOST_USERS = "UserNamespacesHostNetworkSupport"
INLINE = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}}

WORLDS = {
    "NodeResourcesFit: cpu": known(
        [node("n1"), node("n2")],
        [pod("other", on="n1", requests={"cpu": "3"}), pod("web", requests={"cpu": "2"})],
        {"n1": "NodeResourcesFit", "n2": FITS},
    ),
    "NodeResourcesFit: the number of pods": known(
        [node("n1", allocatable={"pods": "1"})], [pod("other", on="n1"), pod("web")], {"n1": "NodeResourcesFit"}
    ),
    "NodeResourcesFit: limits count where requests are missing": known(
        [node("n1")], [pod("web", container={"resources": {"limits": {"cpu": "5"}}})], {"n1": "NodeResourcesFit"}
    ),
    "a pod that is resized: its allocated resources count": known(
        [node("n1")],
        [
            resized({"cpu": "200m"}, {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "3"}}}),
            pod("web", requests={"cpu": "2"}),
        ],
        {"n1": "NodeResourcesFit"},
    ),
    "NodePorts": known(
        [node("n1"), node("n2")],
        [pod("other", on="n1", container=host_port(80)), pod("web", container=host_port(80))],
        {"n1": "NodePorts", "n2": FITS},
    ),
    "NodePorts: those of a restartable init container": known(
        [node("n1"), node("n2")],
        [pod("other", on="n1", initContainers=[SIDECAR]), pod("web", initContainers=[SIDECAR])],
        {"n1": "NodePorts", "n2": FITS},
    ),
    "NodePorts: a terminating pod keeps its port": known(
        [node("n1")],
        [pod("other", on="n1", container=host_port(80), meta=TERMINATING), pod("web", container=host_port(80))],
        {"n1": "NodePorts"},
    ),
    "NodeAffinity": known(
        [node("n1", labels={"team": "a"}), node("n2")],
        [pod("web", nodeSelector={"team": "a"})],
        {"n1": FITS, "n2": "NodeAffinity"},
    ),
    "NodeAffinity: an empty term matches no node": known(
        [node("n1")], [pod("web", affinity=node_affinity({}))], {"n1": "NodeAffinity"}
    ),
    "NodeAffinity: a term of one node's name leaves out the others": known(
        [node("n1"), node("n2")],
        [
            pod(
                "web",
                affinity=node_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}),
            )
        ],
        {"n1": "NodeAffinity", "n2": FITS},
    ),
    "TaintToleration": known(
        [
            node("n1", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]),
            node("n2", taints=[{"key": "a", "value": "b", "effect": "PreferNoSchedule"}]),
        ],
        [pod("web")],
        {"n1": "TaintToleration", "n2": FITS},
    ),
    "NodeUnschedulable": known([node("n1", unschedulable=True)], [pod("web")], {"n1": "NodeUnschedulable"}),
    "PodTopologySpread": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B), node("n3")],
        [
            pod("other", on="n1", labels={"app": "web"}),
            pod("web", labels={"app": "web"}, topologySpreadConstraints=[spread(ZONE, "web")]),
        ],
        {"n1": "PodTopologySpread", "n2": FITS, "n3": "PodTopologySpread"},
    ),
    "PodTopologySpread: a node without one of the keys counts for none": known(
        [
            node("n1", labels={**IN_A, RACK: "r1"}),
            node("n2", labels={**IN_B, RACK: "r2"}),
            # No pod here, and no rack: neither its zone nor its absence from the racks makes a minimum of zero.
            node("n3", labels={ZONE: "c"}),
        ],
        [
            pod("one", on="n1", labels={"app": "web"}),
            pod("two", on="n2", labels={"app": "web"}),
            pod("web", labels={"app": "web"}, topologySpreadConstraints=[spread(ZONE, "web"), spread(RACK, "web")]),
        ],
        {"n1": FITS, "n2": FITS, "n3": "PodTopologySpread"},
    ),
    "PodTopologySpread: a terminating pod does not count": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B)],
        [
            pod("other", on="n1", labels={"app": "web"}, meta=TERMINATING),
            pod("web", labels={"app": "web"}, topologySpreadConstraints=[spread(ZONE, "web")]),
        ],
        {"n1": FITS, "n2": FITS},
    ),
    "InterPodAffinity: affinity": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B)],
        [pod("other", on="n1", labels={"app": "a"}), pod("web", affinity=affinity(term(ZONE, "a")))],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "InterPodAffinity: two terms want one pod that matches both": known(
        [node("n1", labels=IN_A)],
        [
            pod("one", on="n1", labels={"app": "a"}),
            pod("two", on="n1", labels={"app": "b"}),
            pod("web", affinity=affinity(term(ZONE, "a"), term(ZONE, "b"))),
        ],
        {"n1": "InterPodAffinity"},
    ),
    "InterPodAffinity: the first of its kind": known(
        [node("n1", labels=IN_A), node("n2")],
        [pod("web", labels={"app": "web"}, affinity=affinity(term(ZONE, "web")))],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "InterPodAffinity: not the first of its kind, if it does not match all terms": known(
        [node("n1", labels=IN_A)],
        [pod("web", labels={"app": "web"}, affinity=affinity(term(ZONE, "web"), term(ZONE, "other")))],
        {"n1": "InterPodAffinity"},
    ),
    "InterPodAffinity: anti-affinity, both ways": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B), node("n3", labels={ZONE: "c"})],
        [
            pod("one", on="n1", labels={"app": "a"}),
            pod("two", on="n2", affinity=anti_affinity(term(ZONE, "web"))),
            pod("web", labels={"app": "web"}, affinity=anti_affinity(term(ZONE, "a"))),
        ],
        {"n1": "InterPodAffinity", "n2": "InterPodAffinity", "n3": FITS},
    ),
    "InterPodAffinity: a terminating pod counts": known(
        [node("n1", labels=IN_A)],
        [
            pod("other", on="n1", labels={"app": "a"}, meta=TERMINATING),
            pod("web", affinity=anti_affinity(term(ZONE, "a"))),
        ],
        {"n1": "InterPodAffinity"},
    ),
    "InterPodAffinity: a pod that has ended does not count": known(
        [node("n1", labels=IN_A)],
        [
            pod("other", on="n1", labels={"app": "a"}, status={"phase": "Succeeded"}),
            pod("web", affinity=anti_affinity(term(ZONE, "a"))),
        ],
        {"n1": FITS},
    ),
    "VolumeZone: labels alone": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B)],
        [pod("web", volumes=mounts("data"))],
        {"n1": FITS, "n2": "VolumeZone"},
        persistentVolumeClaims=[claim("data", volume="v")],
        persistentVolumes=[volume("v", labels=IN_A, bound_to="data")],
        storageClasses=[storage_class()],
    ),
    "VolumeBinding: the affinity of a bound volume": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B)],
        [pod("web", volumes=mounts("data"))],
        {"n1": FITS, "n2": "VolumeBinding"},
        persistentVolumeClaims=[claim("data", volume="v")],
        persistentVolumes=[volume("v", zones=["a"], bound_to="data")],
        storageClasses=[storage_class()],
    ),
    "VolumeBinding: the topologies of a class": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_B)],
        [pod("web", volumes=mounts("data"))],
        {"n1": FITS, "n2": "VolumeBinding"},
        persistentVolumeClaims=[claim("data")],
        storageClasses=[
            storage_class(allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]),
        ],
    ),
    "VolumeRestrictions: no claim of that name": known(
        [node("n1")], [pod("web", volumes=mounts("data"))], {"n1": "VolumeRestrictions"}
    ),
    "VolumeRestrictions: ReadWriteOncePod in use": known(
        [node("n1"), node("n2")],
        [pod("other", on="n1", volumes=mounts("data")), pod("web", volumes=mounts("data"))],
        {"n1": "VolumeRestrictions", "n2": "VolumeRestrictions"},
        persistentVolumeClaims=[claim("data", volume="v", modes=["ReadWriteOncePod"])],
        persistentVolumes=[volume("v", bound_to="data")],
        storageClasses=[storage_class()],
    ),
    "NodeVolumeLimits": known(
        [node("n1"), node("n2")],
        [pod("other", on="n1", volumes=mounts("one")), pod("web", volumes=mounts("two", "three"))],
        {"n1": "NodeVolumeLimits", "n2": FITS},
        persistentVolumeClaims=[claim("one"), claim("two"), claim("three")],
        storageClasses=[storage_class()],
        csiNodes=[csi_node("n1", 2), csi_node("n2", 2)],
    ),
    "DynamicResources": known(
        [node("n1"), node("n2")],
        [pod("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])],
        {"n1": FITS, "n2": "DynamicResources"},
        resourceClaims=[device_claim("gpu")],
        resourceSlices=[device_slice("n1", "d0")],
        deviceClasses=[device_class()],
    ),
    "NodeDeclaredFeatures": known(
        [node("n1"), {**node("n2"), "status": {**node("n2")["status"], "declaredFeatures": [HOST_USERS]}}],
        [pod("web", hostNetwork=True, hostUsers=False)],
        {"n1": "NodeDeclaredFeatures", "n2": FITS},
    ),
    "TaintToleration: a pod that tolerates the taint of a cordoned node may run there": known(
        [node("n1", unschedulable=True)],
        [pod("web", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])],
        {"n1": FITS},
    ),
    "VolumeRestrictions: an EBS volume in two pods of one node": known(
        [node("n1"), node("n2")],
        [pod("other", on="n1", volumes=[INLINE]), pod("web", volumes=[INLINE])],
        {"n1": "VolumeRestrictions", "n2": FITS},
    ),
    "DynamicResources: an extended resource that a device class stands for": known(
        [node("n1"), node("n2"), node("n3", allocatable={"example.com/gpu": "1"})],
        [pod("web", requests={"example.com/gpu": "1"}, container={"resources": {"limits": {"example.com/gpu": "1"}}})],
        {"n1": FITS, "n2": "DynamicResources", "n3": FITS},
        resourceSlices=[device_slice("n1", "d0")],
        deviceClasses=[
            {**device_class(), "spec": {**device_class()["spec"], "extendedResourceName": "example.com/gpu"}}
        ],
    ),
    "SchedulingGates": known([node("n1")], [pod("web", schedulingGates=[{"name": "g"}])], {"n1": "SchedulingGates"}),
    "a nominated pod of the same priority counts": known(
        [node("n1"), node("n2")],
        [
            pod("other", requests={"cpu": "3"}, status={"nominatedNodeName": "n1"}),
            pod("web", requests={"cpu": "2"}),
        ],
        {"n1": "NodeResourcesFit", "n2": FITS},
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_plugins_refuse_the_nodes_of_a_known_world(name: str, oracle: Oracle) -> None:
    judge(WORLDS[name], oracle)


#: Plugins that can refuse, but not here: a pod without a node names none, preemption and groups of pods are not run.
NEVER = {"DefaultPreemption", "NodeName"}


def test_each_plugin_that_can_refuse_refuses_a_node_of_a_known_world(oracle: Oracle) -> None:
    refusing = {plugin for case in WORLDS.values() for plugin in case.refused_by.values() if plugin != FITS}
    assert refusing == set(oracle.profile()) - NEVER


def test_a_queue_is_bound_in_turn_and_each_pod_counts_for_the_next(oracle: Oracle) -> None:
    pods = [pod(name, requests={"cpu": "2500m"}) for name in ("a", "b", "c")]
    answer = oracle.ask(
        {"nodes": [node("n1"), node("n2")], "pods": pods}, queue=["default/b", "default/a", "default/c"]
    )
    assert [(one.pod, one.node) for one in answer.queue] == [
        ("default/b", "n1"),
        ("default/a", "n2"),
        ("default/c", ""),
    ]
    last = answer.queue[-1].refusals
    assert {name: one.plugin for name, one in last.items()} == {"n1": "NodeResourcesFit", "n2": "NodeResourcesFit"}
    assert last["n1"].message == "Insufficient cpu"


def test_a_pod_is_bound_where_the_request_says_or_not_at_all(oracle: Oracle) -> None:
    world = {"nodes": [node("n1", unschedulable=True), node("n2"), node("n3")], "pods": [pod("a"), pod("b")]}
    answer = oracle.ask(world, queue=["default/a", "default/b"], bind={"default/a": "n3", "default/b": "n1"})
    assert [one.node for one in answer.queue] == ["n3", ""]
    assert {name: one.plugin for name, one in answer.queue[1].refusals.items()} == {"n1": "NodeUnschedulable"}


def test_the_devices_of_a_queue_are_given_once(oracle: Oracle) -> None:
    own = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    shared = [{"name": "gpu", "resourceClaimName": "shared"}]
    pods = [pod("a", resourceClaims=own), pod("b", resourceClaims=shared), pod("c", resourceClaims=shared)]
    world = {
        "nodes": [node("n1"), node("n2")],
        "pods": [*pods, pod("d", resourceClaims=own)],
        "resourceClaims": [device_claim("shared")],
        "resourceClaimTemplates": [device_claim_template("gpu")],
        "resourceSlices": [device_slice("n1", "d0"), device_slice("n2", "d0")],
        "deviceClasses": [device_class()],
    }
    answer = oracle.ask(world, queue=["default/a", "default/b", "default/c", "default/d"])
    assert [one.node for one in answer.queue] == ["n1", "n2", "n2", ""]


def test_the_volumes_of_a_queue_are_counted(oracle: Oracle) -> None:
    world = {
        "nodes": [node("n1"), node("n2")],
        "pods": [pod("a", volumes=mounts("one")), pod("b", volumes=mounts("two")), pod("c", volumes=mounts("three"))],
        "persistentVolumeClaims": [claim("one"), claim("two"), claim("three")],
        "storageClasses": [storage_class()],
        "csiNodes": [csi_node("n1", 1), csi_node("n2", 1)],
    }
    answer = oracle.ask(world, queue=["default/a", "default/b", "default/c"])
    assert [one.node for one in answer.queue] == ["n1", "n2", ""]
    assert {one.plugin for one in answer.queue[2].refusals.values()} == {"NodeVolumeLimits"}


def test_a_volume_that_is_provisioned_for_one_pod_of_a_queue_has_the_zone_of_its_node(oracle: Oracle) -> None:
    world = {
        "nodes": [node("n1", labels=IN_B), node("n2", labels=IN_A), node("n3", labels=IN_B)],
        "pods": [pod(name, volumes=mounts("data"), requests={"cpu": "3"}) for name in ("a", "b", "c")],
        "persistentVolumeClaims": [claim("data")],
        "storageClasses": [storage_class()],
    }
    answer = oracle.ask(world, queue=["default/a", "default/b", "default/c"])
    assert [one.node for one in answer.queue] == ["n1", "n3", ""]
    assert answer.queue[2].refusals["n2"].plugin == "VolumeBinding"
