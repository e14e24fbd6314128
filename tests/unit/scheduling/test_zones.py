"""Effective zones of pending pods beyond the catalogue: alternatives, company from both sides, worlds of one zone."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.gauges import PlanGauge
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

SOFT: dict[str, Any] = {"whenUnsatisfiable": "ScheduleAnyway"}
THERE = [w.node(f"n-{zone}", zone, cpu="50m") for zone in w.ZONES]
WEB = {"app": "web"}


def web(*zones: str, **spec: Any) -> list[Any]:
    """A small pod in each of these zones, and the nodes of all."""
    return [*THERE, *(w.pod(f"w-{zone}", "1m", "1Mi", node=f"n-{zone}", labels=WEB, **spec) for zone in zones)]


def zoned(*zones: str, operator: str = "In") -> dict[str, Any]:
    return c.wants((labels.ZONE, operator, list(zones)))


def zones(*objects: Any, **facts: Any) -> dict[str, int]:
    snapshot = w.world(*objects, **facts)
    return dict(solve(snapshot, list(snapshot.pods.pending.values())).zones)


@pytest.mark.parametrize(
    ("zone", "spec"),
    [
        ("z3", zoned("z1", "z2", operator="NotIn")),
        ("flexible", zoned("z1", operator="NotIn")),
        ("flexible", zoned("z1", "z2")),
        ("z9", zoned("z9")),
        ("none", {**zoned("z1"), "nodeSelector": {labels.ZONE: "z2"}}),
        ("flexible", {"affinity": w.node_affinity([(labels.ZONE, "In", ["z1"])], [(labels.ZONE, "In", ["z2"])])}),
        (
            "z1",
            {
                "affinity": w.node_affinity(
                    [(labels.ZONE, "In", ["z1"])], [("no", "Exists", []), (labels.ZONE, "In", ["z1"])]
                )
            },
        ),
        ("flexible", {"affinity": w.between("podAffinity", labels.HOSTNAME, "nobody")}),
        ("flexible", {"affinity": c.wishes("podAffinity", labels.ZONE, "nobody")}),
        ("flexible", {"topologySpreadConstraints": [w.spread(**SOFT)]}),
    ],
    ids=[
        "not in",
        "not in one",
        "two",
        "unknown",
        "against itself",
        "alternatives",
        "equal alternatives",
        "hosts",
        "a wish",
        "soft",
    ],
)
def test_what_a_pod_says_itself(zone: str, spec: dict[str, Any]) -> None:
    assert zones(w.pool(), w.pod("p", **spec)) == {zone: 1}


def test_company_from_both_sides() -> None:
    """Whoever is shunned by those that run is kept out of their zones as well."""
    shy = web("z1", "z2", affinity=w.between("podAntiAffinity", labels.ZONE, "p"))
    assert zones(w.pool(), shy, w.pod("p", labels={"app": "p"})) == {"z3": 1}
    assert zones(w.pool(), shy, w.pod("p", labels={"app": "other"})) == {"flexible": 1}


def test_what_founds_its_own_company_may_do_so_anywhere() -> None:
    own = {"labels": WEB, "affinity": w.between("podAffinity", labels.ZONE)}
    assert zones(w.pool(), w.replicas(2, "p", **own)) == {"flexible": 2}
    assert zones(w.pool(), web("z2"), w.replicas(2, "p", **own)) == {"z2": 2}


def test_constraints_that_agree_on_no_zone() -> None:
    """It must be in z3, and wants company that is in z1 only."""
    near: dict[str, Any] = {"affinity": w.between("podAffinity", labels.ZONE), "nodeSelector": {labels.ZONE: "z3"}}
    assert zones(w.pool(), web("z1"), w.pod("p", **near)) == {"none": 1}


def test_pods_are_counted_by_zone() -> None:
    found = zones(
        w.pool(),
        w.replicas(3, "any"),
        w.replicas(2, "a", **zoned("z1")),
        w.pod("odd", "1000"),
        w.pod("b", **zoned("z2")),
    )
    assert found == {"flexible": 4, "z1": 2, "z2": 1}


def test_where_there_is_one_zone_only_who_asks_for_it_is_bound_to_it() -> None:
    single = (c.machine("single", 4, 4, markets=(("z1", "on-demand"),)),)
    own: dict[str, Any] = {"topologySpreadConstraints": [w.spread()], "labels": WEB}
    assert zones(w.pool(), w.pod("p", **own), w.pod("q", **zoned("z1")), catalogue=single) == {"flexible": 1, "z1": 1}


def test_a_zone_that_only_a_node_has_counts() -> None:
    single = (c.machine("single", 4, 4, markets=(("z1", "on-demand"),)),)
    far: dict[str, Any] = {"affinity": w.between("podAntiAffinity", labels.ZONE)}
    there = [w.node("n-z1", "z1"), w.pod("w", node="n-z1", labels=WEB), w.node("n-z9", "z9", cpu="8")]
    assert zones(w.pool(), there, w.pod("p", **far), catalogue=single) == {"z9": 1}


def test_pods_that_run_and_move_are_none_of_those_that_wait() -> None:
    moving = w.pod("p", node="n-z1")
    snapshot = w.world(w.pool(), THERE, moving)
    assert solve(snapshot, [moving], SolveOptions(exclude=frozenset({"node/n-z1"}))).zones == {}


def test_nothing_pending_leaves_no_series() -> None:
    """And a pass names the zones of its own pods only."""
    (name,) = c.plan(w.pool(), w.pod("p", **zoned("z1"))).gauges
    assert name == (
        PlanGauge.PENDING_PODS_BY_ZONE,
        (("controller", "provisioner"), ("zone", "z1")),
    )
    assert c.plan(w.pool()).gauges == {}
