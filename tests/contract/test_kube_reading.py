"""Lists through the Kube port: complete, of one version, and narrowed by the selectors that are used."""

from __future__ import annotations

import zlib

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import Invalid

from .kube_clusters import Cluster
from .kube_objects import claim, claim_ref, node, pod, start_pod

#: More than one page of a list (500) holds.
SEVERAL_PAGES = 510


def test_list_names_the_version_it_shows(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    listing = cluster.kube.list(kinds.NODE_CLAIM)
    assert int(listing.resource_version) >= int(made.metadata.resource_version)
    assert made in listing.items


def test_list_of_nothing_names_its_version_too(cluster: Cluster, name: str) -> None:
    listing = cluster.kube.list(kinds.NODE_CLAIM, label_selector=f"never={name}")
    assert listing.items == ()
    assert int(listing.resource_version) > 0


def test_list_is_complete_and_in_order_over_its_pages(cluster: Cluster, name: str) -> None:
    names = [f"{name}-{number:04d}" for number in range(SEVERAL_PAGES)]
    for one in reversed(names):
        cluster.kube.create(kinds.NODE_CLAIM, claim(one, labels={"set": name}))
    found = cluster.kube.list(kinds.NODE_CLAIM, label_selector=f"set={name}").items
    assert [one.metadata.name for one in found] == names
    for one in names:
        cluster.kube.delete(claim_ref(one))
    assert cluster.kube.list(kinds.NODE_CLAIM, label_selector=f"set={name}").items == ()


def test_pods_on_a_node_are_listed_by_field(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE, node(name))
    for number in range(2):
        start_pod(cluster, f"{name}-{number}", name)
    cluster.kube.create(kinds.POD, pod(f"{name}-elsewhere", "no-such-node"))
    found = cluster.kube.list(kinds.POD, field_selector=f"spec.nodeName={name}").items
    assert [one.metadata.name for one in found] == [f"{name}-0", f"{name}-1"]
    unbound = cluster.kube.list(kinds.POD, field_selector="spec.nodeName=", label_selector=f"app={name}-elsewhere")
    assert [one.metadata.name for one in unbound.items] == [f"{name}-elsewhere"]
    assert cluster.kube.list(kinds.POD, field_selector="spec.nodeName=never-there").items == ()


def test_one_object_is_listed_by_name(cluster: Cluster, name: str) -> None:
    made = cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    cluster.kube.create(kinds.NODE_CLAIM, claim(f"{name}-2"))
    assert cluster.kube.list(kinds.NODE_CLAIM, field_selector=f"metadata.name={name}").items == (made,)


def test_one_namespace_is_listed(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))
    mine = {"label_selector": f"app={name}"}
    assert len(cluster.kube.list(kinds.POD, namespace="default", **mine).items) == 1
    assert cluster.kube.list(kinds.POD, namespace="kube-system", **mine).items == ()
    assert cluster.kube.list(kinds.POD, namespace="never-there", **mine).items == ()


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
    group = f"{name}-{zlib.crc32(selector.encode()):x}"
    for app in "abc":
        only = {"only": "yes"} if app == "c" else {}
        labels = {"set": group, "app": app, **only}
        cluster.kube.create(kinds.NODE_CLAIM, claim(f"{group}-{app}", labels=labels))
    found = cluster.kube.list(kinds.NODE_CLAIM, label_selector=selector.format(n=group)).items
    assert [one.metadata.labels["app"] for one in found] == expected


@pytest.mark.parametrize(
    ("fields", "labels"),
    [("spec.hostname=a", ""), ("", "a=b=c=("), ("", "a in b")],
    ids=["unknown field", "no sense", "no list"],
)
def test_selector_that_cannot_be_read_is_invalid_and_never_empty(cluster: Cluster, fields: str, labels: str) -> None:
    with pytest.raises(Invalid):
        cluster.kube.list(kinds.POD, field_selector=fields, label_selector=labels)


def test_what_is_read_is_as_new_as_what_was_written(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.NODE_CLAIM, claim(name))
    for number in range(20):
        written = cluster.kube.patch(claim_ref(name), {"metadata": {"annotations": {"a": str(number)}}})
        assert cluster.kube.get(claim_ref(name)) == written
        assert written in cluster.kube.list(kinds.NODE_CLAIM).items


def test_every_kind_that_may_be_watched_can_be_listed_and_watched(cluster: Cluster) -> None:
    for kind in kinds.KNOWN:
        watch = cluster.kube.watch(kind, cluster.kube.list(kind).resource_version)
        try:
            assert all(change.type in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") for change in watch.read(0.0))
        finally:
            watch.close()


def test_ref_of_a_listed_object_leads_to_it(cluster: Cluster, name: str) -> None:
    cluster.kube.create(kinds.POD, pod(name, "no-such-node"))
    (listed,) = cluster.kube.list(kinds.POD, label_selector=f"app={name}").items
    assert cluster.kube.get(Ref.of(kinds.POD, listed)).metadata.uid == listed.metadata.uid
