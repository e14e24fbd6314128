"""Every query of the dashboards and alerts, by Prometheus' own engine, over metrics scraped from a running Kerf.

In the life that it has here nodes come for pods, one pod fits nowhere, a machine is interrupted, nodes go. So nearly
all panels have something to show. The others need what such a life does not bring: that is listed, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.needed import needed
from tests.unit.charts.monitoring import DASHBOARDS, Query, alerts, dashboard, queries

from .binaries import ControlPlaneUnavailable
from .charts import Helm
from .control_plane import ControlPlane
from .installation import Installation
from .moto_aws.events import interruption_body
from .prometheus_programs import Answer, ask, find_prometheus
from .scraping import Scraper, Target
from .test_alerts import by_alert, rendered
from .test_messages import Queue

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]

HERE: Final = Path(__file__).parent
PODS: Final = 60

#: Metrics without which the scrapes are: neither a series nor a declaration. The reason why, and since when they come.
UNSEEN: Final = {
    "apiserver_admission_webhook_fail_open_count": "the installation has failurePolicy Fail: nothing passes unchecked",
    "apiserver_admission_webhook_rejection_count": "the API server has it once a webhook has refused something",
    "kerf_deletion_held": "nobody deletes many nodes: test_deletions.py",
    "kerf_node_mismatches": "all nodes are as planned: tests/scenarios/test_runaway.py",
    "kerf_garbage_collection_held": "no instance is without a claim: tests/simulation",
}
#: Metrics that are there, and of which this life makes no series that a panel or an alert asks for.
QUIET: Final = {
    "karpenter_cloudprovider_errors_total": "no call of AWS fails",
    "karpenter_cloudprovider_instance_launch_failures_total": "EC2 has all that is asked for",
    "karpenter_voluntary_disruption_failed_validations_total": "nothing comes between a decision and what is done",
    "kerf_consolidation_lost_usd_per_hour_total": "consolidation loses nothing, and is measured five minutes later",
    "kerf_consolidation_promised_usd_per_hour_total": "consolidation is measured five minutes later: tests/scenarios",
    "kerf_consolidation_realised_usd_per_hour_total": "consolidation is measured five minutes later: tests/scenarios",
    "kerf_ec2_requests_held_seconds_total": "few requests: nobody waits for another",
    "kerf_ec2_requests_throttled_total": "the EC2 that is played here refuses none",
    "kerf_errors_total": "nothing goes wrong",
    "kerf_webhook_bad_requests_total": "the API server sends nothing but reviews",
}
#: Expressions that select of a metric what this life does not have, though it has others of it.
NOT_HERE: Final = {
    'operator_nodepool_status_condition_count{job=~"kerf",name=~".*",type="GarbageCollectionHalted",status="True"}',
    'operator_nodeclaim_status_condition_count{job=~"kerf",karpenter_sh_nodepool=~".*",type="DeletionHeld",status="True"}',
    'kerf_actions_total{job=~"kerf",outcome!~"exists|gone|ok"}',
}
#: Alerts that have a reason here, and those that have one for a moment: nodes have just come, or go and use budgets up;
#: what has no place or is not ready is a problem after a while; the API server of a busy machine is slow.
FOUNDED: Final = frozenset({"KerfPodsUnschedulable", "KerfNodePoolNotReady", "KerfNodeClassNotReady"})
PASSING: Final = frozenset(
    {
        "KerfNodeNotInitialized",
        "KerfNodeDoesNotDrain",
        "KerfInstanceDoesNotEnd",
        "KerfDisruptionBlocked",
        "KerfTroubles",
        "KerfApiServerSlow",
    }
)


@dataclass(frozen=True, slots=True)
class Life:
    """What came of it: the names of all metrics, and the answers, by expression."""

    names: frozenset[str]
    answers: dict[str, Answer]


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("dashboards"), families=("c6a", "m6a")) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        installation.wait(lambda: _ready(installation, "general"), 60, "the pool is Ready")
        yield installation


@pytest.fixture(scope="module")
def life(kerf: Installation, helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Without promtool's companion skipped, in CI a failure."""
    programs = needed(find_prometheus, "Prometheus", ControlPlaneUnavailable)
    with Scraper(_targets(kerf), tmp_path_factory.mktemp("scrapes")) as scraper:
        _live(kerf)
    expressions = sorted({query.expr for query in queries()} | set(_conditions(helm)))
    names, answers = ask(programs, scraper.scrapes, expressions)
    print(f"\n{len(expressions)} expressions over {len(scraper.scrapes)} scrapes of {len(names)} metrics", flush=True)
    return Life(names, dict(zip(expressions, answers, strict=True)))


