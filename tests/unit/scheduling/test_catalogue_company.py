"""Affinity and anti-affinity between pods: behaviours 172 to 187 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from kerf.model.kubernetes.objects import Namespace, Pod
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

WEB = {"app": "web"}
FULL = {"cpu": "50m", "memory": "1Gi"}
NEAR, FAR, ZONE = "podAffinity", "podAntiAffinity", labels.ZONE


def pod(name: str, app: str = "", *, zone: str = "", **spec: Any) -> Pod:
    """A pod with `app` as label (its own name by default), perhaps bound to a zone."""
    own = {"nodeSelector": {ZONE: zone}} if zone else {}
    return w.pod(name, **{"labels": {"app": app or name}, **own, **spec})


def near(app: str, key: str = labels.HOSTNAME, **more: Any) -> dict[str, Any]:
    return {"affinity": w.between(NEAR, key, app, **more)}


def far(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"affinity": w.between(FAR, key, app, **more)}


def self_near(count: int, key: str = labels.HOSTNAME, name: str = "web", **spec: Any) -> list[Pod]:
    """Pods that want to be together."""
    return c.web(count, name=name, **{**near("web", key), **spec})


def test_172_company_on_a_host_and_of_an_architecture() -> None:
    """Empty wishes demand nothing; who wants company gets it, on its host, though two cost less, or on its kind."""
    assert c.run(w.pool(), pod("p", affinity={NEAR: {}, FAR: {}, "nodeAffinity": {}})).node
    types = (c.machine("small", 2, 2), c.machine("dear", 4, 4, price=9_000_000))
    done = c.run(w.pool(), pod("target", cpu="1500m"), pod("p", cpu="1500m", **near("target")), catalogue=types)
    assert (done.types(), done.sizes()) == (["dear"], [2])
    target = pod("target", nodeSelector={labels.ARCH: "arm64"})
    apart = {**near("target", labels.ARCH)["affinity"], **far("target", labels.HOSTNAME)["affinity"]}
    assert c.run(w.pool(), target, pod("p", affinity=apart)).types() == ["arm", "arm"]


def test_173_pods_that_want_one_host_get_one() -> None:
    """Three share a node. Of ten, five fit and five wait, and no later ones find a place either."""
    assert c.run(w.pool(), self_near(3)).sizes() == [3]
    story = c.Story.of(w.pool())
    done = story.batch(self_near(10, name="a"))
    assert (done.sizes(), len(done.pending)) == ([5], 5)
    assert len(story.batch(self_near(10, name="b")).pending) == 10


def test_174_company_counts_where_the_pods_may_not_go() -> None:
    """It is in z1, so those that must be in z2 or z3 wait."""
    old = [w.node("n", "z1", **FULL), w.pod("old", "1m", "1Mi", node="n", labels=WEB)]
    bound: dict[str, Any] = {"affinity": {**near("web")["affinity"], **w.node_affinity([(ZONE, "In", ["z2", "z3"])])}}
    assert len(c.run(w.pool(), old, c.web(3, **bound)).pending) == 3


def test_175_pods_that_want_one_zone_get_one() -> None:
    """Any, or the one that they are bound to."""
    assert len(c.run(w.pool(), self_near(3, ZONE)).node.zones) == 1
    assert c.run(w.pool(), self_near(3, ZONE, nodeSelector={ZONE: "z3"})).node.zones == ("z3",)


def test_176_a_second_zone_is_no_company_for_the_first() -> None:
    """Two pods of one group in z2 and z3: the second would never be bound there, so it waits."""
    pods = [pod(zone, "web", zone=zone, **near("web", ZONE)) for zone in ("z2", "z3")]
    done = c.run(w.pool(), pods)
    assert (done.sizes(), len(done.pending)) == ([1], 1)


def test_177_company_that_is_only_preferred_need_not_be_had() -> None:
    """Near a pod that does not exist; apart in fewer zones than pods."""
    assert c.run(w.pool(), pod("p", affinity=c.wishes(NEAR, app="nobody"))).node
    shy = c.web(3, affinity=c.wishes(FAR, ZONE), nodeSelector={ZONE: "z1"})
    assert c.run(w.pool(), shy).pending == []


def test_178_pods_that_shun_each_other_are_apart() -> None:
    """By host; by zone, where all zones are taken, one waits."""
    assert c.run(w.pool(), c.web(3, **far("web", labels.HOSTNAME))).sizes() == [1, 1, 1]
    targets = [pod(zone, "target", zone=zone, cpu="1") for zone in w.ZONES]
    assert c.run(w.pool(), targets, pod("p", **far("target"))).pending == ["p"]
    assert c.run(w.pool(), targets[:2], pod("p", **far("target"))).of("p").zones == ("z3",)


def test_179_who_is_shunned_is_given_a_zone_so_that_the_other_has_one() -> None:
    """A pod without a zone of its own, and one that must be in another: both in one pass."""
    done = c.run(w.pool(), pod("target", cpu="1"), pod("p", **far("target")))
    assert not done.pending
    assert not set(done.of("target").zones) & set(done.of("p").zones)


def test_180_who_is_shunned_in_every_zone_waits() -> None:
    """By pods of the same pass, or by running ones; if they only prefer it, it does not."""
    coming = [pod(zone, "shy", zone=zone, cpu="1", **far("target")) for zone in w.ZONES]
    nodes = [w.node(f"n-{zone}", zone, **FULL) for zone in w.ZONES]
    there = [pod(f"s-{z}", "shy", cpu="1m", memory="1Mi", node=f"n-{z}", **far("target")) for z in w.ZONES]
    for objects in (coming, [*nodes, *there]):
        assert c.run(w.pool(), objects, pod("target")).pending == ["target"]
    mild = [pod(zone, "shy", zone=zone, cpu="1", affinity=c.wishes(FAR, ZONE, "target")) for zone in w.ZONES]
    assert c.run(w.pool(), mild, pod("target")).pending == []


def test_181_who_is_shunned_by_a_pod_of_the_same_pass_goes_to_another_zone() -> None:
    """At once, or against what runs by now."""
    shy = pod("shy", cpu="1", **far("target"))
    done = c.run(w.pool(), shy, pod("target"))
    assert not done.pending
    assert not set(done.of("shy").zones) & set(done.of("target").zones)
    story = c.Story.of(w.pool())
    story.batch(shy)
    (home,) = (node.metadata.labels[ZONE] for node in story.nodes())
    assert home not in story.batch(pod("target")).node.zones


def test_182_one_pod_to_a_zone() -> None:
    """Three of five, at once; and then none."""
    story = c.Story.of(w.pool())
    assert len(story.batch(c.web(5, name="a", **far("web"))).pending) == 2
    assert story.counts() == [1, 1, 1]
    assert len(story.batch(c.web(2, name="b", **far("web"))).pending) == 2


def test_183_company_that_does_not_exist_is_waited_for() -> None:
    """For ever."""
    done = c.run(w.pool(), pod("p", **near("nobody")), pod("q", **near("nobody", ZONE)))
    assert done.pending == ["p", "q"]


def test_184_followers_share_the_zone_of_their_leader() -> None:
    """Ten of them at once, whether it has a zone of its own or is given one."""
    for zone in ("", "z1"):
        leader = pod("leader", zone=zone, cpu="1")
        done = c.run(w.pool(), leader, w.replicas(10, "p", **near("leader", ZONE)))
        assert not done.pending
        assert len({node.zones for node in done.nodes}) == 1
        assert done.of("leader").zones == (("z1",) if zone else done.nodes[0].zones)


def test_185_a_chain_of_company_resolves_in_any_order() -> None:
    """ui wants cache, cache wants web, web wants db: all on one host."""
    wants = {"ui": near("cache"), "cache": near("web"), "web": near("db"), "db": {}}
    for order in permutations(wants):
        pods = [w.pod(f"{i}-{app}", labels={"app": app}, **wants[app]) for i, app in enumerate(order)]
        assert c.run(w.pool(), pods).sizes() == [4]


def test_186_whose_company_is_meant() -> None:
    """Only that of the own namespace; of those that are listed, and no other; of all."""
    spaces = [decode(Namespace, {"metadata": {"name": name}}) for name in ("default", "other")]
    listed: dict[str, Any] = {"namespaces": ["other"]}
    meant = [("other", {}, False), ("default", {}, True), ("other", listed, True), ("default", listed, False)]
    for home, more, found in [*meant, ("other", {"namespaceSelector": {}}, True)]:
        done = c.run(w.pool(), spaces, pod("target", namespace=home), pod("p", **near("target", **more)))
        assert (done.pending == []) == found
        assert done.sizes() == ([2] if found else [1])


def test_187_a_preferred_affinity_yields_to_a_spread() -> None:
    """One in each zone, and on each host."""
    for key in (ZONE, labels.HOSTNAME):
        wish = c.wishes(NEAR, key)
        done = c.run(w.pool(), c.web(3, w.spread(key), affinity=wish))
        assert done.sizes() == [1, 1, 1]
        assert not done.pending
