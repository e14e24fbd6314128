"""Flags and variables, as Karpenter spells them."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from kerf.model.settings import FeatureGates
from kerf.runtime.settings.options import OWN, SAME, Options
from kerf.runtime.settings.settings import (
    DEFAULT,
    ENVIRONMENT,
    FLAG,
    Help,
    SettingsError,
    effective,
    parse,
    shown,
)
from kerf_api.thresholds import Thresholds, saving

NAME = {"CLUSTER_NAME": "c"}
#: Karpenter's variables and defaults, as its reference has them, but for the one of its build for KWOK.
KARPENTERS = {
    "KARPENTER_SERVICE": "",
    "METRICS_PORT": "8080",
    "HEALTH_PROBE_PORT": "8081",
    "KUBE_CLIENT_QPS": "200",
    "KUBE_CLIENT_BURST": "300",
    "ENABLE_PROFILING": "false",
    "DISABLE_CONTROLLER_WARMUP": "true",
    "DISABLE_LEADER_ELECTION": "false",
    "DISABLE_CLUSTER_STATE_OBSERVABILITY": "false",
    "LEADER_ELECTION_NAME": "karpenter-leader-election",
    "LEADER_ELECTION_NAMESPACE": "",
    "MEMORY_LIMIT": "-1",
    "CPU_REQUESTS": "1000",
    "LOG_LEVEL": "info",
    "LOG_OUTPUT_PATHS": "stdout",
    "LOG_ERROR_OUTPUT_PATHS": "stderr",
    "BATCH_MAX_DURATION": "10s",
    "BATCH_IDLE_DURATION": "1s",
    "PREFERENCE_POLICY": "Respect",
    "MIN_VALUES_POLICY": "Strict",
    "IGNORE_DRA_REQUESTS": "true",
    "FEATURE_GATES": "CapacityBuffer=false,NodeOverlay=false,NodeRepair=false,ReservedCapacity=true,"
    "SpotToSpotConsolidation=false,StaticCapacity=false",
    "SCHEDULER_CONFIG": "",
    "CLUSTER_NAME": "",
    "CLUSTER_ENDPOINT": "",
    "CLUSTER_CA_BUNDLE": "",
    "ISOLATED_VPC": "false",
    "EKS_CONTROL_PLANE": "false",
    "VM_MEMORY_OVERHEAD_PERCENT": "0.075",
    "INTERRUPTION_QUEUE": "",
    "RESERVED_ENIS": "0",
    "ENABLE_ZONAL_SHIFT": "false",
    "DISABLE_DRY_RUN": "false",
    "AMI_REFRESH_INTERVAL": "1m",
    "SUBNET_REFRESH_INTERVAL": "1m",
    "AWS_FEATURE_GATES": "",
}


def test_the_defaults_are_karpenters() -> None:
    options = parse([], NAME)
    assert options == Options(cluster_name="c")
    settings = options.settings
    assert (settings.batch_idle, settings.batch_max) == (timedelta(seconds=1), timedelta(seconds=10))
    assert settings.gates == FeatureGates(reserved_capacity=True)
    assert (options.metrics_port, options.health_probe_port) == (8080, 8081)


@pytest.mark.parametrize(
    ("arguments", "environment", "name", "value"),
    [
        (["--cluster-name=x"], {}, "cluster_name", "x"),
        (["-cluster-name", "x"], NAME, "cluster_name", "x"),
        (["--batch-max-duration", "1m30s"], {**NAME, "BATCH_MAX_DURATION": "20s"}, "batch_max_duration", 90),
        ([], {**NAME, "BATCH_IDLE_DURATION": "300ms"}, "batch_idle_duration", 0.3),
        (["--improve-seconds", "0"], NAME, "improve_seconds", 0),
        ([], {**NAME, "EC2_REQUEST_RATE": "0.5"}, "ec2_request_rate", 0.5),
        ([], {**NAME, "DETAILED_METRICS": "pods, nodes,"}, "detailed_metrics", ("nodes", "pods")),
        (["--detailed-metrics=all"], NAME, "detailed_metrics", ("conditions", "nodes", "offerings", "pods")),
        ([], {**NAME, "NOMINATE_PODS": "true"}, "nominate_pods", True),
        ([], {**NAME, "LEADER_ELECTION_NAME": "kerf.two-1"}, "leader_election_name", "kerf.two-1"),
        ([], {**NAME, "BATCH_LONE_DURATION": "0s"}, "batch_lone_duration", 0),
        ([], {**NAME, "EXPIRE_WITHIN_BUDGETS": "true"}, "expire_within_budgets", True),
        ([], {**NAME, "CONSOLIDATION_MINIMUM_SAVING": "5%"}, "consolidation_minimum_saving", saving("5%")),
        ([], {**NAME, "DELETION_GUARD_PERCENT": "25"}, "deletion_guard_percent", 25),
        (["--deletion-guard-wait=0s"], NAME, "deletion_guard_wait", 0),
        (["--deletion-guard-wait", "5m"], NAME, "deletion_guard_wait", 300),
        ([], {**NAME, "CONSOLIDATION_PAYBACK_TIME": "0s"}, "consolidation_payback_time", 0),
        (["--consolidation-minimum-age=1h"], NAME, "consolidation_minimum_age", 3600),
        (["--isolated-vpc"], NAME, "isolated_vpc", True),
        (["--isolated-vpc=false"], {**NAME, "ISOLATED_VPC": "true"}, "isolated_vpc", False),
        ([], {**NAME, "EKS_CONTROL_PLANE": "T"}, "eks_control_plane", True),
        ([], {**NAME, "AWS_REGION": "eu-west-1"}, "region", "eu-west-1"),
        ([], {**NAME, "AWS_ENDPOINT_URL": "http://127.0.0.1:5000"}, "aws_endpoint_url", "http://127.0.0.1:5000"),
        ([], {**NAME, "VM_MEMORY_OVERHEAD_PERCENT": "0.1"}, "vm_memory_overhead_percent", 0.1),
        ([], {**NAME, "INTERRUPTION_QUEUE": ""}, "interruption_queue", ""),
        (["--log-level", "debug"], NAME, "log_level", "debug"),
        ([], {**NAME, "CPU_REQUESTS": "0"}, "cpu_requests", 1000),
        ([], {**NAME, "CPU_REQUESTS": "500"}, "cpu_requests", 500),
        ([], {**NAME, "AWS_FEATURE_GATES": "NodeClassCEL=true"}, "aws_feature_gates", ("NodeClassCEL=true",)),
    ],
)
def test_a_flag_beats_a_variable_beats_the_default(
    arguments: list[str], environment: dict[str, str], name: str, value: Any
) -> None:
    found = getattr(parse(arguments, environment), name)
    assert (found.total_seconds() if isinstance(found, timedelta) else found) == value


@pytest.mark.parametrize(
    ("environment", "minutes"),
    [({}, 5), ({"AMI_REFRESH_INTERVAL": "1m"}, 1), ({"SUBNET_REFRESH_INTERVAL": "2m"}, 2)],
)
def test_a_class_is_looked_up_at_the_shorter_of_two_intervals(environment: dict[str, str], minutes: int) -> None:
    assert parse([], {**NAME, **environment}).settings.refresh == timedelta(minutes=minutes)


def test_what_consolidation_has_to_bring_is_part_of_the_settings() -> None:
    arguments = ["--consolidation-minimum-saving=0.02", "--consolidation-payback-time=1h"]
    found = parse([*arguments, "--consolidation-minimum-age=30m"], NAME).settings.thresholds
    assert found == Thresholds(saving("0.02"), timedelta(hours=1), timedelta(minutes=30))


def test_gates() -> None:
    text = "NodeRepair=true,ReservedCapacity=false,Drift=true,SpotToSpotConsolidation=true,"
    gates = parse(["--feature-gates", text], NAME).feature_gates
    assert gates == FeatureGates(node_repair=True, reserved_capacity=False, spot_to_spot_consolidation=True)


@pytest.mark.parametrize(
    ("environment", "open_"),
    [
        ({"AWS_FEATURE_GATES": "NodeClassCEL=true"}, True),
        ({"AWS_FEATURE_GATES": "NodeClassCEL=false"}, False),
        ({"FEATURE_GATES": "NodeClassCEL=true"}, False),
        ({}, False),
    ],
)
def test_the_gate_for_expressions_is_the_providers(environment: dict[str, str], open_: bool) -> None:
    assert parse([], {**NAME, **environment}).settings.gates == FeatureGates(node_class_cel=open_)


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        ([], {}, "CLUSTER_NAME"),
        (["--no-such-flag=1"], NAME, "--no-such-flag"),
        (["--metrics-port"], NAME, "--metrics-port"),
        (["--metrics-port=99999"], NAME, "--metrics-port"),
        (["--leader-election-name=Big"], NAME, "--leader-election-name: must be a DNS name"),
        ([], {**NAME, "LEADER_ELECTION_NAME": "a_b"}, "LEADER_ELECTION_NAME: must be a DNS name"),
        ([], {**NAME, "LEADER_ELECTION_NAME": "a." * 127}, "LEADER_ELECTION_NAME: must be a DNS name"),
        (["stray"], NAME, "stray"),
        ([], {**NAME, "BATCH_IDLE_DURATION": "10"}, "BATCH_IDLE_DURATION"),
        ([], {**NAME, "BATCH_IDLE_DURATION": "11s"}, "BATCH_IDLE_DURATION"),
        ([], {**NAME, "IMPROVE_SECONDS": "1s"}, "IMPROVE_SECONDS"),
        ([], {**NAME, "DELETION_GUARD_PERCENT": "101"}, "DELETION_GUARD_PERCENT"),
        ([], {**NAME, "DELETION_GUARD_WAIT": "-1m"}, "DELETION_GUARD_WAIT"),
        ([], {**NAME, "EC2_REQUEST_RATE": "-1"}, "EC2_REQUEST_RATE"),
        ([], {**NAME, "DETAILED_METRICS": "pods,clouds"}, "DETAILED_METRICS: must be some of conditions, nodes"),
        ([], {**NAME, "CONSOLIDATION_MINIMUM_SAVING": "5 %"}, "CONSOLIDATION_MINIMUM_SAVING: must be a share"),
        ([], {**NAME, "CONSOLIDATION_PAYBACK_TIME": "Never"}, "CONSOLIDATION_PAYBACK_TIME: must be a duration"),
        ([], {**NAME, "CANARY_SOAK": "true"}, "CANARY_SOAK: must be a duration"),
        ([], {**NAME, "PLAN_FIRST": "yes"}, "PLAN_FIRST: must be true, false, or the longest time"),
        ([], {**NAME, "CONSOLIDATION_MINIMUM_AGE": "1d"}, "CONSOLIDATION_MINIMUM_AGE: must be a duration"),
        ([], {**NAME, "EC2_REQUEST_RATE": "fast"}, "EC2_REQUEST_RATE"),
        (["--improve-seconds", "nan"], NAME, "improve-seconds"),
        ([], {**NAME, "AMI_REFRESH_INTERVAL": "30s"}, "AMI_REFRESH_INTERVAL"),
        ([], {**NAME, "PREFERENCE_POLICY": "respect"}, "PREFERENCE_POLICY"),
        ([], {**NAME, "MIN_VALUES_POLICY": "Lenient"}, "MIN_VALUES_POLICY"),
        ([], {**NAME, "LOG_LEVEL": "warn"}, "LOG_LEVEL"),
        ([], {**NAME, "ISOLATED_VPC": "yes"}, "ISOLATED_VPC"),
        ([], {**NAME, "RESERVED_ENIS": "-1"}, "RESERVED_ENIS"),
        ([], {**NAME, "VM_MEMORY_OVERHEAD_PERCENT": "7.5"}, "VM_MEMORY_OVERHEAD_PERCENT"),
        ([], {**NAME, "CLUSTER_ENDPOINT": "cluster.local"}, "CLUSTER_ENDPOINT"),
        ([], {**NAME, "CLUSTER_CA_BUNDLE": "not base64!"}, "CLUSTER_CA_BUNDLE"),
        ([], {**NAME, "FEATURE_GATES": "NodeRepair"}, "FEATURE_GATES"),
        ([], {**NAME, "FEATURE_GATES": "NodeRepare=true"}, "FEATURE_GATES"),
        ([], {**NAME, "AWS_FEATURE_GATES": "NodeClassCell=true"}, "AWS_FEATURE_GATES"),
        ([], {**NAME, "AWS_FEATURE_GATES": "NodeRepair=true"}, "AWS_FEATURE_GATES"),
        (["---isolated-vpc"], NAME, "---isolated-vpc"),
        (["--isolated-vpc=1"], NAME, "--isolated-vpc"),
        ([], {**NAME, "METRICS_PORT": "8_080"}, "METRICS_PORT"),
        ([], {**NAME, "METRICS_PORT": " 8080"}, "METRICS_PORT"),
        ([], {**NAME, "VM_MEMORY_OVERHEAD_PERCENT": "0_1"}, "VM_MEMORY_OVERHEAD_PERCENT"),
        ([], {**NAME, "WEBHOOK_SERVICE": "w"}, "WEBHOOK_CERT_SECRET"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], environment: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(arguments, environment)
    assert len(caught.value.problems) == 1
    assert named in caught.value.problems[0]


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse(["--metrics-port=x", "--nonsense=1"], {"LOG_LEVEL": "loud"})
    assert len(caught.value.problems) == 4


def test_all_mistakes_in_one_setting_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse([], {**NAME, "FEATURE_GATES": "NodeRepare=true,NodeRepair,StaticCapacity=true,Nothing=false"})
    assert len(caught.value.problems) == 3


def test_an_effective_value_says_where_it_comes_from() -> None:
    arguments = ["--batch-max-duration=20s", "--isolated-vpc"]
    rows = effective(arguments, {**NAME, "BATCH_MAX_DURATION": "30s", "FEATURE_GATES": "NodeRepair=true"})
    found = {row.variable: (row.value, row.source) for row in rows}
    assert found["CLUSTER_NAME"] == ("c", ENVIRONMENT)
    assert found["BATCH_MAX_DURATION"] == ("20s", FLAG)
    assert found["ISOLATED_VPC"] == ("true", FLAG)
    assert found["BATCH_IDLE_DURATION"] == ("1s", DEFAULT)
    assert found["FEATURE_GATES"][1] == ENVIRONMENT
    assert "NodeRepair=true,ReservedCapacity=true" in found["FEATURE_GATES"][0]


def test_what_is_shown_of_a_setting_reads_back() -> None:
    spread = '{"podTopologySpread": {"defaultConstraints": ['
    spread += '{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}}'
    odd = {
        "SCHEDULER_CONFIG": spread,
        "BATCH_IDLE_DURATION": "1.25s",
        "KARPENTER_LEASES": "one,two/name",
        "CONSOLIDATION_MINIMUM_SAVING": "5%",
        "AWS_FEATURE_GATES": "NodeClassCEL=true",
        "FEATURE_GATES": "StaticCapacity=true,ReservedCapacity=false",
    }
    for environment in (NAME, {**NAME, **odd}):
        again = {row.variable: row.value for row in effective([], environment)}
        assert parse([], again) == parse([], environment)


def test_every_setting_of_karpenters_is_there_and_the_same_or_it_says_what_differs() -> None:
    ours = {option.metadata["env"]: option for option in fields(Options)}
    for variable, default in KARPENTERS.items():
        option = ours.pop(variable)
        assert option.metadata["flag"] == "--" + variable.lower().replace("_", "-")
        assert option.metadata["karpenter"] != OWN
        if option.metadata["karpenter"] == SAME:
            assert shown(option.default) == default, variable
        elif shown(option.default) != default:
            assert default in option.metadata["karpenter"], variable
    assert all(option.metadata["karpenter"] != SAME for option in ours.values())


def test_help() -> None:
    with pytest.raises(Help):
        parse(["--help"], {})


def test_what_the_log_of_a_start_shows_has_no_password() -> None:
    given = {"CLUSTER_NAME": "a", "AWS_ENDPOINT_URL": "https://user:hunter2@proxy.example.com:8080"}
    shown = {row.variable: row.logged for row in effective([], given)}["AWS_ENDPOINT_URL"]
    assert shown["value"] == "https://proxy.example.com:8080"
