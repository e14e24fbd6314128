"""What is told of single objects: how much there is of it, by which names, and that the numbers follow the objects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.scrape import NOW, series, told
from kerf.model import kinds
from kerf.model.kubernetes.objects import (
    Container,
    Node,
    NodeCondition,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceNeeds,
)
from kerf.telemetry.catalogue.listing import CONDITIONS, DETAILS, NODES, OFFERINGS, PODS
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.series import conditions, pod_times
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.series.series import ObjectSeries
from kerf.telemetry.telemetry import Telemetry
from kerf_api.v1.meta import Condition, ObjectMeta, OwnerReference
from tests.unit.lifecycle.world import node_claim

#: Metrics whose words are the library's.
LIBRARY = ("process_", "python_")


def values(telemetry: Telemetry, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Of each series that has this name, by its labels."""
    families = text_string_to_metric_families(telemetry.metrics.text().decode())
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


# --- how much ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("details", [(), (CONDITIONS,), (NODES,), (OFFERINGS,)])
def test_no_series_is_about_one_pod(details: tuple[str, ...]) -> None:
    few, many = (len(series(told(40, pods, 10, details).metrics.text())) for pods in (40, 400))
    assert few == many


def test_pods_that_wait_are_told_of_up_to_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_times, "MOST", 20)
    telemetry = told(5, 5, 90)
    waits = values(telemetry, "karpenter_pods_unbound_time_seconds")
    assert len(waits) == 20
    every = values(told(5, 5, 90, (PODS,)), "karpenter_pods_unbound_time_seconds")
    assert sorted(waits.values()) == sorted(every.values())[-20:]


def test_a_node_more_is_a_series_more() -> None:
    """Of 5,000 nodes there are well below 20,000: one for each, and what does not grow with them."""
    few, many = (len(series(told(nodes, nodes, 10).metrics.text())) for nodes in (101, 200))
    assert many - few == 99


def test_what_is_in_trouble_is_told_of_up_to_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MOST", 2)
    telemetry = told(500, 0, 0)  # of which five have drifted, on nodes that are not ready
    for kind, type_, ready in (("nodeclaim", "Drifted", 500), ("node", "Ready", 2)):
        count = values(telemetry, f"operator_{kind}_status_condition_count")
        assert sum(dict(labels)["type"] == "Ready" for labels in count) == ready
        ages = values(telemetry, f"operator_{kind}_status_condition_current_status_seconds")
        assert [dict(labels)["type"] for labels in ages] == [type_] * 2
        assert set(ages.values()) == {7200.0}
    assert sum(dict(labels)["type"] == "Drifted" for labels in values(telemetry, _COUNT)) == 2


_COUNT = "operator_nodeclaim_status_condition_count"


def test_all_conditions_are_told_of_where_that_is_asked_for() -> None:
    telemetry = told(50, 0, 0, (CONDITIONS,))
    assert len(values(telemetry, _COUNT)) == 50 * 6 + 1
    assert len(values(telemetry, "operator_node_status_condition_count")) == 50 * 4
    assert len(values(telemetry, "operator_node_status_condition_current_status_seconds")) == 50 * 4


@pytest.mark.parametrize("single", [True, False])
def test_without_single_objects_nothing_is_told_of_them(single: bool) -> None:
    metrics = Metrics(details=DETAILS)
    telemetry = told(1, 0, 0)
    followed = ObjectSeries(metrics, telemetry._clock, single_objects=single)
    followed.see(kinds.NODE, None, node())
    followed.see(kinds.POD, None, pod("p"))
    text = metrics.text().decode()
    assert ("karpenter_pods_state{" in text) == single
    assert ("karpenter_nodes_allocatable{" in text) == single


# --- by which names ---------------------------------------------------------------------------------------------
def test_what_writes_itself_is_as_the_table_says() -> None:
    telemetry = told(2, 4, 3, DETAILS)
    families = list(text_string_to_metric_families(telemetry.metrics.text().decode()))
    assert len({family.name for family in families}) == len(families)
    named = 0
    for family in families:
        row = METRICS.get(family.name) or METRICS[f"{family.name}_total"]
        assert (row.here, row.kind) == (True, family.type)
        assert row.about == family.documentation or family.name.startswith(LIBRARY)
        for sample in family.samples:
            if family.type == "gauge":
                assert set(sample.labels) == set(row.labels), sample.name
                named += 1
    assert named > 100
    assert {row.name for row in METRICS.values() if row.detail} <= {family.name for family in families}


def test_a_process_tells_nothing_else() -> None:
    """Not when a counter began either, which would be a series more for each."""
    names = {line.partition("{")[0].partition(" ")[0] for line in series(told(2, 4, 3, DETAILS).metrics.text())}
    ends = ("_sum", "_count", "_bucket")
    wholes = {
        next((name.removesuffix(end) for end in ends if name.endswith(end) and name not in METRICS), name)
        for name in names
    }
    assert wholes <= {name for name, row in METRICS.items() if row.here}


