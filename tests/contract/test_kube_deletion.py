"""Deletion through the Kube port: preconditions, finalizers, owners and a pod's grace, on both sides alike."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import Conflict, Invalid

from .kube_clusters import Cluster
from .kube_objects import ANOTHER_UID, FINALIZER, claim, claim_ref, gone, node, pod, pod_ref, pool, start_pod

ANOTHER = "kerf.test/holds-too"


# --- preconditions ----------------------------------------------------------------------------------------------
def test_deletion_of_another_uid_conflicts(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(Conflict):
        cluster.kube.delete(claim_ref(name), uid=ANOTHER_UID)
    cluster.kube.delete(claim_ref(name), uid=made.metadata.uid)
    assert gone(cluster.kube, claim_ref(name))


def test_successor_of_the_same_name_is_another_object(cluster: Cluster, name: str) -> None:
    first = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata
    cluster.kube.delete(claim_ref(name))
    second = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata
    assert second.uid != first.uid
    with pytest.raises(Conflict):
        cluster.kube.delete(claim_ref(name), uid=first.uid)
    labels = {"metadata": {"labels": {"a": "1"}}}
    with pytest.raises(Conflict):
        cluster.kube.patch(claim_ref(name), labels, resource_version=first.resource_version)


# --- finalizers -------------------------------------------------------------------------------------------------
def test_finalizer_holds_a_deleted_object(cluster: Cluster, name: str) -> None:
    ref = claim_ref(name)
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, finalizers=[FINALIZER]))
    cluster.kube.delete(ref)
    waiting = cluster.kube.get(ref)
    assert waiting.metadata.deleting
    cluster.kube.delete(ref)
    assert cluster.kube.get(ref).metadata.deletion_timestamp == waiting.metadata.deletion_timestamp
    with pytest.raises(Invalid):
        cluster.kube.patch(ref, {"metadata": {"finalizers": [FINALIZER, "kerf.test/late"]}})
    cluster.kube.patch(ref, {"metadata": {"finalizers": None}})
    assert gone(cluster.kube, ref)


def test_only_the_last_finalizer_lets_go(cluster: Cluster, name: str) -> None:
    ref = claim_ref(name)
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, finalizers=[FINALIZER, ANOTHER]))
    cluster.kube.delete(ref)
    left = cluster.kube.patch(ref, {"metadata": {"finalizers": [ANOTHER]}})
    assert left.metadata.finalizers == (ANOTHER,)
    assert left.metadata.deleting
    last = cluster.kube.patch(ref, {"metadata": {"finalizers": []}})
    assert last.metadata.name == name
    assert gone(cluster.kube, ref)


def test_removing_finalizers_of_a_living_object_deletes_nothing(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, finalizers=[FINALIZER]))
    assert cluster.kube.patch(claim_ref(name), {"metadata": {"finalizers": None}}).metadata.finalizers == ()
    assert not cluster.kube.get(claim_ref(name)).metadata.deleting


def test_object_on_its_way_out_can_still_be_written(cluster: Cluster, name: str) -> None:
    ref = claim_ref(name)
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, finalizers=[FINALIZER]))
    cluster.kube.delete(ref)
    noted = cluster.kube.patch(ref, {"metadata": {"annotations": {"a": "1"}}})
    told = cluster.kube.patch(ref, {"status": {"nodeName": "one"}}, subresource="status")
    assert (dict(told.metadata.annotations), told.status.node_name) == ({"a": "1"}, "one")
    with pytest.raises(Conflict):  # somebody has written since
        cluster.kube.patch(
            ref, {"metadata": {"finalizers": None}}, resource_version=str(noted.metadata.resource_version)
        )
    assert not gone(cluster.kube, ref)


def test_nobody_but_the_server_begins_a_deletion(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(Invalid):
        cluster.kube.patch(claim_ref(name), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert not cluster.kube.get(claim_ref(name)).metadata.deleting


# --- owners -----------------------------------------------------------------------------------------------------
def test_dependents_follow_their_owner(cluster: Cluster, name: str) -> None:
    owner = cluster.kube.create(kinds.NODE_POOL, pool(name))
    reference = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": name,
        "uid": owner.metadata.uid,
        "blockOwnerDeletion": True,
    }
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, ownerReferences=[reference]))
    cluster.kube.delete(Ref("NodePool", "", name))
    cluster.eventually(lambda: gone(cluster.kube, claim_ref(name)))


# --- pods and their grace ---------------------------------------------------------------------------------------
def test_unbound_pod_goes_at_once(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))
    cluster.kube.delete(pod_ref(name))
    assert gone(cluster.kube, pod_ref(name))


def test_running_pod_gets_its_grace(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name, terminationGracePeriodSeconds=20)
    before = cluster.kube.get(ref).status.start_time
    cluster.kube.delete(ref)
    leaving = cluster.kube.get(ref).metadata
    assert leaving.deletion_grace_period_seconds == 20
    assert leaving.deletion_timestamp - before >= timedelta(seconds=19)
    cluster.kube.delete(ref, grace_seconds=10)
    sooner = cluster.kube.get(ref).metadata
    assert leaving.deletion_timestamp - sooner.deletion_timestamp == timedelta(seconds=10)
    cluster.eventually(lambda: gone(cluster.kube, ref))


def test_second_deletion_never_lengthens_the_grace(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name, terminationGracePeriodSeconds=20)
    cluster.kube.delete(ref, grace_seconds=5)
    first = cluster.kube.get(ref).metadata
    cluster.kube.delete(ref, grace_seconds=15)
    again = cluster.kube.get(ref).metadata
    assert (again.deletion_grace_period_seconds, again.deletion_timestamp) == (5, first.deletion_timestamp)


def test_running_pod_without_grace_goes_at_once(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.delete(ref, grace_seconds=0)
    assert gone(cluster.kube, ref)


def test_finished_pod_goes_at_once(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.patch(ref, {"status": {"phase": "Succeeded"}}, subresource="status")
    cluster.kube.delete(ref)
    assert gone(cluster.kube, ref)


def test_pod_with_a_finalizer_stays_when_its_containers_have_ended(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.patch(ref, {"metadata": {"finalizers": [FINALIZER]}})
    cluster.kube.delete(ref)

    def ended() -> bool:
        left = cluster.kube.get(ref)
        return left.status.phase in ("Succeeded", "Failed") or left.metadata.deletion_grace_period_seconds == 0

    cluster.eventually(ended)
    assert cluster.kube.get(ref).metadata.deleting
    cluster.kube.patch(ref, {"metadata": {"finalizers": None}})
    cluster.eventually(lambda: gone(cluster.kube, ref))
