"""Nodes that exist or are on their way: behaviours 70 to 85 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Node
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

READY_SOON = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
BOOTING = {"key": "boot", "value": "x", "effect": "NoSchedule"}


def on_its_way(*pods: Any, pool: Any = None, zone: str = "") -> tuple[Any, NodeClaim]:
    """The claim made and launched for pods (the first of them, if several), and its pool."""
    pool = pool if pool is not None else w.pool()
    rows = list(pods) or [w.pod("first", nodeSelector={labels.ZONE: zone} if zone else {})]
    done = c.run(pool, rows)
    return pool, c.launched(done.claims()[0], done.nodes[0], done.snapshot)


def running(pod: Any, claim: NodeClaim) -> Any:
    return c.bound(pod, claim.name)


@pytest.mark.parametrize("stage", ["claim", "node"])
def test_070_a_node_that_is_not_ready_yet_takes_the_next_pod(stage: str) -> None:
    """A launched claim with or without its Node; no second claim is made."""
    pool, claim = on_its_way()
    node = [c.node_of(claim, initialized=False)] if stage == "node" else []
    done = c.run(pool, claim, node, w.pod("p"))
    assert done.placed == {"p": claim.name}


def test_071_a_node_on_its_way_serves_its_zone_only() -> None:
    """In z2: one that may go to z1 or z2 goes there, one that may go to z1 or z3 gets another node."""
    pool, claim = on_its_way(zone="z2")
    for zones, there in ((["z1", "z2"], True), (["z1", "z3"], False)):
        done = c.run(pool, claim, w.pod("p", **c.wants((labels.ZONE, "In", zones))))
        assert (done.placed == {"p": claim.name}) == there
        assert (len(done.nodes) == 0) == there


def test_072_a_full_node_on_its_way_takes_no_more() -> None:
    """1001m of its 1900m are promised; another CPU does not fit."""
    first = w.pod("first", "1001m")
    pool, claim = on_its_way(first)
    node = c.node_of(claim, initialized=False)
    done = c.run(pool, claim, node, running(first, claim), w.pod("p", "1"))
    assert len(done.nodes) == 1
    assert done.placed == {}


def test_073_a_node_of_the_other_architecture_is_no_place() -> None:
    """An arm64 pod gets its own."""
    pool, claim = on_its_way(w.pod("first", nodeSelector={labels.ARCH: "amd64"}))
    done = c.run(pool, claim, w.pod("p", nodeSelector={labels.ARCH: "arm64"}))
    assert done.types() == ["arm"]


def test_074_a_node_that_is_deleted_is_no_place() -> None:
    """It is gone, or going."""
    pool, claim = on_its_way()
    assert c.run(pool, w.pod("p")).node
    going = msgspec.structs.replace(claim.metadata, deletion_timestamp=w.NOW)
    assert c.run(pool, msgspec.structs.replace(claim, metadata=going), w.pod("p")).node


def test_075_batches_leave_at_most_one_node_with_room() -> None:
    """Pods of one CPU in several batches, on nodes that hold four of them."""
    roomy = (c.machine("five", 5, 8, pods=20),)
    story = c.Story.of(w.pool(), catalogue=roomy)
    for number, size in enumerate((3, 1, 6, 2, 5)):
        assert not story.batch(w.replicas(size, f"b{number}", "1")).pending
    loads = [sum(p.spec.node_name == n for p in story.running()) for n in {p.spec.node_name for p in story.running()}]
    assert sum(loads) == 17
    assert sum(load < 4 for load in loads) <= 1


def test_076_not_ready_blocks_only_a_node_that_was_ready_once() -> None:
    """While the node starts the taint will go; later it says that something is wrong."""
    pool, claim = on_its_way()
    for initialized in (False, True):
        done = c.run(pool, claim, c.node_of(claim, initialized=initialized, taints=[READY_SOON]), w.pod("p"))
        assert (done.placed == {"p": claim.name}) == (not initialized)
        assert (len(done.nodes) == 1) == initialized


def test_077_a_startup_taint_blocks_only_a_node_that_has_started() -> None:
    """It re-appears on a node that was initialised: not usable."""
    pool, claim = on_its_way(pool=w.pool(startupTaints=[BOOTING]))
    for initialized in (False, True):
        done = c.run(pool, claim, c.node_of(claim, initialized=initialized, taints=[BOOTING]), w.pod("p"))
        assert (done.placed == {"p": claim.name}) == (not initialized)


def test_what_a_node_starts_with_hides_no_domain() -> None:
    """Its pod counts for a spread that honours taints, so the next one has its place in the other zone."""
    own: dict[str, Any] = {
        "labels": {"app": "web"},
        "topologySpreadConstraints": [w.spread(nodeTaintsPolicy="Honor", minDomains=2)],
    }
    pool = w.pool(startupTaints=[BOOTING])
    first = w.pod("first", nodeSelector={labels.ZONE: "z1"}, **own)
    _, claim = on_its_way(first, pool=pool)
    node = c.node_of(claim, initialized=False, taints=[BOOTING])
    done = c.run(pool, claim, node, running(first, claim), w.pod("p", **own))
    assert [new.zones for new in done.nodes] == [("z2",)], done.nodes


def test_078_an_unknown_taint_keeps_pods_away() -> None:
    """Except those that tolerate it."""
    pool, claim = on_its_way()
    node = c.node_of(claim, taints=[BOOTING])
    assert len(c.run(pool, claim, node, w.pod("p")).nodes) == 1
    tolerant = w.pod("p", tolerations=[{"key": "boot", "operator": "Exists"}])
    assert c.run(pool, claim, node, tolerant).placed == {"p": claim.name}


def test_079_a_device_that_the_kubelet_does_not_show_yet_counts() -> None:
    """Until the node is initialised the claim's promise holds."""
    pool, claim = on_its_way(w.pod("first", requests={c.GPU_A: "1"}))
    for initialized in (False, True):
        node = c.node_of(claim, initialized=initialized, **{c.GPU_A: "0"})
        done = c.run(pool, claim, node, w.pod("p", requests={c.GPU_A: "1"}))
        assert (done.placed == {"p": claim.name}) == (not initialized)