# --- that they follow -------------------------------------------------------------------------------------------
def node(name: str = "n", **amounts: str) -> Node:
    has = {"cpu": "4", "memory": "8Gi", **amounts}
    meta = ObjectMeta(name=name, labels={"karpenter.sh/nodepool": "p", "topology.kubernetes.io/zone": "z"})
    status = NodeStatus(
        capacity=has, allocatable={**has, "cpu": "3"}, conditions=(NodeCondition(type="Ready", status="True"),)
    )
    return Node(metadata=replace(meta, creation_timestamp=NOW - timedelta(hours=1)), status=status)


def pod(name: str, on: str = "n", phase: str = "Running", *, daemon: bool = False, cpu: str = "600m") -> Pod:
    kind = "DaemonSet" if daemon else "ReplicaSet"
    owner = OwnerReference(api_version="apps/v1", kind=kind, name="o", uid="o", controller=True)
    needs = ResourceNeeds(requests={"cpu": cpu}, limits={"cpu": "1"})
    return Pod(
        metadata=ObjectMeta(name=name, namespace="d", uid=name, owner_references=(owner,)),
        spec=PodSpec(node_name=on, containers=(Container(name="c", resources=needs),)),
        status=PodStatus(phase=phase),
    )


def utilization(telemetry: Telemetry) -> float:
    return values(telemetry, "karpenter_cluster_utilization_percent")[(("resource_type", "cpu"),)]


def test_utilization_is_what_bound_pods_that_are_not_over_request() -> None:
    telemetry = told(0, 0, 0)
    telemetry.object_changed(kinds.NODE, None, node())
    waits, runs, over = pod("p", on="", phase="Pending"), pod("p"), pod("p", phase="Succeeded")
    assert utilization(telemetry) == 0
    for old, new, percent in (
        (None, waits, 0),
        (waits, runs, 20),
        (runs, pod("p"), 20),
        (runs, over, 0),
        (over, None, 0),
    ):
        telemetry.object_changed(kinds.POD, old, new)
        assert utilization(telemetry) == pytest.approx(percent)
    telemetry.object_changed(kinds.POD, None, runs)
    telemetry.object_changed(kinds.POD, runs, pod("p", cpu="900m"))
    assert utilization(telemetry) == pytest.approx(30)
    telemetry.object_changed(kinds.NODE, None, node("other"))
    assert utilization(telemetry) == pytest.approx(15)
    telemetry.object_changed(kinds.NODE, node("other"), None)
    telemetry.object_changed(kinds.POD, pod("p", cpu="900m"), None)
    assert utilization(telemetry) == 0


def of_node(telemetry: Telemetry, name: str, resource: str = "cpu") -> float | None:
    found = values(telemetry, f"karpenter_nodes_{name}").items()
    return next((value for labels, value in found if dict(labels).get("resource_type", resource) == resource), None)


def test_what_a_node_has_and_what_its_pods_take() -> None:
    telemetry = told(0, 0, 0, (NODES,))
    telemetry.object_changed(kinds.NODE, None, node())
    telemetry.object_changed(kinds.POD, None, pod("a"))
    telemetry.object_changed(kinds.POD, None, pod("d", daemon=True, cpu="100m"))
    named: Mapping[str, float] = {
        "allocatable": 3,
        "system_overhead": 1,
        "total_pod_requests": 0.7,
        "total_pod_limits": 2,
        "total_daemon_requests": 0.1,
        "total_daemon_limits": 1,
        "current_lifetime_seconds": 3600,
    }
    assert {name: of_node(telemetry, name) for name in named} == pytest.approx(named)
    (labels,) = values(telemetry, "karpenter_nodes_current_lifetime_seconds")
    told_of = {name: value for name, value in labels if value}
    assert told_of == {"node_name": "n", "managed": "true", "nodepool": "p", "zone": "z"}
    telemetry.object_changed(kinds.POD, pod("d", daemon=True, cpu="100m"), None)
    assert of_node(telemetry, "total_daemon_requests") == 0
    telemetry.object_changed(kinds.POD, pod("a"), None)
    telemetry.object_changed(kinds.NODE, node(), None)
    assert of_node(telemetry, "allocatable") is None


def test_where_a_pod_is() -> None:
    telemetry = told(0, 0, 0, (PODS,))
    telemetry.object_changed(kinds.NODE, None, node())
    telemetry.object_changed(kinds.POD, None, pod("a"))
    (labels,) = values(telemetry, "karpenter_pods_state")
    assert {name: value for name, value in labels if value} == {
        "name": "a",
        "namespace": "d",
        "owner": "/apis/apps/v1/namespaces/d/replicasets/o",
        "node": "n",
        "scheduled": "true",
        "nodepool": "p",
        "zone": "z",
        "phase": "Running",
        "managed": "true",
    }
    telemetry.object_changed(kinds.POD, pod("a"), None)
    assert values(telemetry, "karpenter_pods_state") == {}


