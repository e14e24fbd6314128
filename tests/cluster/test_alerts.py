"""The alerts as the chart renders them, by Prometheus' own judge: each fires when it should, and else is silent.

The examples are in `alerts/`, a file for each group.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.needed import needed
from tests.unit.charts.monitoring import RULE_TESTS, alerts

from .binaries import ControlPlaneUnavailable
from .charts import Helm
from .prometheus_programs import PROMTOOL, find_prometheus

pytestmark = pytest.mark.cluster

GROUPS: Final = sorted(RULE_TESTS.glob("*.yaml"))
#: What the files of tests call the rules.
RULES: Final = "rules.yaml"


@pytest.fixture(scope="module")
def promtool() -> Path:
    """Skipped without it, in CI a failure."""
    return needed(find_prometheus, "promtool", ControlPlaneUnavailable) / PROMTOOL


def rendered(helm: Helm, **values: Any) -> list[Any]:
    """The groups of rules for these values of prometheusRule."""
    found: list[Any] = rule(helm, {"prometheusRule": {"enabled": True, **values}})["spec"]["groups"]
    return found


def rule(helm: Helm, values: Mapping[str, Any], release: str = "kerf") -> Any:
    return helm.template(values=values, release=release)["PrometheusRule", release]


def by_alert(groups: list[Any]) -> dict[str, Any]:
    return {one["alert"]: one for group in groups for one in group["rules"]}


def written(folder: Path, groups: list[Any]) -> Path:
    path = folder / RULES
    path.write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    return path


def tried(promtool: Path, folder: Path, tests: Path) -> subprocess.CompletedProcess[str]:
    """The rules that lie in a folder, by a file of tests."""
    beside = folder / tests.name
    beside.write_text(tests.read_text(encoding="utf-8"), encoding="utf-8")
    return _run(promtool, "test", "rules", str(beside))


def _run(promtool: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(promtool), *arguments], capture_output=True, text=True, check=False, timeout=600)


def test_prometheus_takes_the_rules(helm: Helm, promtool: Path, tmp_path: Path) -> None:
    done = _run(promtool, "check", "rules", "--lint-fatal", str(written(tmp_path, rendered(helm))))
    assert done.returncode == 0, done.stderr
    assert f"{len(alerts())} rules found" in done.stdout


@pytest.mark.parametrize("tests", GROUPS, ids=lambda path: path.stem)
def test_each_fires_when_it_should_and_else_does_not(helm: Helm, promtool: Path, tmp_path: Path, tests: Path) -> None:
    written(tmp_path, rendered(helm))
    done = tried(promtool, tmp_path, tests)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("alert", "change"),
    [
        ("KerfNoLeader", {"expr": 'sum(leader_election_master_status{job="kerf"}) < 1'}),
        ("KerfNodePoolNearLimit", {"for": "1h"}),
        ("KerfInternalError", {"expr": 'increase(kerf_errors_total{job="kerf",where="decide"}[15m]) > 0'}),
        ("KerfDisruptionBlocked", {"expr": 'karpenter_nodepools_allowed_disruptions{job="kerf"} == 0'}),
    ],
    ids=["nobody left to say so", "too patient", "the first one", "each reason by itself"],
)
def test_one_that_is_wrong_is_found(
    helm: Helm, promtool: Path, tmp_path: Path, alert: str, change: Mapping[str, str]
) -> None:
    groups = rendered(helm)
    by_alert(groups)[alert].update(change)
    written(tmp_path, groups)
    (group,) = (one.group for one in alerts() if one.name == alert)
    done = tried(promtool, tmp_path, RULE_TESTS / f"{group}.yaml")
    assert done.returncode != 0
    assert alert in done.stdout + done.stderr


def test_one_may_be_left_out_and_another_be_tuned(helm: Helm) -> None:
    usual = by_alert(rendered(helm))
    tuned = {"threshold": 75, "for": "1h", "severity": "page"}
    found = by_alert(rendered(helm, alerts={"KerfNoLeader": {"enabled": False}, "KerfNodePoolNearLimit": tuned}))
    assert usual.keys() - found.keys() == {"KerfNoLeader"}
    near = found["KerfNodePoolNearLimit"]
    assert near["expr"] == usual["KerfNodePoolNearLimit"]["expr"].replace("> 90", "> 75")
    assert (near["for"], near["labels"]) == ("1h", {"severity": "page"})


def test_a_group_that_is_left_out_whole_leaves_nothing(helm: Helm) -> None:
    """Prometheus would refuse a group without rules."""
    off = {one.name: {"enabled": False} for one in alerts() if one.group == "aws"}
    assert [group["name"] for group in rendered(helm, alerts=off)] == [
        "kerf.controller",
        "kerf.disruption",
        "kerf.nodes",
        "kerf.webhook",
    ]


def test_where_the_webhook_runs_elsewhere_nobody_waits_for_its_metrics(helm: Helm) -> None:
    values = {"prometheusRule": {"enabled": True}, "webhook": {"url": "https://10.0.0.5:8443", "caBundle": "Z2l2ZW4="}}
    assert not any("Webhook" in name for name in by_alert(rule(helm, values)["spec"]["groups"]))


def test_rules_are_about_the_job_of_the_release(helm: Helm) -> None:
    """As the ServiceMonitors of a release make it, or as its user says."""
    values = {"prometheusRule": {"enabled": True}}
    taken_over = by_alert(rule(helm, values, release="karpenter")["spec"]["groups"])
    assert 'job="karpenter"' in taken_over["KerfNoLeader"]["expr"]
    assert 'job="karpenter-webhook"' in taken_over["KerfWebhookDown"]["expr"]
    own = by_alert(rendered(helm, job="kubernetes-pods", runbookUrl="https://docs.example.com/troubleshooting.html"))
    assert 'job="kubernetes-pods"' in own["KerfNoLeader"]["expr"]
    where = "https://docs.example.com/troubleshooting.html#kerfnoleader"
    assert own["KerfNoLeader"]["annotations"]["runbook_url"] == where


def test_without_the_prometheus_operator_there_are_none(helm: Helm) -> None:
    objects = helm.template(values={"prometheusRule": {"enabled": True}}, known=())
    assert not any(kind == "PrometheusRule" for kind, _ in objects)
