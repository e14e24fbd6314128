"""How many volumes a node can attach: corner cases beside the catalogue's (`test_catalogue_attach_limits.py`)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from kerf.model.plan import Nomination
from kerf.scheduling.nodes.volume_usage import Attaching, attaching
from kerf.scheduling.placing.as_kube_scheduler import KubeSchedulerOrder
from kerf.scheduling.solve import Solution, SolveOptions, context_of, solve
from kerf_api.v1.meta import decode
from tests.referee import violations
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_catalogue_volumes import claim, ephemeral, using, waiting

EBS = "ebs.csi.aws.com"
DISKS = waiting("s")


def csi_node(name: str = "n", **counts: int | None) -> CSINode:
    """A node whose drivers have these limits: `ebs` is EBS, None is no limit."""
    rows = [{"name": EBS if d == "ebs" else f"{d}.csi", "allocatable": {"count": n}} for d, n in counts.items()]
    return decode(CSINode, {"metadata": {"name": name}, "spec": {"drivers": rows}})


def disk(name: str) -> PersistentVolumeClaim:
    return claim(name, storage_class="s")


def on(node: str, name: str, *claims: str, **spec: Any) -> Pod:
    """A pod that runs on a node."""
    return using(name, *claims, node=node, **spec)


def answer(*objects: Any, **facts: Any) -> Solution:
    snapshot = w.world(DISKS, *objects, **facts)
    pods = list(snapshot.pods.pending.values())
    solution = solve(snapshot, pods)
    assert violations(snapshot, pods, solution) == []
    return solution


def placed(*objects: Any, **facts: Any) -> list[str]:
    """Names of the pending pods that go to a node that is there."""
    return [key.split("/")[1] for key in answer(*objects, **facts).placed]


# --- one class ----------------------------------------------------------------------------------------------------
def test_pods_with_a_claim_each_bring_the_same() -> None:
    """So they stay one class, whatever the names of their claims."""
    objects = [w.node("n"), csi_node(ebs=5), *(disk(f"c{i}") for i in range(4))]
    snapshot = w.world(DISKS, *objects, [using(f"p{i}", f"c{i}") for i in range(4)])
    found = attaching(snapshot, list(snapshot.pods.pending.values()), context_of(snapshot).places.attached)
    assert found == {f"default/p{i}": Attaching(((EBS, 1),), ()) for i in range(4)}


def test_pods_that_leave_their_node_bring_the_same_too() -> None:
    """The node that they leave has their volumes until they have left it."""
    old = [on("old", f"p{i}", f"c{i}") for i in range(3)]
    nodes = [w.node("old"), w.node("n"), csi_node("old", ebs=3), csi_node(ebs=3)]
    snapshot = w.world(DISKS, nodes, old, *(disk(f"c{i}") for i in range(3)))
    for exclude in (frozenset(("node/old",)), frozenset[str]()):
        places = context_of(snapshot).places_for(old, exclude)
        assert set(attaching(snapshot, old, places.attached).values()) == {Attaching(((EBS, 1),), ())}


def test_without_limits_nothing_is_told_apart() -> None:
    snapshot = w.world(DISKS, w.node("n"), csi_node(ebs=None), disk("c"), using("p", "c"))
    assert attaching(snapshot, list(snapshot.pods.pending.values()), context_of(snapshot).places.attached) == {}


# --- what counts --------------------------------------------------------------------------------------------------
def test_what_is_shared_is_counted_where_it_is() -> None:
    """The pod that shares a volume goes to the full node that has it; the other needs a node of its own."""
    objects = [w.pool(), w.node("n"), csi_node(ebs=1), disk("c"), disk("d"), on("n", "old", "c")]
    solution = answer(*objects, using("a", "c"), using("b", "d"))
    assert (list(solution.placed), len(solution.new_nodes)) == (["default/a"], 1)


def test_pods_of_one_pass_share_a_volume() -> None:
    """Two places are left: one for what all share, one for the own volume of the first."""
    claims = [disk("all"), *(disk(f"c{i}") for i in range(3))]
    pods = [using(f"p{i}", "all", f"c{i}") for i in range(3)]
    assert placed(w.pool(), w.node("n"), csi_node(ebs=2), claims, pods) == ["p0"]
    assert placed(w.pool(), w.node("n"), csi_node(ebs=3), claims, pods) == ["p0", "p1"]


def test_one_claim_twice_in_a_pod_is_one_volume() -> None:
    assert placed(w.pool(), w.node("n"), csi_node(ebs=1), disk("c"), using("p", "c", "c")) == ["p"]


@pytest.mark.parametrize(("change", "goes"), [({}, False), ({"phase": "Succeeded"}, True), ({"phase": "Failed"}, True)])
def test_pods_that_are_done_have_let_go(change: dict[str, str], goes: bool) -> None:
    old = on("n", "old", "c")
    old = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, **change))
    assert bool(placed(w.pool(), w.node("n"), csi_node(ebs=1), disk("c"), disk("d"), old, using("p", "d"))) == goes


def test_pods_on_their_way_out_have_not() -> None:
    old = on("n", "old", "c")
    old = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, deletion_timestamp=w.NOW))
    assert placed(w.pool(), w.node("n"), csi_node(ebs=1), disk("c"), disk("d"), old, using("p", "d")) == []


def test_each_driver_has_its_own_limit() -> None:
    other = msgspec.structs.replace(waiting("t"), provisioner="files.csi")
    claims = [disk("a"), disk("b"), claim("x", storage_class="t"), claim("y", storage_class="t")]
    pods = [using(name, name) for name in "abxy"]
    assert placed(w.pool(), w.node("n"), csi_node(ebs=1, files=None), other, claims, pods) == ["a", "x", "y"]
    assert placed(w.pool(), w.node("n"), csi_node(ebs=2, files=1), other, claims, pods) == ["a", "b", "x"]


def test_a_node_with_too_many_takes_who_brings_no_more() -> None:
    """As the kube-scheduler has it; a node whose limit was lowered is one."""
    there = [on("n", "old", "c", "d")]
    pods = [using("a", "c"), w.pod("b"), using("e", "e")]
    objects = [w.pool(), w.node("n"), csi_node(ebs=1), disk("c"), disk("d"), disk("e"), there, pods]
    assert placed(*objects) == ["a", "b"]


def test_a_limit_of_nothing_and_nonsense() -> None:
    for count in (0, -3):
        assert placed(w.pool(), w.node("n"), csi_node(ebs=count), disk("c"), using("p", "c")) == []
    assert placed(w.pool(), w.node("n"), csi_node(ebs=1 << 62), disk("c"), using("p", "c")) == ["p"]


def test_a_bound_volume_is_its_own_drivers_and_a_missing_one_its_classs() -> None:
    """The class of a claim may have been changed since; a pod keeps its place while its volume cannot be seen."""
    volume = decode(PersistentVolume, {"metadata": {"name": "v"}, "spec": {"csi": {"driver": "other.csi"}}})
    held = [claim("c", "v", "s"), disk("d"), on("n", "old", "c")]
    assert placed(w.pool(), w.node("n"), csi_node(ebs=1), volume, held, using("p", "d")) == ["p"]
    assert placed(w.pool(), w.node("n"), csi_node(ebs=1), held, using("p", "d")) == []


def test_an_ephemeral_volume_counts_by_its_claim() -> None:
    """Whether the claim has been made yet or not, and in the pod's own namespace."""
    running = ephemeral("old", "s", node="n")
    made = [claim("old-scratch", storage_class="s")]
    for claims in ([], made):
        assert placed(w.pool(), w.node("n"), csi_node(ebs=1), running, claims, ephemeral("p", "s")) == []
    assert placed(w.pool(), w.node("n"), csi_node(ebs=2), running, made, ephemeral("p", "s")) == ["p"]