def test_what_the_nodes_of_a_pool_cost() -> None:
    telemetry = told(20, 0, 0)
    costs = values(telemetry, "karpenter_nodepools_cost_total")
    assert len(costs) == 10
    assert all(cost > 0 for cost in costs.values())
    unpriced = {(("nodepool", f"pool-{number}"),): 0.0 for number in range(10)}
    assert values(telemetry, "kerf_nodepools_unpriced_nodes") == unpriced
    odd = claim("odd", {"node.kubernetes.io/instance-type": "x1.nobody", "karpenter.sh/nodepool": "pool-3"})
    telemetry.object_changed(kinds.NODE_CLAIM, None, odd)
    assert values(telemetry, "karpenter_nodepools_cost_total") == costs
    assert values(telemetry, "kerf_nodepools_unpriced_nodes")[(("nodepool", "pool-3"),)] == 1
    telemetry.object_changed(kinds.NODE_CLAIM, odd, None)
    assert values(telemetry, "kerf_nodepools_unpriced_nodes") == unpriced


def claim(name: str, labels: dict[str, str], *found: Condition, provider_id: str = "aws:///z/i-1") -> Any:
    one = node_claim()
    meta = replace(one.metadata, name=name, uid=name, labels=labels)
    return replace(one, metadata=meta, status=replace(one.status, provider_id=provider_id, conditions=found))


# --- conditions -------------------------------------------------------------------------------------------------
def test_how_long_a_condition_was_as_it_was_and_how_long_an_end_took() -> None:
    telemetry = told(0, 0, 0)
    read = telemetry.metrics.registry.get_sample_value
    before = Condition(type="Registered", last_transition_time=NOW - timedelta(seconds=40))
    after = Condition(type="Registered", status="True", last_transition_time=NOW - timedelta(seconds=10))
    telemetry.object_changed(kinds.NODE_CLAIM, claim("c", {}, before), claim("c", {}, after))
    name, labels = "operator_nodeclaim_status_condition_transition_seconds", {"type": "Registered", "status": "True"}
    assert read(f"{name}_sum", labels) == 30
    asked = Condition(type="InstanceTerminating", status="True", last_transition_time=NOW - timedelta(seconds=20))
    gone = claim("c", {"karpenter.sh/nodepool": "p"}, asked)
    gone = replace(gone, metadata=replace(gone.metadata, deletion_timestamp=NOW - timedelta(seconds=50)))
    telemetry.object_changed(kinds.NODE_CLAIM, claim("c", {}, after), gone)
    (ends,) = values(telemetry, "operator_nodeclaim_termination_current_time_seconds").values()
    assert ends == 50
    telemetry.object_changed(kinds.NODE_CLAIM, gone, None)
    assert values(telemetry, "operator_nodeclaim_termination_current_time_seconds") == {}
    assert read("operator_nodeclaim_termination_duration_seconds_sum") == 50
    pool = {"nodepool": "p"}
    assert read("karpenter_nodeclaims_instance_termination_duration_seconds_sum", pool) == 20


def test_a_node_that_goes_leaves_its_age_and_how_long_it_took() -> None:
    telemetry = told(0, 0, 0)
    gone = node()
    gone = replace(gone, metadata=replace(gone.metadata, deletion_timestamp=NOW - timedelta(seconds=30)))
    telemetry.object_changed(kinds.NODE, gone, None)
    read = telemetry.metrics.registry.get_sample_value
    assert read("karpenter_nodes_lifetime_duration_seconds_sum", {"nodepool": "p"}) == 3600
    assert read("karpenter_nodes_termination_duration_seconds_sum", {"nodepool": "p"}) == 30
    assert read("karpenter_nodes_termination_duration_seconds", {"nodepool": "p", "quantile": "0.5"}) == 30
    assert read("operator_node_termination_duration_seconds_count") == 1


def test_a_node_that_is_not_ours_is_nobodys_business() -> None:
    telemetry = told(0, 0, 0)
    sick = replace(node(), metadata=ObjectMeta(name="theirs"))
    changed = replace(sick, status=replace(sick.status, conditions=(NodeCondition(type="Ready", status="False"),)))
    telemetry.object_changed(kinds.NODE, sick, changed)
    assert values(telemetry, "operator_node_status_condition_count") == {}
    named = {"type": "Ready", "status": "False", "reason": ""}
    read = telemetry.metrics.registry.get_sample_value
    assert read("operator_node_status_condition_transitions_total", named) is None
    own = replace(changed, metadata=node().metadata)
    telemetry.object_changed(kinds.NODE, node(), own)
    assert read("operator_node_status_condition_transitions_total", named) == 1
