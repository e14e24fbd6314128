"""Alternatives and preferences, and the order in which they are given up: behaviours 33 to 44 of the catalogue."""

from __future__ import annotations

from typing import Any

from kerf.model.kubernetes.storage import PersistentVolume, PersistentVolumeClaim
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

SOFT = {"key": "soft", "value": "x", "effect": "PreferNoSchedule"}


def test_033_the_last_required_term_stays() -> None:
    """A demand that cannot be met is not given up."""
    assert c.run(w.pool(), w.pod("p", **c.wants((labels.ZONE, "In", ["nowhere"])))).pending == ["p"]


def test_034_alternatives_are_tried_in_turn() -> None:
    """Two impossible ones, then z1, then z2: z1."""
    terms = [[(labels.ZONE, "In", [zone])] for zone in ("no", "nor", "z1", "z2")]
    assert c.run(w.pool(), w.pod("p", affinity=w.node_affinity(*terms))).node.zones == ("z1",)


def test_035_the_zone_of_a_volume_survives_the_search_for_an_alternative() -> None:
    """The first alternative is impossible; under the second the volume's zone still holds."""
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z3"]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    volume = decode(PersistentVolume, {"metadata": {"name": "v"}, "spec": affinity})
    meta = {"name": "c", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = decode(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": "v"}})
    terms = [[("no", "In", ["x"])], [(labels.CAPACITY_TYPE, "In", ["on-demand"])]]
    volumes = [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
    node = c.run(w.pool(), volume, claim, w.pod("p", volumes=volumes, affinity=w.node_affinity(*terms))).node
    assert (node.zones, node.capacity_types) == (("z3",), ("on-demand",))


def test_036_impossible_preferences_are_given_up() -> None:
    """Both of them."""
    pod = w.pod("p", affinity=c.prefers((1, labels.ZONE, "no"), (2, labels.INSTANCE_TYPE, "no")))
    assert c.run(w.pool(), pod).node.zones == w.ZONES


def test_037_the_heaviest_preference_that_can_be_met_holds() -> None:
    """100 is impossible, 50 is z2, 1 is z1: z2."""
    pod = w.pod("p", affinity=c.prefers((1, labels.ZONE, "z1"), (50, labels.ZONE, "z2"), (100, labels.ZONE, "no")))
    assert c.run(w.pool(), pod).node.zones == ("z2",)


def test_038_a_requirement_outweighs_a_preference_against_it() -> None:
    """The preference goes, the requirement stays."""
    pod = w.pod("p", nodeSelector={labels.ZONE: "z3"}, affinity=c.prefers((1, labels.ZONE, "z2")))
    assert c.run(w.pool(), pod).node.zones == ("z3",)


def test_039_of_preferences_that_contradict_each_other_the_heaviest_holds() -> None:
    """They are looked at one by one."""
    pod = w.pod("p", affinity=c.prefers((1, labels.ZONE, "z1"), (9, labels.ZONE, "z3")))
    assert c.run(w.pool(), pod).node.zones == ("z3",)


def test_040_a_soft_taint_is_put_up_with_after_all_else_was_given_up() -> None:
    """Two impossible preferences go first; the tainted pool is what remains."""
    pod = w.pod("p", affinity=c.prefers((1, labels.ZONE, "no"), (2, labels.ZONE, "nor")))
    assert c.run(w.pool(taints=[SOFT]), pod).node.pool == "default"
    hard = {**SOFT, "effect": "NoSchedule"}
    assert c.run(w.pool(taints=[hard]), pod).pending == ["p"]


def test_041_of_two_pools_the_one_without_a_soft_taint_is_taken() -> None:
    """Even where the tainted one is heavier."""
    tainted = w.pool("zz-tainted", taints=[SOFT], weight=50)
    assert c.run(tainted, w.pool("plain"), w.pod("p")).node.pool == "plain"


def _two_zones(*more: Any, **facts: Any) -> c.Pass:
    """Nodes that are opened for one pod in z1 and for two in z2, and a third pod."""
    one = w.pod("one", "800m", nodeSelector={labels.ZONE: "z1"}, labels={"app": "one"})
    two = w.replicas(2, "two", "800m", nodeSelector={labels.ZONE: "z2"}, labels={"app": "two"})
    return c.run(w.pool(), one, two, *more, **{"preference_policy": "Ignore", **facts})


def test_042_preferences_that_are_ignored_open_no_node() -> None:
    """The small pod joins the same one of the two nodes as it does without a wish: price alone decides."""
    plain = _two_zones(w.pod("small", "10m"))
    wishing = _two_zones(w.pod("small", "10m", affinity=c.prefers((1, labels.ZONE, "z3"))))
    assert len(plain.nodes) == len(wishing.nodes) == 2
    assert plain.sizes() == wishing.sizes()
    assert plain.of("small").zones == wishing.of("small").zones


def test_043_soft_spreads_that_are_ignored_let_pods_share_a_node() -> None:
    """By zone and by host; respected, they take as many nodes as they can."""
    for key in (labels.ZONE, labels.HOSTNAME):
        pods = c.web(3, w.spread(key, whenUnsatisfiable="ScheduleAnyway"))
        assert c.run(w.pool(), pods, preference_policy="Ignore").sizes() == [3]
        assert c.run(w.pool(), pods).sizes() == [1, 1, 1]


def test_044_company_that_is_only_preferred_is_ignored_too() -> None:
    """Apart: they share a node. Near the fuller node: the same as without the wish."""
    apart = w.replicas(2, "p", labels={"app": "web"}, affinity=c.wishes("podAntiAffinity"))
    assert c.run(w.pool(), apart, preference_policy="Ignore").sizes() == [2]
    assert c.run(w.pool(), apart).sizes() == [1, 1]
    plain = _two_zones(w.pod("small", "10m")).of("small").zones
    other = "two" if plain == ("z1",) else "one"
    wish = c.wishes("podAffinity", labels.ZONE, other)
    assert _two_zones(w.pod("small", "10m", affinity=wish)).of("small").zones == plain
    assert _two_zones(w.pod("small", "10m", affinity=wish), preference_policy="Respect").of("small").zones != plain
