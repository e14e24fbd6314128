"""Risks of plans, each in a small cluster that has it; and that a cluster without it has no such row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kerf.model.failures import Failure, key
from kerf.planning.changes import Change
from kerf.planning.forecast import Forecast, Manner, forecast
from kerf.planning.risks import Risk
from tests.simulation.plan_cases import CAPACITY, CASES, ZONE, Case, pool, requiring, web
from tests.simulation.plan_table import prepared, saved
from tests.worlds import node_class


def _forecast(case: Case, *, simulate: bool) -> Forecast:
    manner = Manner(timedelta(hours=24), simulate=simulate)
    return forecast(saved(*prepared(case)), Change(case.applied, case.deleted), manner)


def _risk(found: Forecast, code: str) -> Risk:
    rows = [one for one in found.risks if one.code == code]
    assert len(rows) == 1, found.risks
    return rows[0]


def test_a_cluster_of_on_demand_nodes_in_several_zones_has_no_risk() -> None:
    case = Case((node_class(), requiring(CAPACITY, "on-demand"), CASES["spread over zones"]().before[2]))
    assert _forecast(case, simulate=False).risks == ()


def test_spot_instances_and_a_single_zone() -> None:
    found = _forecast(Case((node_class(), requiring(ZONE, "us-west-2b"), web())), simulate=False)
    assert _risk(found, "SpotShare").count == 100
    zone = _risk(found, "SingleZone")
    assert (zone.subject, zone.count) == ("nodepool/general", 3)
    assert zone.text == "NodePool general: all 3 nodes are in zone us-west-2b"


@pytest.mark.parametrize("simulate", [True, False])
def test_a_limit_that_is_reached(*, simulate: bool) -> None:
    found = _risk(_forecast(CASES["limit"](), simulate=simulate), "LimitReached")
    assert (found.subject, found.count) == ("nodepool/general", 3)
    assert found.text == "NodePool general: no further node fits into its limits: cpu 6 of 1; raise spec.limits"


def test_a_limit_with_free_resources_is_no_risk() -> None:
    case = Case((node_class(), pool(limits={"cpu": "8"}), web()))
    assert "LimitReached" not in {one.code for one in _forecast(case, simulate=False).risks}


@pytest.mark.parametrize("simulate", [True, False])
def test_launches_that_fail_at_the_time_of_the_snapshot(*, simulate: bool) -> None:
    case = Case((node_class(), pool(), web()))
    captured = saved(*prepared(case))
    now = captured.snapshot.now
    fails = Failure("LaunchInstances", "nodepool/general", "forbidden", "no permission", now, now)
    known = replace(captured.snapshot, failures={key(fails.verb, fails.object): fails})
    found = forecast(replace(captured, snapshot=known), Change(), Manner(timedelta(hours=24), simulate=simulate))
    row = _risk(found, "LaunchesFail")
    assert row.subject == "nodepool/general"
    assert row.text == (
        "NodePool general: gets no nodes now, but the plan assumes that it does: LaunchInstances is forbidden: "
        "no permission; give Kerf's IAM role the permission; kerf preflight lists the missing ones"
    )


def test_nodes_that_expire_before_the_horizon() -> None:
    found = _forecast(Case((node_class(), pool(expireAfter="20h"), web())), simulate=False)
    row = _risk(found, "NearExpiry")
    assert (row.subject, row.count) == ("nodepool/general", 3)
    assert row.at is not None
    assert timedelta(hours=17) < row.at - found.planned.began < timedelta(hours=20)
    assert row.text.startswith("NodePool general: 3 nodes expire before the horizon, the first at ")


@pytest.mark.parametrize("simulate", [True, False])
def test_a_pod_disruption_budget_that_blocks(*, simulate: bool) -> None:
    found = _forecast(CASES["a budget of pods that blocks"](), simulate=simulate)
    row = _risk(found, "PodDisruptionBudget")
    assert (row.subject, row.namespace, row.owner, row.count) == (
        "poddisruptionbudget/web",
        "default",
        "Deployment/web",
        3,
    )
    assert "PodDisruptionBudget default/web of Deployment/web blocks the drain of 3 nodes" in row.text
    assert len([one for one in found.risks if one.code == "Held"]) == 3


def test_a_pod_disruption_budget_that_lets_nodes_go_is_no_risk() -> None:
    found = _forecast(CASES["a budget of pods of one"](), simulate=False)
    assert "PodDisruptionBudget" not in {one.code for one in found.risks}


@pytest.mark.parametrize("simulate", [True, False])
def test_the_deletion_guard_delays_a_deleted_node_pool(*, simulate: bool) -> None:
    row = _risk(_forecast(CASES["a NodePool is deleted"](), simulate=simulate), "DeletionGuard")
    assert (row.subject, row.count) == ("nodepool/general", 3)
    assert "kubectl annotate nodepool general kerf.sh/allow-deletion=3" in row.text


def test_a_horizon_that_comes_too_soon() -> None:
    case = CASES["label, one node at a time"]()
    change = Change(case.applied, case.deleted)
    found = forecast(saved(*prepared(case)), change, Manner(timedelta(minutes=1)))
    assert _risk(found, "Horizon").at == found.planned.ended


def test_a_nodepool_without_an_instance_type_launches_no_node() -> None:
    case = Case((node_class(), pool(), {**requiring(CAPACITY, "reserved"), "metadata": {"name": "held"}}, web()))
    row = _risk(_forecast(case, simulate=False), "NotReady")
    assert row.subject == "nodepool/held"
    assert row.text == (
        "NodePool held: not ready, so it launches no node: no instance type is left: "
        "spec.template.spec.requirements[0] (karpenter.sh/capacity-type In [reserved]), but "
        "spec.capacityReservationSelectorTerms of EC2NodeClass default selects no capacity reservation; "
        "change one of them"
    )
