"""Weather has its effect on the controller: throttled requests, failed instances; the times of violations."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.cli.verbs.simulation.loading import File
from kerf.simulating.playing import Play
from kerf.simulating.results import Result, Verdict
from tests.worlds import node_class, node_pool

#: Only weather disrupts nodes.
STATIC = {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}}
#: A second batch of pods comes at 10m.
SCENARIO: dict[str, Any] = {
    "name": "Weather",
    "duration": "40m",
    "warmUp": "5m",
    "world": {"objects": [node_class(), node_pool("general", STATIC)]},
    "workloads": [{"name": "web", "replicas": 2, "cpu": 1, "overTime": [{"at": "10m", "replicas": 8}]}],
    "assertions": [{"podsRunWithin": {"duration": "3m"}}],
}
#: How long the throttling of these tests lasts after the pods come.
THROTTLED = timedelta(minutes=10)


def run(folder: Path, **change: Any) -> Result:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump({**SCENARIO, **change}))
    return Play(File(str(path)).case(), 0).run()


def verdict(folder: Path, assertion: dict[str, Any], **change: Any) -> Verdict:
    (found,) = run(folder, assertions=[assertion], **change).verdicts
    return found


def throttled(**fields: Any) -> list[dict[str, Any]]:
    return [{"at": "9m", "throttle": {"for": "11m", **fields}}]


# --- throttling -----------------------------------------------------------------------------------------------------
def test_without_throttling_pods_run_at_once(tmp_path: Path) -> None:
    assert run(tmp_path).figures.slowest < timedelta(minutes=2)


@pytest.mark.parametrize(
    "fields", [{"api": "aws"}, {"api": "aws", "calls": ["CreateFleet"]}, {"api": "kubernetes"}], ids=str
)
def test_pods_wait_for_the_end_of_throttling(tmp_path: Path, fields: dict[str, Any]) -> None:
    found = run(tmp_path, weather=throttled(**fields))
    assert THROTTLED < found.figures.slowest < 2 * THROTTLED
    assert found.figures.unscheduled == 0
    assert found.warnings == ()
    assert not found.verdicts[0].passed


def test_throttling_of_other_calls_delays_no_launch(tmp_path: Path) -> None:
    found = run(tmp_path, weather=throttled(calls=["TerminateInstances"]))
    assert found.figures.slowest < timedelta(minutes=2)
    (warning,) = found.warnings
    assert warning.startswith("weather[0].throttle at 9m: no effect: no request was refused")


# --- evictions ------------------------------------------------------------------------------------------------------
def test_pods_of_failed_instances_are_not_evicted(tmp_path: Path) -> None:
    found = run(tmp_path, weather=[{"at": "20m", "instanceFailure": {}}], assertions=[{"evictions": {"atMost": 0}}])
    assert found.figures.disruptions > 0
    assert (found.figures.evictions, found.verdicts[0].passed) == (0, True)


def test_pods_of_interrupted_spot_instances_are_evicted(tmp_path: Path) -> None:
    found = run(tmp_path, weather=[{"at": "20m", "spotInterruption": {}}], assertions=[{"evictions": {"atMost": 7}}])
    assert found.figures.evictions == 8
    assert not found.verdicts[0].passed


def test_disruptions_are_counted_by_their_reasons(tmp_path: Path) -> None:
    weather = [{"at": "20m", "spotInterruption": {}}]
    for reason, passed in (("SpotInterrupted", False), ("Drifted", True)):
        given = {"disruptionsPerHour": {"atMost": 0, "reasons": [reason]}}
        assert verdict(tmp_path, given, weather=weather).passed is passed


# --- the first and the worst violation ------------------------------------------------------------------------------
#: Two deployments' worth of pods lost in two steps, at 20m and at 22m.
SHRINKING = [
    {"name": "web", "replicas": 4, "cpu": 1, "overTime": [{"at": "20m", "replicas": 3}, {"at": "22m", "replicas": 1}]}
]


def test_running_pods_have_the_times_of_the_first_and_the_worst_violation(tmp_path: Path) -> None:
    found = verdict(tmp_path, {"runningPods": {"workload": "web", "atLeast": 4}}, workloads=SHRINKING)
    assert (found.message, found.at, found.worst_at) == ("only 1", timedelta(minutes=20), timedelta(minutes=22))


def test_a_first_violation_that_is_the_worst_has_one_time(tmp_path: Path) -> None:
    found = verdict(tmp_path, {"runningPods": {"workload": "web", "atLeast": 2}}, workloads=SHRINKING)
    assert (found.at, found.worst_at) == (timedelta(minutes=22), None)


def test_zones_have_the_times_of_the_first_and_the_worst_violation(tmp_path: Path) -> None:
    pod = {
        "topologySpreadConstraints": [
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
    found = verdict(
        tmp_path,
        {"zonesShort": {"workload": "web", "atMost": 0}},
        workloads=[{"name": "web", "replicas": 3, "cpu": 1, "pod": pod}],
        weather=[
            {"at": "20m", "zoneLoss": {"zone": "us-west-2a", "for": "20m"}},
            {"at": "21m", "zoneLoss": {"zone": "us-west-2b", "for": "20m"}},
        ],
    )
    assert found.message == "none in us-west-2a, us-west-2b"
    assert (found.at, found.worst_at) == (timedelta(minutes=20), timedelta(minutes=21))


def test_the_cost_per_hour_has_the_times_of_the_first_and_the_worst_violation(tmp_path: Path) -> None:
    weather = [{"at": at, "price": {"factor": 10}} for at in ("15m", "25m")]
    found = verdict(tmp_path, {"cost": {"atMost": 1, "perHour": True}}, weather=weather)
    assert (found.at, found.worst_at) == (timedelta(minutes=15), timedelta(minutes=25))


def test_the_cost_has_the_time_at_which_it_exceeds_its_bound(tmp_path: Path) -> None:
    whole = run(tmp_path, workloads=[{"name": "web", "cpu": 1}]).figures.cost
    found = verdict(tmp_path, {"cost": {"atMost": whole / 2}}, workloads=[{"name": "web", "cpu": 1}])
    # Half of the 35 minutes after the warm-up; the figure is rounded to a hundredth of a cent.
    assert found.at is not None
    assert abs(found.at - timedelta(minutes=22.5)) < timedelta(seconds=30)


def test_disruptions_have_the_times_of_the_first_and_the_worst_violation(tmp_path: Path) -> None:
    weather = [{"at": at, "instanceFailure": {"count": 1}} for at in ("20m", "25m")]
    found = verdict(tmp_path, {"disruptionsPerHour": {"atMost": 0}}, weather=weather)
    assert (found.message, found.at, found.worst_at) == (
        "2 in an hour",
        timedelta(minutes=20),
        timedelta(minutes=25),
    )


# --- verdicts that could not be otherwise ---------------------------------------------------------------------------
def test_zones_short_fails_for_pods_in_no_more_zones_than_may_be_short(tmp_path: Path) -> None:
    world = {**SCENARIO["world"], "zones": ["us-west-2a"]}
    loss = [{"at": "12m", "zoneLoss": {"zone": "us-west-2a", "for": "20m"}}]
    found = verdict(tmp_path, {"zonesShort": {"workload": "web", "atMost": 1}}, world=world, weather=loss)
    assert not found.passed
    assert found.message == "pods ran only in us-west-2a: it could not fail; spread the pods over more zones"


def test_a_price_of_the_warm_up_is_not_judged(tmp_path: Path) -> None:
    weather = [{"at": "5m", "price": {"factor": 0.01}}]
    workloads = [{"name": "web", "replicas": 2, "cpu": 1}]
    found = verdict(tmp_path, {"cost": {"atMost": 0.02, "perHour": True}}, weather=weather, workloads=workloads)
    assert found.passed, found.message


def test_nodes_of_the_warm_up_are_not_launched_later(tmp_path: Path) -> None:
    workloads = [{"name": "web", "replicas": 2, "cpu": 1}]
    assert run(tmp_path, workloads=workloads, duration="20m").figures.launched == 0


def test_a_pod_that_comes_to_a_dead_node_is_not_evicted(tmp_path: Path) -> None:
    weather = [{"at": "10m", "instanceFailure": {"count": 1}}]
    assert run(tmp_path, weather=weather).figures.evictions == 0


def test_warnings_name_pods_without_a_node_and_drift_that_did_not_happen(tmp_path: Path) -> None:
    late = [{"name": "web", "replicas": 2, "cpu": 1, "overTime": [{"at": "39m50s", "replicas": 50}]}]
    asserted = [{"nodesAtEnd": {"drifted": True, "atMost": 0}}]
    found = run(tmp_path, workloads=late, assertions=asserted).warnings
    assert "assertions[0].nodesAtEnd: no node drifted" in found
    assert any("had no node at the end" in one for one in found)
    world = {"objects": [node_class(), node_pool("general", {"limits": {"cpu": "1"}})]}
    assert "no pod ran" in run(tmp_path, world=world, duration="15m").warnings


def test_an_amount_that_looks_like_its_bound_has_more_digits(tmp_path: Path) -> None:
    workloads = [{"name": "web", "replicas": 2, "cpu": 1}]
    whole = verdict(tmp_path, {"cost": {"atMost": 0.001}}, workloads=workloads)
    assert whole.assertion == "cost of at most $0.001"
    spent = float(whole.message.split()[0].removeprefix("$"))
    again = verdict(tmp_path, {"cost": {"atMost": spent - 0.0001}}, workloads=workloads)
    assert again.message.split()[0] != again.assertion.split()[-1]