@pytest.mark.parametrize("with_node", [True, False], ids=["node", "claim"])
def test_080_the_initialised_node_comes_first(with_node: bool) -> None:
    """One among a hundred that are still starting."""
    pool, claim = on_its_way()
    story: list[Any] = [pool]
    for number in range(100):
        name = f"{number:03}"
        meta = msgspec.structs.replace(claim.metadata, name=name, uid=f"uid-{name}")
        status = msgspec.structs.replace(claim.status, provider_id=f"aws:///z1/i-{name}")
        one = msgspec.structs.replace(claim, metadata=meta, status=status)
        story.append(one)
        if number == 57 or with_node:
            story.append(c.node_of(one, initialized=number == 57))
    assert c.run(story, w.pod("p")).placed == {"p": "057"}


def test_081_an_unmanaged_node_is_used_before_one_is_launched() -> None:
    """A hundred small pods on a large node without a claim."""
    node = w.node("theirs", cpu="100", memory="100Gi")
    done = c.run(w.pool(), node, w.replicas(100, "p", "10m"))
    assert set(done.placed.values()) == {"node/theirs"}
    assert done.nodes == ()


def test_082_a_node_without_a_zone_is_no_place_for_who_wants_one() -> None:
    """The pool serves the pod."""
    bare = w.node("bare")
    own = {k: v for k, v in bare.metadata.labels.items() if k != labels.ZONE}
    bare = Node(metadata=msgspec.structs.replace(bare.metadata, labels=own), spec=bare.spec, status=bare.status)
    assert c.run(w.pool(), bare, w.pod("p", nodeSelector={labels.ZONE: "z1"})).node.zones == ("z1",)
    assert c.run(w.pool(), bare, w.pod("p")).placed == {"p": "node/bare"}


def test_083_a_host_port_is_had_once_per_node() -> None:
    """Two pods that want it get two nodes, one of them may be there already."""
    port: dict[str, Any] = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    assert c.run(w.pool(), w.replicas(2, "p", **port)).sizes() == [1, 1]
    done = c.run(w.pool(), w.node("n"), w.pod("old", node="n", **port), w.pod("p", **port))
    assert len(done.nodes) == 1


def test_084_a_spread_goes_on_where_it_stopped() -> None:
    """Four pods over three zones, then five more on the same nodes."""
    story = c.Story.of(w.pool())
    story.batch(c.web(4, w.spread(), name="a"))
    assert story.counts() == [1, 1, 2]
    assert story.batch(c.web(5, w.spread(), name="b")).nodes == ()
    assert story.counts() == [3, 3, 3]


def test_085_a_spread_over_hosts_takes_a_node_each() -> None:
    """Four, then five more."""
    story = c.Story.of(w.pool())
    assert story.batch(c.web(4, w.spread(labels.HOSTNAME), name="a")).sizes() == [1] * 4
    assert story.batch(c.web(5, w.spread(labels.HOSTNAME), name="b")).sizes() == [1] * 5
