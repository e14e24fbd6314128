"""The report on bindings finds what it is for: nodes made in vain, pods without a node, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from kerf.model.aws.cloud import Region
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels

from .binding import Bound, Json, bound, cheapest, ratio, table
from .binding_worlds import WORKLOAD, WORLD, BindingWorld

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
HERE = BindingWorld("w00", ("spread",), (), (), pods=3)
ZONES = frozenset({"us-west-2a", "us-west-2b"})
REGION = Region(
    "us-west-2",
    types={},
    zones_by_type={"m5.large": ZONES, "c5.large": ZONES},
    on_demand={"m5.large": 96_000, "c5.large": 85_000},
    spot={("m5.large", "us-west-2a"): 40_000, ("m5.large", "us-west-2b"): 30_000, ("c5.large", "us-west-2a"): 35_000},
)


def pod(name: str, node: str = "", workload: str = "web") -> Json:
    return {
        "metadata": {"uid": name, "name": name, "namespace": "w00", "labels": {WORLD: "w00", WORKLOAD: workload}},
        "spec": {"nodeName": node} if node else {},
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T12:00:07Z"}]
        },
    }


def claim(
    name: str, *pods: str, second: int = 0, market: str = "spot", zones: tuple[str, ...] = (), nodepool: str = "main"
) -> Json:
    rows = [
        {"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["m5.large", "c5.large"]},
        {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [market]},
        *([{"key": labels.ZONE, "operator": "In", "values": list(zones)}] if zones else []),
    ]
    own = {labels.INSTANCE_TYPE: "m5.large", labels.ZONE: "us-west-2b", labels.CAPACITY_TYPE: market}
    own |= {labels.NODEPOOL: nodepool, WORLD: "w00"}
    return {
        "metadata": {
            "name": name,
            "labels": own,
            "annotations": {labels.PLANNED_PODS: ",".join(map(pod_mark, pods))},
            "creationTimestamp": f"2026-01-01T12:00:{second:02}Z",
        },
        "spec": {"requirements": rows},
        "status": {"nodeName": f"node-{name}"},
    }


def judged(pods: list[Json], claims: list[Json], *, went: str = "", joined: Mapping[str, datetime] = {}) -> Bound:
    waited = [pod("1"), pod("2"), pod("3")]
    staying = frozenset(claim["metadata"]["name"] for claim in claims) - {went}
    return bound(HERE, waited, pods, claims, staying, REGION, since=BEGIN, joined=joined)


def test_as_planned() -> None:
    row = judged([pod("1", "node-a"), pod("2", "node-a"), pod("3", "node-b")], [claim("a", "1", "2"), claim("b", "3")])
    assert (row.pods, row.planned_nodes, row.elsewhere, row.seconds, row.problems) == (3, 2, 0, 7.0, [])
    assert (row.planned_cost, row.cost, row.ratio) == (60_000, 60_000, 1.0)


def test_pods_of_a_workload_stand_for_each_other() -> None:
    row = judged([pod("1", "node-b"), pod("2", "node-a"), pod("3", "node-a")], [claim("a", "1", "2"), claim("b", "3")])
    assert (row.elsewhere, row.problems) == (2, [])


def test_pods_of_nobody_s_workload_do_not_count() -> None:
    """Those of a chart, or of a daemon set."""
    own = [pod("1", "node-a"), pod("2", "node-a"), pod("3", "node-b")]
    stranger = {"metadata": {"uid": "4", "namespace": "kerf"}, "spec": {"nodeName": "node-b"}, "status": {}}
    claims = [claim("a", "1", "2"), claim("b", "3")]
    assert judged([*own, stranger], claims) == judged(own, claims)


@pytest.mark.parametrize(("seconds", "late"), [(30, False), (31, True)])
def test_a_world_whose_planned_nodes_joined_far_apart_is_late(seconds: int, late: bool) -> None:
    """One that was made later, for a pod that had one, is not waited for."""
    pods = [pod("1", "node-a"), pod("2", "node-c"), pod("3", "node-b")]
    claims = [claim("c", "2", second=9), claim("b", "3"), claim("a", "1", "2")]
    joined = {f"node-{name}": BEGIN + timedelta(seconds=at) for name, at in (("a", 0), ("b", seconds), ("c", 99))}
    row = judged(pods, claims, joined=joined)
    assert (row.apart, row.late) == (seconds, late)


def test_a_node_to_which_nobody_came_is_told() -> None:
    pods = [pod("1", "node-a"), pod("2", "node-a"), pod("3", "node-a")]
    row = judged(pods, [claim("a", "1", "2"), claim("b", "3")])
    assert row.problems == ["node b, made for w00/web, has nobody"]


def test_a_node_that_went_was_paid_for_all_the_same() -> None:
    pods = [pod("1", "node-a"), pod("2", "node-a"), pod("3", "node-a")]
    row = judged(pods, [claim("a", "1", "2"), claim("b", "3")], went="b")
    assert (row.problems, row.went, row.planned_cost, row.cost) == ([], 1, 60_000, 60_000)


def test_a_node_that_only_others_took_is_told() -> None:
    pods = [pod("1", "node-a"), pod("2", "node-b"), pod("3", "node-a", "db")]
    row = judged(pods, [claim("a", "1", "2"), claim("b", "3")])
    assert row.problems == ["node b, made for w00/db, has w00/web"]


@pytest.mark.parametrize(
    ("nodepool", "problems"),
    [("main", []), ("other", ["node a, made for w00/db, has w00/web", "node b, made for w00/web, has w00/db"])],
)
def test_nodes_of_one_nodepool_may_take_each_other_s_pods(nodepool: str, problems: list[str]) -> None:
    pods = [pod("1", "node-b", "db"), pod("2", "node-a"), pod("3", "node-a")]
    assert judged(pods, [claim("a", "1"), claim("b", "2", "3", nodepool=nodepool)]).problems == problems


def test_nodes_too_many_are_told_although_two_of_them_took_each_other_s_pods() -> None:
    pods = [pod("1", "node-b", "db"), pod("2", "node-a"), pod("3", "node-c", "db")]
    assert len(judged(pods, [claim("a", "1"), claim("b", "2"), claim("c", "2")]).problems) == 3


def test_a_pod_without_a_node_is_told() -> None:
    waits = pod("2")
    refused = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available."}
    waits["status"] = {"conditions": [refused], "nominatedNodeName": "node-a"}
    row = judged([pod("1", "node-a"), waits, pod("3", "node-b")], [claim("a", "1", "2"), claim("b", "3")])
    assert row.problems == ["2 of 3 pods are bound", "pod w00/2 waits for node-a: 0/2 nodes are available."]


def test_a_claim_for_pods_that_had_one_is_no_part_of_the_plan() -> None:
    pods = [pod("1", "node-a"), pod("2", "node-b"), pod("3", "node-c")]
    claims = [claim("c", "2", second=9), claim("b", "3"), claim("a", "1", "2")]
    row = judged(pods, claims)
    assert (row.planned_nodes, row.planned_cost, row.cost) == (2, 60_000, 90_000)
    assert ratio([row]) == row.ratio == 1.5
    assert "2 nodes $0.0600     3 nodes $0.0900     0  1.500" in table([row])


def test_a_claim_for_a_pod_that_came_later_is_no_part_of_the_plan() -> None:
    """It took the place of one that was preempted, say."""
    pods = [pod("1", "node-a"), pod("2", "node-a"), pod("later", "node-b")]
    row = judged(pods, [claim("a", "1", "2", "3"), claim("b", "later", second=9)])
    assert (row.planned_nodes, row.ratio) == (1, 2.0)


@pytest.mark.parametrize(
    ("market", "zones", "cost"),
    [
        ("spot", (), 30_000),
        ("spot", ("us-west-2a",), 35_000),
        ("on-demand", (), 85_000),
    ],
)
def test_the_plan_costs_what_its_cheapest_offerings_cost(market: str, zones: tuple[str, ...], cost: int) -> None:
    assert cheapest(claim("a", "1", market=market, zones=zones), REGION) == cost
