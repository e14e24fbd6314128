"""Creating and patching objects through the Kube port, on the sandbox and on a real API server alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import AlreadyExists, AlreadyGone, Conflict, Invalid, Kube, Unavailable

from .kube_clusters import Cluster
from .kube_objects import claim, claim_ref, node, pod, pool


# --- creating ---------------------------------------------------------------------------------------------------
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


def test_what_only_the_server_may_say_is_not_taken_from_a_client(cluster: Cluster, name: str) -> None:
    manifest = claim(name, generation=7, creationTimestamp="2001-01-01T00:00:00Z", uid="mine")
    made = cluster.kube.create(kinds.NODE_CLAIM, manifest)
    assert made.metadata.uid != "mine"
    assert made.metadata.generation == 1
    assert made.metadata.creation_timestamp.year > 2001
    again = {"metadata": {"generation": 9, "creationTimestamp": "2001-01-01T00:00:00Z"}}
    assert cluster.kube.patch(claim_ref(name), again).metadata == made.metadata


def test_nothing_is_created_from_a_version(cluster: Cluster, name: str) -> None:
    with pytest.raises(Unavailable, match="resourceVersion should not be set"):  # the server answers 500
        cluster.kube.create(kinds.NODE_CLAIM, claim(name, resourceVersion="7"))


def test_namespace_that_is_not_there_is_already_gone(cluster: Cluster, name: str) -> None:
    with pytest.raises(AlreadyGone):
        cluster.kube.create(kinds.POD, pod(name, name, namespace="never-there"))


@pytest.mark.parametrize(
    "request_of",
    [
        lambda kube, ref: kube.get(ref),
        lambda kube, ref: kube.patch(ref, {"metadata": {"labels": {"a": "b"}}}),
        lambda kube, ref: kube.patch(ref, {"metadata": {"labels": {"a": "b"}}}, resource_version="1"),
        lambda kube, ref: kube.patch(ref, {"status": {"nodeName": "b"}}, subresource="status"),
        lambda kube, ref: kube.delete(ref),
        lambda kube, ref: kube.delete(ref, uid="00000000-0000-4000-8000-000000000000"),
    ],
    ids=["get", "patch", "guarded patch", "status", "delete", "guarded delete"],
)
def test_what_is_not_there_is_already_gone(cluster: Cluster, request_of: Callable[[Kube, Ref], object]) -> None:
    with pytest.raises(AlreadyGone):
        request_of(cluster.kube, claim_ref("never-there"))


# --- what is refused --------------------------------------------------------------------------------------------
def test_custom_object_that_breaks_its_definition_is_invalid(cluster: Cluster, name: str) -> None:
    manifest = pool(name)
    manifest["spec"]["disruption"] = {"consolidateAfter": "30s", "budgets": [{"nodes": "ten"}]}
    with pytest.raises(Invalid):
        cluster.kube.create(kinds.NODE_POOL, manifest)


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"weight": "heavy"}},
        {"spec": {"weight": 101}},
        {"spec": {"template": None}},
        {"metadata": {"labels": {"a": "no spaces"}}},
        {"metadata": {"labels": {"-a": "b"}}},
        {"metadata": {"annotations": {"a b": "c"}}},
        {"metadata": {"annotations": {"a": "x" * 300_000}}},
        {"metadata": {"finalizers": ["no group or slash"]}},
    ],
    ids=["type", "maximum", "required", "label value", "label key", "annotation key", "annotation size", "finalizer"],
)
def test_patch_that_breaks_a_rule_is_invalid_and_changes_nothing(
    cluster: Cluster, name: str, request: pytest.FixtureRequest, patch: dict[str, Any]
) -> None:
    own = f"{name}-{request.node.callspec.id.rpartition('-')[2].replace(' ', '-')}"[:60]
    ref = Ref("NodePool", "", own)
    made = cluster.kube.create(kinds.NODE_POOL, pool(own))
    with pytest.raises(Invalid):
        cluster.kube.patch(ref, patch)
    assert cluster.kube.get(ref) == made


def test_node_claim_spec_is_immutable(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(Invalid):
        cluster.kube.patch(claim_ref(name), {"spec": {"expireAfter": "1h"}})


def test_defaults_of_the_definition_are_filled_in(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_POOL, pool(name))
    assert made.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert made.spec.template.spec.expire_after == "720h"


def test_field_that_the_definition_does_not_know_leaves_no_trace(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_POOL, pool(name))
    same = cluster.kube.patch(Ref("NodePool", "", name), {"spec": {"colour": "blue"}})
    assert same.metadata == made.metadata


# --- merge patches ----------------------------------------------------------------------------------------------
def test_merge_patch_adds_replaces_and_removes(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name, labels={"a": "1", "b": "2"}))
    changed = cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": None, "b": "3", "c": "4"}}})
    assert dict(changed.metadata.labels) == {"b": "3", "c": "4"}


def test_merge_patch_makes_what_is_missing_and_ignores_what_to_remove_is_missing(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    changed = cluster.kube.patch(claim_ref(name), {"metadata": {"annotations": {"a": "1", "never": None}}})
    assert dict(changed.metadata.annotations) == {"a": "1"}
    emptied = cluster.kube.patch(claim_ref(name), {"metadata": {"annotations": None}})
    assert dict(emptied.metadata.annotations) == {}


def test_merge_patch_replaces_a_list_as_a_whole(cluster: Cluster, name: str) -> None:
    ref = Ref("Node", "", name)
    first, second = ({"key": f"kerf.test/{n}", "effect": "NoSchedule"} for n in ("one", "two"))
    cluster.kube.create(kinds.NODE, node(name))
    cluster.eventually(lambda: cluster.kube.get(ref).ready and not cluster.kube.get(ref).spec.taints)
    assert len(cluster.kube.patch(ref, {"spec": {"taints": [first, second]}}).spec.taints) == 2
    replaced = cluster.kube.patch(ref, {"spec": {"taints": [second]}})
    assert [taint.key for taint in replaced.spec.taints] == ["kerf.test/two"]
    assert cluster.kube.patch(ref, {"spec": {"taints": None}}).spec.taints == ()


def test_patch_that_changes_nothing_leaves_no_trace(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name, labels={"a": "1"}))
    same = cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}})
    assert same.metadata.resource_version == made.metadata.resource_version


# --- versions and generations -----------------------------------------------------------------------------------
def test_patch_of_an_old_version_conflicts(cluster: Cluster, name: str) -> None:
    old = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata.resource_version
    new = cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}}, resource_version=old)
    with pytest.raises(Conflict):
        cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "2"}}}, resource_version=old)
    with pytest.raises(Conflict):  # also where there would be nothing to change
        cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"a": "1"}}}, resource_version=old)
    assert int(new.metadata.resource_version) > int(old)


def test_old_version_conflicts_in_the_status_too(cluster: Cluster, name: str) -> None:
    old = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata.resource_version
    status = {"status": {"nodeName": "one"}}
    cluster.kube.patch(claim_ref(name), status, subresource="status", resource_version=old)
    with pytest.raises(Conflict):
        cluster.kube.patch(claim_ref(name), {"status": {"nodeName": "two"}}, subresource="status", resource_version=old)


def test_versions_grow_over_objects_and_kinds(cluster: Cluster, name: str) -> None:
    one = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    two = cluster.kube.create(kinds.NODE_POOL, pool(name))
    three = cluster.kube.patch(claim_ref(name), {"status": {"nodeName": "one"}}, subresource="status")
    versions = [int(each.metadata.resource_version) for each in (one, two, three)]
    assert versions == sorted(set(versions))


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


def test_spec_is_not_written_through_the_status(cluster: Cluster, name: str) -> None:
    ref = Ref("NodePool", "", name)
    cluster.kube.create(kinds.NODE_POOL, pool(name))
    both = {"spec": {"weight": 7}, "status": {"resources": {"cpu": "4"}}}
    changed = cluster.kube.patch(ref, both, subresource="status")
    assert changed.spec.weight == 0
    assert dict(changed.status.resources) == {"cpu": "4"}
    assert changed.metadata.generation == 1


def test_generation_follows_the_spec(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_POOL, pool(name))
    ref = Ref("NodePool", "", name)
    assert cluster.kube.patch(ref, {"metadata": {"annotations": {"a": "1"}}}).metadata.generation == 1
    assert cluster.kube.patch(ref, {"spec": {"weight": 7}}).metadata.generation == 2
    assert cluster.kube.patch(ref, {"spec": {"weight": 7}}).metadata.generation == 2
