"""Watches through the Kube port: in order, without a gap, with bookmarks, and told when they are too old."""

from __future__ import annotations

import pytest

from kerf.model import kinds
from kerf.ports import Change, Disconnected, Expired

from .kube_clusters import Cluster
from .kube_objects import FINALIZER, changes_of, claim, claim_ref, gone


def label(cluster: Cluster, name: str, value: int) -> None:
    cluster.kube.patch(claim_ref(name), {"metadata": {"labels": {"n": str(value)}}})


def labels_of(changes: list[Change]) -> list[str]:
    return [change.value.metadata.labels["n"] for change in changes if change.value is not None]


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


def test_watch_goes_on_where_the_last_one_ended(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    for number in range(3):
        label(cluster, name, number)
    before = changes_of(cluster, kinds.NODE_CLAIM, name, made.metadata.resource_version, 3)
    for number in range(3, 6):
        label(cluster, name, number)  # while nobody watches
    after = changes_of(cluster, kinds.NODE_CLAIM, name, before[-1].resource_version, 3)
    assert labels_of(before) + labels_of(after) == ["0", "1", "2", "3", "4", "5"]
    middle = changes_of(cluster, kinds.NODE_CLAIM, name, before[1].resource_version, 4)
    assert labels_of(middle) == ["2", "3", "4", "5"]


def test_list_and_the_watch_after_it_lose_nothing_and_repeat_nothing(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(f"{name}-0", labels={"set": name}))
    listing = cluster.kube.list(kinds.NODE_CLAIM)
    cluster.kube.create(kinds.NODE_CLAIM, claim(f"{name}-1", labels={"set": name}))
    watch, seen = cluster.kube.watch(kinds.NODE_CLAIM, listing.resource_version), list[str]()

    def enough() -> bool:
        changes = [c.value.metadata for c in watch.read(0.2) if c.value is not None]
        seen.extend(meta.name for meta in changes if meta.labels.get("set") == name)
        return f"{name}-2" in seen

    cluster.kube.create(kinds.NODE_CLAIM, claim(f"{name}-2", labels={"set": name}))
    cluster.eventually(enough)
    watch.close()
    assert [one.metadata.name for one in listing.items if one.metadata.labels.get("set") == name] == [f"{name}-0"]
    assert seen == [f"{name}-1", f"{name}-2"]


def test_deletion_that_waits_is_a_change_and_its_end_a_deletion(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name, finalizers=[FINALIZER]))
    cluster.kube.delete(claim_ref(name))
    cluster.kube.patch(claim_ref(name), {"metadata": {"finalizers": None}})
    assert gone(cluster.kube, claim_ref(name))
    waiting, ended = changes_of(cluster, kinds.NODE_CLAIM, name, made.metadata.resource_version, 2)
    assert (waiting.type, ended.type) == ("MODIFIED", "DELETED")
    assert waiting.value is not None
    assert ended.value is not None
    assert waiting.value.metadata.deleting
    assert ended.value.metadata.uid == made.metadata.uid


def test_successor_of_the_same_name_is_told_as_deleted_and_added(cluster: Cluster, name: str) -> None:
    first = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata
    cluster.kube.delete(claim_ref(name))
    second = cluster.kube.create(kinds.NODE_CLAIM, claim(name)).metadata
    seen = changes_of(cluster, kinds.NODE_CLAIM, name, first.resource_version, 2)
    told = [(change.type, change.value.metadata.uid) for change in seen if change.value is not None]
    assert told == [("DELETED", first.uid), ("ADDED", second.uid)]


def test_bookmark_lets_a_silent_kind_keep_up(cluster: Cluster, name: str) -> None:
    """A server that has nothing new for a kind may be silent; a list makes it ask etcd how far that is."""
    since = cluster.kube.list(kinds.STORAGE_CLASS).resource_version
    watch = cluster.kube.watch(kinds.STORAGE_CLASS, since)
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    versions = list[int]()

    def marked() -> bool:
        nonlocal watch
        cluster.kube.list(kinds.STORAGE_CLASS)
        try:
            changes = watch.read(0.2)
        except Disconnected:  # too long without a word
            watch = cluster.kube.watch(kinds.STORAGE_CLASS, since)
            return False
        assert all((change.type, change.value) == ("BOOKMARK", None) for change in changes)
        versions.extend(int(change.resource_version) for change in changes)
        return bool(versions) and versions[-1] >= int(made.metadata.resource_version)

    cluster.eventually(marked)
    watch.close()
    assert versions == sorted(versions)
    watch = cluster.kube.watch(kinds.STORAGE_CLASS, str(versions[-1]))
    assert all(change.type == "BOOKMARK" for change in watch.read(0.2))
    watch.close()


def test_watch_that_was_closed_is_disconnected(cluster: Cluster) -> None:
    watch = cluster.kube.watch(kinds.NODE_CLAIM, cluster.kube.list(kinds.NODE_CLAIM).resource_version)
    watch.close()
    watch.close()  # a repeat does no harm

    def ended() -> bool:
        try:
            watch.read(0.0)
        except Disconnected:
            return True
        return False

    cluster.eventually(ended)


def test_watch_from_an_old_version_expires(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    old = cluster.old_version()
    with pytest.raises(Expired):
        changes_of(cluster, kinds.NODE_CLAIM, "never", old, 1)


def test_after_expiry_a_new_list_goes_on(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    with pytest.raises(Expired):
        changes_of(cluster, kinds.NODE_CLAIM, "never", cluster.old_version(), 1)
    listing = cluster.kube.list(kinds.NODE_CLAIM)
    assert name in {one.metadata.name for one in listing.items}
    label(cluster, name, 1)
    assert labels_of(changes_of(cluster, kinds.NODE_CLAIM, name, listing.resource_version, 1)) == ["1"]
