"""Leases and events through the Kube port, on the sandbox and on a real API server alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import AlreadyExists, Conflict, Lease
from kerf_api import labels

from .kube_clusters import Cluster
from .kube_objects import claim, claim_ref

NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
SPACE = "kube-system"


def test_lease_is_guarded_by_its_version(cluster: Cluster, name: str) -> None:
    kube = cluster.kube
    assert kube.get_lease(SPACE, name) is None
    first = kube.put_lease(SPACE, name, Lease("one", acquired=NOW, renewed=NOW))
    assert first.resource_version
    assert first.uid
    assert kube.get_lease(SPACE, name) == first
    later = Lease("two", NOW, NOW + timedelta(seconds=1), 15, 1, first.resource_version)
    second = kube.put_lease(SPACE, name, later)
    assert (second.holder, second.transitions, second.renewed) == ("two", 1, NOW + timedelta(seconds=1))
    assert second.uid == first.uid
    with pytest.raises(Conflict):
        kube.put_lease(SPACE, name, Lease("one", NOW, NOW, 15, 2, first.resource_version))
    assert kube.get_lease(SPACE, name) == second


def test_lease_is_created_once(cluster: Cluster, name: str) -> None:
    cluster.kube.put_lease(SPACE, name, Lease("one"))
    with pytest.raises((Conflict, AlreadyExists)):
        cluster.kube.put_lease(SPACE, name, Lease("two"))


def test_lease_that_was_given_up_has_no_holder(cluster: Cluster, name: str) -> None:
    held = cluster.kube.put_lease(SPACE, name, Lease("one", acquired=NOW, renewed=NOW, transitions=3))
    given_up = cluster.kube.put_lease(SPACE, name, replace(held, holder="", duration_seconds=1))
    assert cluster.kube.get_lease(SPACE, name) == given_up
    assert (given_up.holder, given_up.duration_seconds, given_up.transitions) == ("", 1, 3)


def test_lease_that_was_deleted_is_made_anew_by_the_first_who_writes(cluster: Cluster, name: str) -> None:
    held = cluster.kube.put_lease(SPACE, name, Lease("one", acquired=NOW, renewed=NOW))
    cluster.delete_lease(SPACE, name)
    assert cluster.kube.get_lease(SPACE, name) is None
    anew = cluster.kube.put_lease(SPACE, name, replace(held, holder="two"))
    assert int(anew.resource_version) > int(held.resource_version)
    assert anew.uid != held.uid
    with pytest.raises(Conflict):
        cluster.kube.put_lease(SPACE, name, held)
    assert cluster.kube.get_lease(SPACE, name) == anew


def test_a_lease_bears_the_version_that_its_holder_goes_by(cluster: Cluster, name: str) -> None:
    held = cluster.kube.put_lease(
        SPACE, name, Lease("one", acquired=NOW, renewed=NOW, annotations={labels.KUBERNETES_VERSION: "1.35"})
    )
    assert cluster.kube.get_lease(SPACE, name) == held
    assert held.annotations == {labels.KUBERNETES_VERSION: "1.35"}
    later = cluster.kube.put_lease(SPACE, name, replace(held, annotations={labels.KUBERNETES_VERSION: "1.36"}))
    assert cluster.kube.get_lease(SPACE, name) == later
    assert later.annotations == {labels.KUBERNETES_VERSION: "1.36"}


def test_writing_a_lease_leaves_out_what_is_not_said(cluster: Cluster, name: str) -> None:
    held = cluster.kube.put_lease(SPACE, name, Lease("one", acquired=NOW, renewed=NOW))
    bare = cluster.kube.put_lease(SPACE, name, Lease("one", resource_version=held.resource_version))
    assert (bare.acquired, bare.renewed) == (None, None)


def test_leases_of_a_namespace_that_is_not_there(cluster: Cluster, name: str) -> None:
    assert cluster.kube.get_lease("never-there", name) is None
    with pytest.raises(Conflict):
        cluster.kube.put_lease("never-there", name, Lease("one"))


@pytest.mark.parametrize(
    "about", [Ref("NodeClaim", "", "{n}"), Ref("Pod", "default", "{n}"), Ref("Lease", SPACE, "{n}")], ids=str
)
def test_events_are_taken(cluster: Cluster, name: str, about: Ref) -> None:
    own = f"{name}-{about.kind.lower()}"
    ref = Ref(about.kind, about.namespace, own)
    uid = cluster.kube.create(kinds.NODE_CLAIM, claim(own)).metadata.uid
    for number in range(2):
        cluster.kube.emit(ref, uid, "Normal", "Tested", f"test {number} was here")
    cluster.eventually(lambda: len(cluster.events_about(ref)) == 2)
    one = cluster.events_about(ref)[0]
    assert (one["type"], one["reason"], one["count"]) == ("Normal", "Tested", 1)
    assert one["source"] == {"component": "karpenter"}
    assert one["involvedObject"]["uid"] == uid
    assert one["metadata"]["namespace"] == (about.namespace or "default")
    assert {event["message"] for event in cluster.events_about(ref)} == {"test 0 was here", "test 1 was here"}


def test_event_about_what_is_gone_is_taken(cluster: Cluster, name: str) -> None:
    cluster.kube.emit(claim_ref(name), "", "Warning", "Tested", "it has gone")
    cluster.eventually(lambda: len(cluster.events_about(claim_ref(name))) == 1)
