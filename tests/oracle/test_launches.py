"""Existing nodes that pods with planned nodes have missed: whatever these become, and while none is without pods."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from kerf.scheduling.answers.solution import PodRefusal
from tests.oracle.campaign import sorted_out
from tests.oracle.client import Oracle
from tests.oracle.compare import compare, missed
from tests.oracle.difference import MISSED
from tests.oracle.objects import HOST, ZONE, Json, node, pod, spread
from tests.oracle.ours import answer
from tests.oracle.worlds import world_of

CATEGORY = "karpenter.k8s.aws/instance-category"
CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
LISTS = (
    "nodeClaims persistentVolumes persistentVolumeClaims storageClasses csiNodes csiDrivers resourceClaims "
    "resourceClaimTemplates resourceSlices deviceClasses namespaces"
)


def _type(category: str, price: float) -> Json:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "10", "ephemeral-storage": "20Gi"}
    sold = {"zone": "a", "capacityType": "spot", "price": price, "available": True}
    return {
        "name": f"{category}7i.x4",
        "arch": "amd64",
        "os": "linux",
        "capacity": amounts,
        "allocatable": amounts,
        "labels": {CATEGORY: category},
        "offerings": [sold],
    }


def _world(*categories: str) -> Json:
    """One pod has its place beside the DaemonSet pod of a node. The other gets a node of one of the categories.

    DaemonSet pods run on nodes of category `r` only. They count for the spread of both pods.
    """
    waits = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    hosts = [spread(HOST, "web", maxSkew=2)]
    pods = [
        pod(
            f"web-{size}",
            labels={"app": "web"},
            requests={"cpu": f"{size}00m"},
            status=waits,
            topologySpreadConstraints=hosts,
        )
        for size in ("1", "2")
    ]
    there = node("node-0", labels={ZONE: "a", CATEGORY: "r"})
    pool = {"metadata": {"name": "pool"}, "spec": {"template": {"spec": {"nodeClassRef": CLASS, "requirements": []}}}}
    ready = [{"type": kind, "status": "True"} for kind in ("ValidationSucceeded", "NodeClassReady", "Ready")]
    agent = pod("agent", labels={"app": "web"}, nodeSelector={CATEGORY: "r"})
    for one in (there, pool, *pods):
        one["metadata"]["uid"] = f"uid-{one['metadata']['name']}"
    return {
        **{name: [] for name in LISTS.split()},
        "nodes": [there],
        "pods": pods,
        "nodePools": [{**pool, "status": {"conditions": ready}}],
        "daemonSets": [
            {
                "metadata": {"namespace": "default", "name": "agent", "uid": "uid-agent"},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": agent["spec"]},
                },
            }
        ],
        "instanceTypes": [_type(category, 0.1 + 0.01 * rank) for rank, category in enumerate(categories)],
        "wellKnownLabels": [CATEGORY],
        "settings": {},
    }


def test_a_pod_that_fits_on_an_existing_node_for_some_types_of_a_planned_one_has_not_missed_it(oracle: Oracle) -> None:
    found = compare(_world("m", "r"), oracle)
    assert found.ours is not None
    assert len(found.ours.solution.new_nodes) == 1
    assert found.differences == ()


def test_a_pod_that_fits_on_an_existing_node_for_each_type_of_a_planned_one_has_missed_it(oracle: Oracle) -> None:
    world = _world("m", "r")
    ours = answer(world)
    (first,) = ours.solution.placed
    refused = {first: PodRefusal("Incompatible", "no place")}
    wrong = replace(ours, solution=replace(ours.solution, placed={}, unplaced=refused))
    found = missed(world, wrong, oracle)
    assert {(one.direction, one.pod, one.node) for one in found} == {
        (MISSED, "default/web-1", "node-0"),
        (MISSED, "default/web-2", "node-0"),
    }


def test_a_spread_over_hostnames_is_measured_against_a_host_without_pods(oracle: Oracle) -> None:
    """Two pods have places on the node, two get a new one. The first of these fits on the node after the second."""
    world = _world("m")
    more = deepcopy(world["pods"])
    for one in more:
        one["metadata"]["name"] = one["metadata"]["uid"] = one["metadata"]["name"] + "-b"
    found = compare({**world, "pods": [*world["pods"], *more], "daemonSets": []}, oracle)
    assert found.ours is not None
    assert [len(node.pods) for node in found.ours.solution.new_nodes] == [2]
    exceptions, _, unexplained = sorted_out(found)
    assert {rule for _, rule in exceptions} == {"hosts to come", "later pods"}
    assert unexplained == ()


def test_a_pod_may_need_the_daemon_pods_of_a_node_that_is_planned_for_it_alone(oracle: Oracle) -> None:
    """The node brings a pod of the DaemonSet to its zone, so the spread of the pod admits it in other zones as well."""
    exceptions, _, unexplained = sorted_out(compare(world_of(577), oracle))
    assert "beside its node" in {rule for _, rule in exceptions}
    assert unexplained == ()