# --- who asks -----------------------------------------------------------------------------------------------------
def test_a_node_that_is_full_is_told_of() -> None:
    """Nodes without room for other reasons are not counted."""
    nodes = [w.node("n"), w.node("m", cpu="100m"), csi_node(ebs=1), csi_node("m", ebs=0)]
    held = [disk("c"), disk("d"), on("n", "old", "c")]
    snapshot = w.world(w.pool(limits={"cpu": "0"}), DISKS, nodes, held, using("p", "d", cpu="1"))
    words = "no existing node has capacity for it "
    words += "(1 would, but cannot attach its volumes within the limit of ebs.csi.aws.com)"
    for open_new, end in ((False, ""), (True, " and no NodePool can make one")):
        refusal = solve(snapshot, list(snapshot.pods.pending.values()), SolveOptions(open_new=open_new)).unplaced[
            "default/p"
        ]
        assert refusal.text == words + end


def test_a_promise_is_not_kept_when_the_limit_is_known() -> None:
    """Three were sent to a node before it said that it can attach two volumes."""
    pods = [using(f"p{i}", f"c{i}") for i in range(3)]
    claims = [disk(f"c{i}") for i in range(3)]
    sent = tuple(Nomination(pod.metadata.uid, "node/n", w.NOW) for pod in pods)
    solution = answer(w.pool(), w.node("n"), csi_node(ebs=2), claims, pods, nominations=sent)
    assert (len(solution.placed), len(solution.new_nodes)) == (2, 1)


def test_nodes_that_pods_leave_have_room_for_others() -> None:
    """A simulation moves one pod off the full node, and another may come."""
    objects = [w.node("n"), csi_node(ebs=1), disk("c"), disk("d"), on("n", "old", "c"), using("p", "d")]
    snapshot = w.world(w.pool(), DISKS, w.node("m", cpu="500m"), csi_node("m", ebs=1), *objects)
    moving = [snapshot.pods["default/old"], snapshot.pods["default/p"]]
    assert solve(snapshot, moving).placed == {"default/old": "node/m", "default/p": "node/n"}


@pytest.mark.parametrize("scattered", [None, KubeSchedulerOrder])
def test_consolidation_leaves_no_more_volumes_than_can_be(scattered: type[KubeSchedulerOrder] | None) -> None:
    """The pods of a node that goes: one fits elsewhere, the other is one volume too many."""
    old = [on("old", f"p{i}", f"c{i}") for i in range(2)]
    nodes = [w.node("old"), w.node("n"), csi_node("old", ebs=9), csi_node(ebs=2)]
    there = [disk("c"), on("n", "there", "c"), *(disk(f"c{i}") for i in range(2))]
    snapshot = w.world(w.pool(), DISKS, nodes, old, there)
    done = solve(snapshot, old, SolveOptions(exclude=frozenset(("node/old",)), scattered=scattered))
    assert (len(done.placed), len(done.new_nodes)) == (1, 1)
    stay = solve(snapshot, old, SolveOptions(exclude=frozenset(("node/old",)), scattered=scattered, open_new=False))
    assert len(stay.unplaced) == 1
    assert "ebs.csi.aws.com" in next(iter(stay.unplaced.values())).text
