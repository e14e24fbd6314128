"""Prometheus metrics, by Karpenter's names where it has them, by `kerf_` where they are ours.

Counters and histograms are fed as things happen; gauges that follow from a plan or a snapshot are kept as plain numbers
and only rendered at a scrape. What each is called, its labels, buckets and help are in the tables of
`names.py`. Source: operations reference §2.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from kerf.model.gauges import PlanGauge
from kerf.telemetry.catalogue.listed_libraries import WITH_CONDITIONS
from kerf.telemetry.catalogue.listing import CONDITIONS
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, at_once
from kerf.telemetry.series import build
from kerf.telemetry.series.collectors import Summary, Unfinished, Unsynced
from kerf.telemetry.series.conditions import ConditionGauges
from kerf.telemetry.series.fleet import Fleet

#: A series: its labels in order, as pairs.
Labels = tuple[tuple[str, str], ...]
#: Of what Karpenter has for each single simulation there is one series here: a new one each time would say nothing new.
SOLVER: Labels = (("controller", "provisioner"), ("scheduling_id", ""))

#: The one controller that there is.
LOOP = "loop"


#: The metric that shows a number of a plan.
NAMES: Final = {
    PlanGauge.ALLOWED_DISRUPTIONS: "karpenter_nodepools_allowed_disruptions",
    PlanGauge.NODES_CONSUMING_BUDGETS: "karpenter_nodepools_nodes_consuming_budgets",
    PlanGauge.ELIGIBLE_NODES: "karpenter_voluntary_disruption_eligible_nodes",
    PlanGauge.PENDING_PODS_BY_ZONE: "karpenter_scheduler_pending_pods_by_effective_zone_count",
    PlanGauge.REFUSED_PODS: "kerf_refused_pods",
    PlanGauge.DELETIONS_HELD: "kerf_deletion_held",
    PlanGauge.GARBAGE_COLLECTION_HELD: "kerf_garbage_collection_held",
    PlanGauge.NODE_MISMATCHES: "kerf_node_mismatches",
    PlanGauge.CHANGES_AWAITING_APPROVAL: "kerf_changes_awaiting_approval",
}


class LateGauges(Collector):
    """Gauges as plain numbers; a name's series are replaced as a whole."""

    def __init__(self) -> None:
        self._by_name: dict[str, Mapping[Labels, float]] = {}

    def of_plan(self, series: Mapping[tuple[PlanGauge, Labels], float]) -> None:
        """Replace the series of every gauge that occurs here."""
        fresh: dict[str, dict[Labels, float]] = {}
        for (gauge, labels), value in series.items():
            fresh.setdefault(NAMES[gauge], {})[labels] = value
        self._by_name = {**self._by_name, **fresh}

    def replace(self, name: str, series: Mapping[Labels, float]) -> None:
        """Replace one name's series, also by nothing."""
        self._by_name = {**self._by_name, name: dict(series)}

    def collect(self) -> Iterable[Metric]:
        for name, series in sorted(self._by_name.items()):
            names = [label for label, _ in next(iter(series), ())]
            family = GaugeMetricFamily(name, METRICS[name].about, labels=names)
            for labels, value in sorted(series.items()):
                family.add_metric([text for _, text in labels], value)
            yield family


