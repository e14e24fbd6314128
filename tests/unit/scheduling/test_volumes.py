"""Volumes pin zones, offer alternatives, or cannot be had."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.storage import OLD_CLASS, PersistentVolume, PersistentVolumeClaim, StorageClass
from kerf.provisioning.missing import cause_of, patches_of
from kerf.scheduling import solve as module
from kerf.scheduling.solve import PodRefusal, SolveOptions, solve
from kerf.scheduling.work import WORK_BUDGET, Work
from kerf_api import labels
from kerf_api.v1.meta import OwnerReference, decode
from tests.unit.scheduling import worlds as w


def claim(name: str = "c", volume: str = "", storage_class: str | None = None) -> PersistentVolumeClaim:
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = {"name": name, "namespace": "default", "annotations": done}
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return decode(PersistentVolumeClaim, {"metadata": meta, "spec": spec})


def volume(name: str, *zones: str, key: str = labels.ZONE, **spec: Any) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [z]}]} for z in zones]
    required = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return decode(PersistentVolume, {"metadata": {"name": name}, "spec": {**required, **spec}})


def storage_class(name: str, mode: str = "WaitForFirstConsumer", *zones: str) -> StorageClass:
    topologies = [{"matchLabelExpressions": [{"key": labels.ZONE, "values": list(zones)}]}] if zones else []
    manifest = {"metadata": {"name": name}, "volumeBindingMode": mode, "allowedTopologies": topologies}
    return decode(StorageClass, manifest)


def using(name: str = "p", volumes: tuple[str, ...] = ("c",), **spec: Any) -> Any:
    rows = [{"name": v, "persistentVolumeClaim": {"claimName": v}} for v in volumes]
    return w.pod(name, volumes=rows, **spec)


def test_a_bound_volume_pins_the_zone() -> None:
    (new,) = w.solved(w.pool(), claim(volume="v"), volume("v", "z3"), using()).new_nodes
    assert new.zones == ("z3",)
    elsewhere = using(nodeSelector={labels.ZONE: "z1"})
    assert w.solved(w.pool(), claim(volume="v"), volume("v", "z3"), elsewhere).unplaced


def test_allowed_topologies_of_a_class_that_waits() -> None:
    waits = storage_class("s", "WaitForFirstConsumer", "z2")
    (new,) = w.solved(w.pool(), claim(storage_class="s"), waits, using()).new_nodes
    assert new.zones == ("z2",)


def test_a_local_volume_does_not_pin_the_host() -> None:
    pinned = volume("v", "old-node", key=labels.HOSTNAME)
    local = volume("v", "old-node", key=labels.HOSTNAME, local={"path": "/x"})
    assert w.solved(w.pool(), claim(volume="v"), pinned, using()).unplaced
    assert w.solved(w.pool(), claim(volume="v"), local, using()).new_nodes


def test_two_volumes_meet_in_the_only_zone_they_share() -> None:
    both = [claim("a", "va"), claim("b", "vb"), volume("va", "z1", "z2"), volume("vb", "z2", "z3")]
    (new,) = w.solved(w.pool(), both, using(volumes=("a", "b"))).new_nodes
    assert new.zones == ("z2",)


def test_anti_affine_pods_with_alternatives_take_different_zones() -> None:
    objects = [claim(n, f"v{n}") for n in "ab"] + [volume(f"v{n}", "z1", "z2") for n in "ab"]
    shun = w.between("podAntiAffinity", labels.ZONE)
    pods = [using(n, (n,), labels={"app": "web"}, affinity=shun) for n in "ab"]
    assert w.counts(w.solved(w.pool(), objects, pods)) == [1, 1]


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [claim()],
        [claim(storage_class="s")],
        [claim(storage_class="s"), storage_class("s", "Immediate")],
        [claim(volume="lost")],
    ],
)
def test_a_volume_that_cannot_be_had_stops_only_its_pod(objects: list[Any]) -> None:
    solution = w.solved(w.pool(), objects, using(), w.pod("other"))
    assert list(solution.unplaced) == ["default/p"]


def test_volumes_that_have_no_node_in_common_are_nowhere() -> None:
    """Not on a node without a zone either."""
    bare = w.node("n")
    bare = replace(bare, metadata=replace(bare.metadata, labels={labels.HOSTNAME: "n"}))
    both = [claim("a", "va"), claim("b", "vb"), volume("va", "z1"), volume("vb", "z2"), using(volumes=("a", "b"))]
    (refusal,) = w.solved(w.pool(), bare, *both).unplaced.values()
    assert refusal.text == 'persistentvolumeclaim "b" and its other volumes have no node in common'


def test_the_old_annotation_of_the_class_counts_before_the_field() -> None:
    own = claim(storage_class="missing")
    annotations = {OLD_CLASS: "s"}
    own = replace(own, metadata=replace(own.metadata, annotations=annotations))
    (new,) = w.solved(w.pool(), own, storage_class("s", "WaitForFirstConsumer", "z2"), using()).new_nodes
    assert new.zones == ("z2",)


@pytest.mark.parametrize(
    ("notes", "path"),
    [
        ({}, "spec.storageClassName"),
        ({OLD_CLASS: "gone"}, 'metadata.annotations["volume.beta.kubernetes.io/storage-class"]'),
    ],
)
def test_a_class_that_is_missing_is_named_by_the_field_that_counts(notes: dict[str, str], path: str) -> None:
    own = claim(storage_class="s" if notes else "gone")
    own = replace(own, metadata=replace(own.metadata, annotations=notes))
    snapshot = w.world(w.pool(), own, *([storage_class("s")] if notes else []), using())
    cause, (patch,) = cause_of(snapshot, using()), patches_of(snapshot, using())
    assert cause is not None
    assert cause.fields[1].path == path
    assert patch.text == f"create StorageClass gone, or correct {path} of PersistentVolumeClaim default/c"


@pytest.mark.parametrize(("uid", "controller"), [("uid-default-p", True), ("uid-default-p", False), ("other", True)])
def test_the_claim_of_an_ephemeral_volume_is_the_pods_own(uid: str, controller: bool) -> None:
    source = {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}
    pod, taken = w.pod("p", volumes=[{"name": "c", "ephemeral": source}]), claim("p-c", storage_class="s")
    owners = (OwnerReference(uid=uid, controller=controller),)
    taken = replace(taken, metadata=replace(taken.metadata, owner_references=owners))
    done = w.solved(w.pool(), taken, storage_class("s"), pod)
    if uid == "uid-default-p" and controller:
        assert done.new_nodes
        return
    assert done.unplaced["default/p"].text.startswith('persistentvolumeclaim "p-c" was not created for the pod')


# --- labels of zone and region -------------------------------------------------------------------------------------
OLD = "failure-domain.beta.kubernetes.io"


def labelled(name: str = "v", **more: Any) -> PersistentVolume:
    own = {"topology.kubernetes.io/zone": "z3"} if not more else {k.replace("OLD", OLD): v for k, v in more.items()}
    return decode(PersistentVolume, {"metadata": {"name": name, "labels": own}, "spec": {}})


@pytest.mark.parametrize(
    ("own", "zones"),
    [
        ({"topology.kubernetes.io/zone": "z3"}, {"z3"}),
        ({f"{OLD}/zone": "z3"}, {"z3"}),
        ({"topology.kubernetes.io/zone": "z3__z2"}, {"z2", "z3"}),
        ({"topology.kubernetes.io/zone": "z3__ z2 "}, {"z2", "z3"}),
        ({"topology.kubernetes.io/zone": "z3__"}, {"z1", "z2", "z3"}),
        ({"topology.kubernetes.io/zone": ""}, {"z1", "z2", "z3"}),
        ({"topology.kubernetes.io/zone": "z3", f"{OLD}/zone": "z2__z3"}, {"z3"}),
        ({"topology.kubernetes.io/zone": "z3", f"{OLD}/zone": "z2"}, set()),
        ({"topology.ebs.csi.aws.com/zone": "z3"}, {"z1", "z2", "z3"}),
        ({"example.com/zone": "z3"}, {"z1", "z2", "z3"}),
    ],
)
def test_the_labels_of_a_volume_say_where_it_is(own: dict[str, str], zones: set[str]) -> None:
    done = w.solved(w.pool(), claim(volume="v"), labelled(**own), using())
    assert {zone for node in done.new_nodes for zone in node.zones} == zones


def test_a_node_without_zone_and_region_takes_a_labelled_volume() -> None:
    """The kube-scheduler asks for the labels only where the node has one of them."""
    bare = w.node("n")
    there = {key: value for key, value in bare.metadata.labels.items() if key != labels.ZONE}
    bare = replace(bare, metadata=replace(bare.metadata, labels=there))
    world = (claim(volume="v"), labelled(), using())
    assert w.solved(bare, *world).placed == {"default/p": "node/n"}
    regional = replace(bare, metadata=replace(bare.metadata, labels={**there, labels.REGION: "r"}))
    assert w.solved(regional, *world).unplaced
    assert w.solved(w.node("n", "z3"), *world).placed


@pytest.mark.parametrize("terms", [[], [{}], [{"matchExpressions": []}], [{}, {"matchExpressions": []}]])
def test_a_volume_whose_node_affinity_matches_nothing_can_be_nowhere(terms: list[Any]) -> None:
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    lost = decode(PersistentVolume, {"metadata": {"name": "v"}, "spec": spec})
    (refusal,) = w.solved(w.pool(), claim(volume="v"), lost, using()).unplaced.values()
    assert "can be on no node" in refusal.text


def test_a_volume_is_compared_with_labels_alone() -> None:
    """The kube-scheduler reads no field in the node affinity of a volume."""
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": [w.by_name("In", "another")]}}}
    there = decode(PersistentVolume, {"metadata": {"name": "v"}, "spec": spec})
    assert w.solved(w.node("n"), claim(volume="v"), there, using()).placed == {"default/p": "node/n"}


# --- claims for one pod ---------------------------------------------------------------------------------------------
def sole(mode: str = "ReadWriteOncePod") -> list[Any]:
    one = claim(volume="v")
    return [replace(one, spec=replace(one.spec, access_modes=(mode,))), volume("v", "z1")]


def test_no_second_pod_gets_a_node_for_a_claim_that_is_for_one_pod() -> None:
    for users, nodes in ((using("a", node="n"), 0), (using("a"), 1)):
        done = w.solved(w.pool(), w.node("n"), *sole(), users, using("b", cpu="5"))
        assert len(done.new_nodes) == 0 if nodes == 0 else done.placed == {"default/a": "node/n"}
        assert str(done.unplaced["default/b"]) == 'persistentvolumeclaim "c" is ReadWriteOncePod: pod default/a uses it'
    assert not w.solved(w.pool(), w.node("n"), *sole("ReadWriteOnce"), using("a", node="n"), using("b")).unplaced


def test_a_claim_for_one_pod_is_free_when_its_pod_has_ended_or_moves() -> None:
    user = using("a", node="n")
    ended = replace(user, status=replace(user.status, phase="Succeeded"))
    assert not w.solved(w.pool(), w.node("n"), *sole(), ended, using("b")).unplaced
    snapshot = w.world(w.pool(), w.node("n"), w.node("m"), *sole(), user)
    assert solve(snapshot, [user], SolveOptions(exclude=frozenset({"node/n"}))).placed == {"default/a": "node/m"}


def test_a_pod_that_is_expected_on_a_node_has_its_claim() -> None:
    user = using("a")
    user = replace(user, status=replace(user.status, nominated_node_name="n"))
    assert w.solved(w.pool(), w.node("n"), *sole(), user, using("b")).unplaced.keys() == {"default/b"}
    assert w.solved(w.pool(), *sole(), user).new_nodes


@pytest.mark.parametrize("nowhere", [["a"], ["a", "b"], ["a", "a1", "a2", "b"]])
def test_a_claim_for_one_pod_is_for_the_first_that_has_a_place(nowhere: list[str]) -> None:
    """The others come first, and no node has the label that they ask for."""
    first = [using(name, priority=5, nodeSelector={"no": "such"}) for name in nowhere]
    done = w.solved(w.pool(), *sole(), *first, using("c"), using("d"))
    assert [node.pods for node in done.new_nodes] == [("default/c",)]
    assert all('label "no" does not have known values' in str(done.unplaced[pod.key]) for pod in first)
    assert "pod default/c uses it" in str(done.unplaced["default/d"])


def test_a_claim_for_one_pod_costs_no_other_pod_its_place() -> None:
    """Where no work is left for the question whose it is, it stays with the first."""
    idle = using("a", priority=5, nodeSelector={"no": "such"})
    snapshot = w.world(w.pool(), *sole(), idle, using("c"), *w.replicas(20, "web", "1"))
    whole = Work()
    solve(snapshot, list(snapshot.pods.values()), work=whole)
    parts = [Work(most=whole.whole * share // 20) for share in range(10, 21)]
    found = [solve(snapshot, list(snapshot.pods.values()), work=work).unplaced.keys() for work in parts]
    assert [*map(set, found)] == sorted(map(set, found), key=len, reverse=True)
    assert {frozenset(one) for one in found} == {frozenset({"default/a", "default/c"}), frozenset({"default/a"})}


@pytest.mark.parametrize(("second", "kept"), [("web-1", True), ("web-2", False)])
def test_a_claim_for_one_pod_leaves_over_no_other_pods(
    monkeypatch: pytest.MonkeyPatch, second: str, kept: bool
) -> None:
    """As many as before are left over, but another one."""
    solved, left = module._solved, iter((["web-1", "web-3"], [second]))

    def marked(*given: Any) -> Any:
        asked, solution = solved(*given)
        over = {f"default/{name}": PodRefusal(WORK_BUDGET, "") for name in next(left)}
        return asked, dataclasses.replace(solution, unplaced={**solution.unplaced, **over})

    monkeypatch.setattr(module, "_solved", marked)
    idle = using("a", priority=5, nodeSelector={"no": "such"})
    done = w.solved(w.pool(), *sole(), idle, using("c"), *w.replicas(4, "web", "1"))
    assert ("default/web-3" not in done.unplaced, "default/web-2" not in done.unplaced) == (kept, True)


def test_a_pod_on_a_node_has_a_claim_for_one_pod_whatever_becomes_of_it() -> None:
    user = using("a", node="n", nodeSelector={"no": "such"})
    snapshot = w.world(w.pool(), w.node("n"), *sole(), user, using("b"))
    solution = solve(snapshot, list(snapshot.pods.values()), SolveOptions(exclude=frozenset({"node/n"})))
    assert solution.unplaced.keys() == {"default/a", "default/b"}


def test_the_more_important_pod_has_a_claim_for_one_pod() -> None:
    done = w.solved(w.pool(), *sole(), using("a"), using("b", priority=5), using("z", volumes=("other",)))
    assert done.unplaced.keys() == {"default/a", "default/z"}
