"""What every adapter of the Kube port must do, on the sandbox and on a real API server alike."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model import kinds
from reconciler.model.kinds import Kind, Ref
from reconciler.model.objects import Pod
from reconciler.ports import (
    AlreadyExists,
    AlreadyGone,
    Change,
    Conflict,
    EvictionBlocked,
    Expired,
    Invalid,
    Kube,
    Lease,
    PortError,
)

from .kube_clusters import Cluster

FINALIZER = "kerf.test/holds"
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


# --- objects ----------------------------------------------------------------------------------------------------
def pool(name: str, **meta: Any) -> dict[str, Any]:
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    template = {"spec": {"nodeClassRef": CLASS_REF, "requirements": [requirement]}}
    spec = {"template": template}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, **meta}, "spec": spec}


def claim(name: str, **meta: Any) -> dict[str, Any]:
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    spec = {"nodeClassRef": CLASS_REF, "requirements": [requirement]}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, **meta}, "spec": spec}


def pod(name: str, node_label: str, **spec: Any) -> dict[str, Any]:
    """A pod that only fits the node of its own test."""
    meta = {"name": name, "namespace": "default", "labels": {"app": name, "test": node_label}}
    containers = [{"name": "main", "image": "example.test/pause", "resources": {"requests": {"cpu": "100m"}}}]
    spec = {"nodeSelector": {"test": node_label}, "containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    meta = {"name": name, "labels": {"test": name}}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": status}


def budget(name: str, label: str, **spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": {"test": label}}, **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": body}


def gone(kube: Kube, ref: Ref) -> bool:
    try:
        kube.get(ref)
    except AlreadyGone:
        return True
    return False


def running(kube: Kube, ref: Ref) -> bool:
    value: Pod = kube.get(ref)
    return value.status.phase == "Running"


def start_pod(cluster: Cluster, name: str, label: str, **spec: Any) -> Ref:
    ref = Ref("Pod", "default", name)
    cluster.kube.create(kinds.POD, pod(name, label, **spec))
    cluster.eventually(lambda: running(cluster.kube, ref))
    return ref


def claim_ref(name: str) -> Ref:
    return Ref("NodeClaim", "", name)


# --- create, get, patch -----------------------------------------------------------------------------------------
def test_created_object_has_what_the_server_adds(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    assert made.metadata.uid
    assert made.metadata.generation == 1
    assert made.metadata.creation_timestamp is not None
    assert made == cluster.kube.get(claim_ref(name))


def test_creating_twice_is_already_exists(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(AlreadyExists):
        cluster.kube.create(kinds.NODE_CLAIM, claim(name))


def test_generated_names_differ(cluster: Cluster, name: str) -> None:
    manifest = claim(name)
    manifest["metadata"] = {"generateName": f"{name}-"}
    first, second = (cluster.kube.create(kinds.NODE_CLAIM, manifest) for _ in range(2))
    assert first.metadata.name.startswith(f"{name}-")
    assert first.metadata.name != second.metadata.name


@pytest.mark.parametrize(
    "request_of",
    [
        lambda kube, ref: kube.get(ref),
        lambda kube, ref: kube.patch(ref, {"metadata": {"labels": {"a": "b"}}}),
        lambda kube, ref: kube.delete(ref),
    ],
    ids=["get", "patch", "delete"],
)
def test_what_is_not_there_is_already_gone(cluster: Cluster, request_of: Callable[[Kube, Ref], object]) -> None:
    with pytest.raises(AlreadyGone):
        request_of(cluster.kube, claim_ref("never-there"))


def test_evicting_what_is_not_there_is_already_gone(cluster: Cluster) -> None:
    with pytest.raises(AlreadyGone):
        cluster.kube.evict(Ref("Pod", "default", "never-there"))


def test_custom_object_that_breaks_its_definition_is_invalid(cluster: Cluster, name: str) -> None:
    manifest = pool(name)
    manifest["spec"]["disruption"] = {"consolidateAfter": "30s", "budgets": [{"nodes": "ten"}]}
    with pytest.raises(Invalid):
        cluster.kube.create(kinds.NODE_POOL, manifest)


def test_defaults_of_the_definition_are_filled_in(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_POOL, pool(name))
    assert made.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert made.spec.template.spec.expire_after == "720h"


def test_merge_patch_adds_replaces_and_removes(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, labels={"a": "1", "b": "2"}))
    changed = cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": None, "b": "3", "c": "4"}}})
    assert dict(changed.metadata.labels) == {"b": "3", "c": "4"}


def test_patch_that_changes_nothing_leaves_no_trace(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name, labels={"a": "1"}))
    same = cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}})
    assert same.metadata.resource_version == made.metadata.resource_version


def test_patch_of_an_old_version_conflicts(cluster: Cluster, name: str) -> None:
    old = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata.resource_version
    new = cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}}, resource_version=old)
    with pytest.raises(Conflict):
        cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "2"}}}, resource_version=old)
    assert int(new.metadata.resource_version) > int(old)


def test_status_is_written_apart(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, {**claim(name), "status": {"nodeName": "ignored"}})
    both = {"metadata": {"labels": {"a": "1"}}, "status": {"nodeName": "one"}}
    through_main = cluster.kube.patch(claim_ref(name), both)
    assert (through_main.status.node_name, dict(through_main.metadata.labels)) == ("", {"a": "1"})
    through_status = cluster.kube.patch(
        claim_ref(name), {"metadata": {"labels": {"a": "2"}}, "status": {"nodeName": "two"}}, subresource="status"
    )
    assert (through_status.status.node_name, dict(through_status.metadata.labels)) == ("two", {"a": "1"})
    assert through_status.metadata.generation == 1


def test_old_version_conflicts_in_the_status_too(cluster: Cluster, name: str) -> None:
    old = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata.resource_version
    status = {"status": {"nodeName": "one"}}
    cluster.kube.patch(claim_ref(name), status, subresource="status", resource_version=old)
    with pytest.raises(Conflict):
        cluster.kube.patch(claim_ref(name), {"status": {"nodeName": "two"}}, subresource="status", resource_version=old)


def test_generation_follows_the_spec(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_POOL, pool(name))
    ref = Ref("NodePool", "", name)
    assert cluster.kube.patch(ref, {"metadata": {"annotations": {"a": "1"}}}).metadata.generation == 1
    assert cluster.kube.patch(ref, {"spec": {"weight": 7}}).metadata.generation == 2


def test_node_claim_spec_is_immutable(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(Invalid):
        cluster.kube.patch(claim_ref(name), {"spec": {"expireAfter": "1h"}})


# --- deletion ---------------------------------------------------------------------------------------------------
def test_deletion_of_another_uid_conflicts(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(Conflict):
        cluster.kube.delete(claim_ref(name), uid="00000000-0000-4000-8000-000000000000")
    cluster.kube.delete(claim_ref(name), uid=made.metadata.uid)
    assert gone(cluster.kube, claim_ref(name))


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


def test_unbound_pod_goes_at_once(cluster: Cluster, name: str) -> None:
    ref = Ref("Pod", "default", name)
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))
    cluster.kube.delete(ref)
    assert gone(cluster.kube, ref)


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


# --- scheduling and eviction ------------------------------------------------------------------------------------
def test_pod_without_a_node_is_unschedulable(cluster: Cluster, name: str) -> None:
    ref = Ref("Pod", "default", name)
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))

    def refused() -> bool:
        conditions = cluster.kube.get(ref).status.conditions
        return any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in conditions)

    cluster.eventually(refused)


def test_pods_on_a_node_are_listed_by_field(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    for number in range(2):
        start_pod(cluster, f"{name}-{number}", name)
    found = cluster.kube.list(kinds.POD, field_selector=f"spec.nodeName={name}").items
    assert [one.metadata.name for one in found] == [f"{name}-0", f"{name}-1"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("set={n},app=a", ["a"]),
        ("set={n},app!=a", ["b", "c"]),
        ("set={n},app in (a, b)", ["a", "b"]),
        ("set={n},app notin (a, b)", ["c"]),
        ("set={n},!only", ["a", "b"]),
        ("set={n},only", ["c"]),
    ],
)
def test_label_selectors(cluster: Cluster, name: str, selector: str, expected: list[str]) -> None:
    group = f"{name}-{zlib.crc32(selector.encode())}"
    for app in "abc":
        only = {"only": "yes"} if app == "c" else {}
        labels = {"set": group, "app": app, **only}
        cluster.kube.create(kinds.NODE_CLAIM, claim(f"{group}-{app}", labels=labels))
    found = cluster.kube.list(kinds.NODE_CLAIM, label_selector=selector.format(n=group)).items
    assert [one.metadata.labels["app"] for one in found] == expected


def test_eviction_spends_the_budget(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    refs = [start_pod(cluster, f"{name}-{number}", name) for number in range(2)]
    cluster.kube.create(kinds.PDB, budget(name, name, minAvailable=1))
    counted = Ref("PodDisruptionBudget", "default", name)
    cluster.eventually(lambda: cluster.kube.get(counted).status.disruptions_allowed == 1)
    cluster.kube.evict(refs[0])
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(refs[1])
    cluster.eventually(lambda: gone(cluster.kube, refs[0]))
    assert cluster.kube.get(refs[1]).status.phase == "Running"


def test_pod_without_a_controller_has_no_share_of_a_relative_budget(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    cluster.kube.create(kinds.PDB, budget(name, name, maxUnavailable=1))
    counted = Ref("PodDisruptionBudget", "default", name)
    cluster.eventually(lambda: cluster.kube.get(counted).status.observed_generation == 1)
    assert cluster.kube.get(counted).status.disruptions_allowed == 0
    with pytest.raises(EvictionBlocked):
        cluster.kube.evict(ref)


def test_pod_that_has_not_started_is_evicted_without_asking_a_budget(cluster: Cluster, name: str) -> None:
    ref = Ref("Pod", "default", name)
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))
    cluster.kube.create(kinds.PDB, budget(name, "no-such-node", maxUnavailable=0))
    cluster.kube.evict(ref)
    assert gone(cluster.kube, ref)
    cluster.kube.delete(Ref("PodDisruptionBudget", "default", name))


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


def test_eviction_of_another_uid_conflicts(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    with pytest.raises(Conflict):
        cluster.kube.evict(ref, uid="00000000-0000-4000-8000-000000000000")
    assert not cluster.kube.get(ref).metadata.deleting


def test_two_budgets_stop_an_eviction(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    ref = start_pod(cluster, name, name)
    for number in range(2):
        cluster.kube.create(kinds.PDB, budget(f"{name}-{number}", name, maxUnavailable=1))
    with pytest.raises(PortError, match="more than one PodDisruptionBudget"):
        cluster.kube.evict(ref)
    assert not cluster.kube.get(ref).metadata.deleting


# --- watches ----------------------------------------------------------------------------------------------------
def changes_of(cluster: Cluster, kind: Kind, name: str, since: str, count: int) -> list[Change]:
    """The first changes of one object, in the order in which the watch tells them; bookmarks left out."""
    watch = cluster.kube.watch(kind, since)
    seen: list[Change] = []

    def enough() -> bool:
        seen.extend(c for c in watch.read(0.2) if c.value is not None and c.value.metadata.name == name)
        return len(seen) >= count

    try:
        cluster.eventually(enough)
    finally:
        watch.close()
    return seen


def test_watch_tells_changes_in_order(cluster: Cluster, name: str) -> None:
    since = cluster.kube.list(kinds.NODE_CLAIM).resource_version
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}})
    cluster.kube.patch(claim_ref(name), {"status": {"nodeName": "one"}}, subresource="status")
    cluster.kube.delete(claim_ref(name))
    seen = changes_of(cluster, kinds.NODE_CLAIM, name, since, 4)
    assert [change.type for change in seen] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    versions = [int(change.resource_version) for change in seen]
    assert versions == sorted(set(versions))
    assert seen[2].value is not None
    assert seen[2].value.status.node_name == "one"


def test_watch_starts_after_the_given_version(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}})
    seen = changes_of(cluster, kinds.NODE_CLAIM, name, made.metadata.resource_version, 1)
    assert [change.type for change in seen] == ["MODIFIED"]


def test_watch_from_an_old_version_expires(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    old = cluster.old_version()
    with pytest.raises(Expired):
        changes_of(cluster, kinds.NODE_CLAIM, "never", old, 1)


def test_list_names_the_version_it_shows(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    listing = cluster.kube.list(kinds.NODE_CLAIM)
    assert int(listing.resource_version) >= int(made.metadata.resource_version)
    assert made in listing.items


# --- leases and events ------------------------------------------------------------------------------------------
def test_lease_is_guarded_by_its_version(cluster: Cluster, name: str) -> None:
    kube, now = cluster.kube, datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    assert kube.get_lease("kube-system", name) is None
    first = kube.put_lease("kube-system", name, Lease("one", acquired=now, renewed=now))
    assert first.resource_version
    assert kube.get_lease("kube-system", name) == first
    later = Lease("two", now, now + timedelta(seconds=1), 15, 1, first.resource_version)
    second = kube.put_lease("kube-system", name, later)
    assert (second.holder, second.transitions, second.renewed) == ("two", 1, now + timedelta(seconds=1))
    with pytest.raises(Conflict):
        kube.put_lease("kube-system", name, Lease("one", now, now, 15, 2, first.resource_version))


def test_lease_is_created_once(cluster: Cluster, name: str) -> None:
    cluster.kube.put_lease("kube-system", name, Lease("one"))
    with pytest.raises((Conflict, AlreadyExists)):
        cluster.kube.put_lease("kube-system", name, Lease("two"))


def test_events_are_taken(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    for ref in (claim_ref(name), Ref("Pod", "default", name)):
        cluster.kube.emit(ref, made.metadata.uid, "Normal", "Tested", "a test was here")