def _targets(kerf: Installation) -> list[Target]:
    """As the chart's ServiceMonitors name them, and the API server."""

    def of(job: str) -> dict[str, str]:
        return {"job": job, "namespace": "kerf", "pod": f"{job}-0", "instance": f"{job}-0"}

    def of_webhooks() -> str:
        text = kerf.kubectl("get", "--raw", "/metrics")
        return "".join(line for line in text.splitlines(keepends=True) if "apiserver_admission_webhook" in line)

    return [
        Target(of("kerf"), kerf.metrics),
        Target(of("kerf-webhook"), kerf.webhook_metrics),
        # A megabyte, most of which nobody looks at here.
        Target(of("apiserver"), of_webhooks, one_in=15),
    ]


def _ready(kerf: Installation, pool: str) -> bool:
    pools = [one for one in kerf.get("nodepools") if one["metadata"]["name"] == pool]
    conditions = [condition for one in pools for condition in one.get("status", {}).get("conditions", [])]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _live(kerf: Installation) -> None:
    kerf.kubectl("apply", "-f", str(HERE / "dashboards.yaml"))
    kerf.kubectl("scale", "deployment/web", f"--replicas={PODS}")
    kerf.wait(lambda: len(kerf.running()) == PODS, 120, "all pods run")
    kerf.wait(lambda: bool(kerf.events("FailedScheduling")), 60, "one pod has no place")
    Queue(kerf).send([interruption_body("spot", kerf.running_instances()[0]["id"], kerf.aws.region)])
    kerf.wait(lambda: kerf.metric("karpenter_nodeclaims_terminated_total") > 0, 120, "the machine's claim is gone")
    kerf.wait(lambda: len(kerf.running()) == PODS, 120, "all pods run again")
    kerf.kubectl("scale", "deployment/web", "--replicas=0")
    kerf.wait(lambda: not kerf.get("nodeclaims"), 120, "all nodes are given back")
    kerf.kubectl("delete", "pod/nowhere", "nodepool/nowhere", "ec2nodeclass/nowhere", "--now")


def _conditions(helm: Helm) -> dict[str, str]:
    """Expressions of the alerts as the chart renders them, and their names."""
    return {rule["expr"]: name for name, rule in by_alert(rendered(helm)).items()}


def test_prometheus_can_evaluate_each(life: Life) -> None:
    assert {expr: answer.error for expr, answer in life.answers.items() if answer.error} == {}


def test_there_is_such_a_metric(life: Life) -> None:
    """In the scrapes, or it is told why not; and no reason is kept that nobody asks for."""
    asked = {name for answer in life.answers.values() for name in answer.metrics}
    assert asked - life.names - set(UNSEEN) == set()
    assert set(UNSEEN) | set(QUIET) <= asked


def test_each_panel_shows_something(life: Life) -> None:
    empty = [str(query) for query in queries() if not life.answers[query.expr].series and not _silent(query, life)]
    assert empty == []


def _silent(query: Query, life: Life) -> bool:
    """Whether it asks for what this life does not have."""
    text = re.sub(r"\s+", " ", query.expr)
    return bool((set(UNSEEN) | set(QUIET)) & set(life.answers[query.expr].metrics)) or any(
        one in text for one in NOT_HERE
    )


def test_no_panel_draws_a_series_for_each_pod_or_node(life: Life) -> None:
    """What grows with the cluster is no panel: each result is by pool, zone, reason, rule."""
    most = max(queries(), key=lambda query: len(life.answers[query.expr].series))
    assert len(life.answers[most.expr].series) < PODS, most


def test_no_alert_is_raised_without_a_reason(life: Life, helm: Helm) -> None:
    """How long something lasts does not count here: of what alerts look for nothing may be so even for a moment."""
    holding = {name for expr, name in _conditions(helm).items() if life.answers[expr].series}
    assert FOUNDED <= holding <= FOUNDED | PASSING


def test_all_alerts_are_asked(life: Life, helm: Helm) -> None:
    assert set(_conditions(helm).values()) == {alert.name for alert in alerts()}
    assert set(_conditions(helm)) <= set(life.answers)


def test_grafana_is_given_the_files_as_they_are(helm: Helm) -> None:
    """Helm has templates of its own, and Grafana's legends look like them."""
    values = {"dashboards": {"enabled": True, "folder": "Nodes", "namespace": "monitoring", "label": "grafana"}}
    rendered_maps = {name: one for (kind, name), one in helm.template(values=values).items() if kind == "ConfigMap"}
    assert set(rendered_maps) == {f"kerf-dashboard-{path.stem}" for path in DASHBOARDS}
    for path in DASHBOARDS:
        one = rendered_maps[f"kerf-dashboard-{path.stem}"]
        assert {name: json.loads(text) for name, text in one["data"].items()} == {path.name: dashboard(path)}
        assert one["metadata"]["namespace"] == "monitoring"
        assert one["metadata"]["labels"]["grafana"] == "1"
        assert one["metadata"]["annotations"] == {"grafana_folder": "Nodes"}


def test_none_is_there_unless_it_is_asked_for(helm: Helm) -> None:
    assert not {kind for kind, _ in helm.template()} & {"ConfigMap", "PrometheusRule"}
