"""What others do in a cluster, as far as the reconciler builds on it: scheduler, node lifecycle, garbage collection."""

from __future__ import annotations

from kerf.model import kinds
from kerf.model.kinds import Ref

from .kube_clusters import Cluster
from .kube_objects import gone, node, pod, pod_ref, start_pod


def test_pod_without_a_node_is_unschedulable(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))

    def refused() -> bool:
        conditions = cluster.kube.get(pod_ref(name)).status.conditions
        return any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in conditions)

    cluster.eventually(refused)


def test_node_is_tainted_until_its_kubelet_is_ready(cluster: Cluster, name: str) -> None:
    young = cluster.kube.create(kinds.NODE, node(name))
    assert [str(t) for t in young.spec.taints] == ["node.kubernetes.io/not-ready:NoSchedule"]
    ref = Ref("Node", "", name)
    cluster.eventually(lambda: cluster.kube.get(ref).ready and not cluster.kube.get(ref).spec.taints)


def test_no_execute_taint_casts_out_a_pod(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    bearing = [{"key": "kerf.test/out", "operator": "Exists"}]
    leaves, stays = start_pod(cluster, f"{name}-a", name), start_pod(cluster, f"{name}-b", name, tolerations=bearing)
    taint = {"key": "kerf.test/out", "effect": "NoExecute"}
    cluster.kube.patch(Ref("Node", "", name), {"spec": {"taints": [taint]}})
    cluster.eventually(lambda: gone(cluster.kube, leaves))
    assert not cluster.kube.get(stays).metadata.deleting


def test_pods_of_a_deleted_node_go(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.delete(Ref("Node", "", name))
    cluster.eventually(lambda: gone(cluster.kube, ref))