class Metrics:
    """All metrics: a registry of their own, and beside it the conditions, which are too many for one."""

    def __init__(self, registry: CollectorRegistry | None = None, details: Collection[str] = ()) -> None:
        """`details`: families with a series for each object that are reported (`listing.DETAILS`)."""
        self.registry, self.details = registry or CollectorRegistry(), frozenset(details)
        self.gauges, self.conditions = LateGauges(), ConditionGauges(everything=CONDITIONS in self.details)
        self.fleet = Fleet()
        for one in (self.gauges, self.fleet):
            self.registry.register(one)
        self.gauges.replace("karpenter_cluster_state_synced", {(): 0.0})
        #: What has more series than a registry is made for writes itself.
        self.writers: list[Callable[[GiveWay], bytes]] = []
        for make in (self._claims, self._pods, self._clouds, self._conditions, self._loop, self._others):
            make()

    def with_process(self) -> Metrics:
        """With what the process itself uses, and without a second series per counter for when it began."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        told = {
            "version": version("kerf"),
            "goversion": f"python{platform.python_version()}",
            "goarch": platform.machine(),
            "commit": build.commit(os.environ),
        }
        self.gauges.replace("karpenter_build_info", {tuple(told.items()): 1.0})
        return self

    def text(self, give_way: GiveWay = at_once) -> bytes:
        """Everything in Prometheus' text format. Any thread may ask."""
        give_way()
        return generate_latest(self.registry) + b"".join(write(give_way) for write in self.writers)

    # --- what is counted and timed ------------------------------------------------------------------------------
    def _claims(self) -> None:
        claim, disruption = "karpenter_nodeclaims", "karpenter_voluntary_disruption"
        self.created = self._counter(f"{claim}_created_total")
        self.terminated = self._counter(f"{claim}_terminated_total")
        self.disrupted = self._counter(f"{claim}_disrupted_total")
        self.unhealthy_disrupted = self._counter(f"{claim}_unhealthy_disrupted_total")
        self.termination = self._histogram(f"{claim}_termination_duration_seconds")
        self.instance_termination = self._histogram(f"{claim}_instance_termination_duration_seconds")
        self.decisions = self._counter(f"{disruption}_decisions_total")
        self.decisions_by_pool = self._counter(f"{disruption}_decisions_by_nodepool_total")
        self.failed_validations = self._counter(f"{disruption}_failed_validations_total")
        self.failed_replacements = self._counter(f"{disruption}_queue_failures_total")
        self.proposing = self._histogram(f"{disruption}_decision_evaluation_duration_seconds")
        self.drained = self._counter("karpenter_nodes_drained_total")
        self.nodes_created = self._counter("karpenter_nodes_created_total")
        self.nodes_terminated = self._counter("karpenter_nodes_terminated_total")
        self.node_lifetime = self._histogram("karpenter_nodes_lifetime_duration_seconds")
        self.node_termination = self._summary("karpenter_nodes_termination_duration_seconds")

    def _pods(self) -> None:
        pods = "karpenter_pods"
        self.evictions = self._counter(f"{pods}_eviction_requests_total")
        self.pods_drained = self._counter(f"{pods}_drained_total")
        self.pods_disrupted = self._counter(f"{pods}_disruption_initiated_total")
        self.pods_bound = self._histogram(f"{pods}_bound_duration_seconds")
        self.pods_decided = self._histogram(f"{pods}_scheduling_decision_duration_seconds")
        self.pods_provisioned_bound = self._histogram(f"{pods}_provisioning_bound_duration_seconds")
        self.pods_provisioned_started = self._histogram(f"{pods}_provisioning_startup_duration_seconds")
        self.pods_started = self._summary(f"{pods}_startup_duration_seconds")
        self.scheduling = self._histogram("karpenter_scheduler_scheduling_duration_seconds")
        unfinished, unsynced = (
            "karpenter_scheduler_unfinished_work_seconds",
            "karpenter_cluster_state_unsynced_time_seconds",
        )
        self.unfinished = Unfinished(unfinished, METRICS[unfinished].about, SOLVER)
        self.unsynced = Unsynced(unsynced, METRICS[unsynced].about)
        for one in (self.unfinished, self.unsynced):
            self.registry.register(one)

    def _clouds(self) -> None:
        cloud, queue = "karpenter_cloudprovider", "karpenter_interruption"
        self.cloud_calls = self._histogram(f"{cloud}_duration_seconds")
        self.cloud_errors = self._counter(f"{cloud}_errors_total")
        self.launch_failures = self._counter(f"{cloud}_instance_launch_failures_total")
        self.termination_failures = self._counter(f"{cloud}_instance_termination_failures_total")
        self.batch_size = self._histogram(f"{cloud}_batcher_batch_size")
        self.user_data = self._gauge("karpenter_ec2nodeclasses_userdata_bytes")
        self.received = self._counter(f"{queue}_received_messages_total")
        self.deleted_messages = self._counter(f"{queue}_deleted_messages_total")
        self.message_age = self._histogram(f"{queue}_message_queue_duration_seconds")
        self.unhealthy_instances = self._counter(f"{queue}_instance_status_unhealthy_total")
        self.aws_calls = self._counter("aws_sdk_go_request_total")
        self.aws_attempts = self._counter("aws_sdk_go_request_attempt_total")
        self.aws_retries = self._histogram("aws_sdk_go_request_retry_count")
        self.aws_seconds = self._histogram("aws_sdk_go_request_duration_seconds")

    def _conditions(self) -> None:
        condition = "operator_{}_status_condition_{}"
        self.transitions = {k: self._counter(condition.format(k, "transitions_total")) for k in WITH_CONDITIONS}
        self.transition = {k: self._histogram(condition.format(k, "transition_seconds")) for k in WITH_CONDITIONS}
        self.ends = {k: self._histogram(f"operator_{k}_termination_duration_seconds") for k in WITH_CONDITIONS}

    def _loop(self) -> None:
        self.reconciled = self._counter("controller_runtime_reconcile_total")
        self.reconcile_errors = self._counter("controller_runtime_reconcile_errors_total")
        self.reconcile_seconds = self._histogram("controller_runtime_reconcile_time_seconds")
        self.kube_calls = self._counter("client_go_request_total")
        self.kube_seconds = self._histogram("client_go_request_duration_seconds")
        self.leading = self._gauge("leader_election_master_status")
        self.workers = self._gauge("controller_runtime_active_workers").labels(LOOP)
        self.workers.set(0)
        self._gauge("controller_runtime_max_concurrent_reconciles").labels(LOOP).set(1)
        self.news = self._gauge("workqueue_depth")

    def _others(self) -> None:
        self.ticks = self._histogram("kerf_tick_duration_seconds")
        self.actions = self._counter("kerf_actions_total")
        self.not_kept = self._counter("kerf_fields_not_kept_total")
        self.errors = self._counter("kerf_errors_total")
        self.events = self._counter("kerf_events_total")
        self.recorder_failing = self._gauge("kerf_recorder_failing")
        self.record_upload_failing = self._gauge("kerf_record_upload_failing")
        self.promised, self.realised, self.lost = (
            self._counter(f"kerf_consolidation_{what}_usd_per_hour_total") for what in ("promised", "realised", "lost")
        )
        self.ec2_held = self._counter("kerf_ec2_requests_held_seconds_total")
        self.ec2_refused = self._counter("kerf_ec2_requests_throttled_total")
        self.kube_held = self._counter("kerf_api_requests_held_seconds_total")
        self.karpenter_lease = self._gauge("kerf_karpenter_lease")

    def _counter(self, name: str) -> Counter:
        row = METRICS[name]
        return Counter(name, row.about, row.labels, registry=self.registry)

    def _gauge(self, name: str) -> Gauge:
        row = METRICS[name]
        return Gauge(name, row.about, row.labels, registry=self.registry)

    def _histogram(self, name: str) -> Histogram:
        row = METRICS[name]
        return Histogram(name, row.about, row.labels, buckets=row.buckets, registry=self.registry)

    def _summary(self, name: str) -> Summary:
        row = METRICS[name]
        found = Summary(name, row.about, row.labels)
        self.registry.register(found)
        return found
