"""Prometheus metrics, by Karpenter's names where it has them, by `kerf_` where they are ours.

Counters and histograms are fed as things happen; gauges that follow from a plan or a snapshot are kept as plain numbers
and only rendered when somebody scrapes. Source: operations reference §2.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from reconciler.telemetry.collectors import Summary, Unfinished
from reconciler.telemetry.conditions import ConditionGauges
from reconciler.telemetry.precedence import GiveWay, at_once

_UP_TO_A_SECOND = (0.005, 0.01, 0.025, *(n / 100 for n in range(5, 50, 5)), *(n / 10 for n in range(5, 11)))
_UP_TO_TEN = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
#: Seconds; the buckets of every duration that has none of its own.
DURATIONS = (*_UP_TO_A_SECOND, *_UP_TO_TEN, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0)
TERMINATIONS = tuple(float(2**n) for n in range(12))
TICKS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

#: A series: its labels in order, as pairs.
Labels = tuple[tuple[str, str], ...]
#: Of what Karpenter has for each single simulation there is one series here: a new one each time would be no news.
SOLVER: Labels = (("controller", "provisioner"), ("scheduling_id", ""))

HELP = {
    "karpenter_build_info": "1, by the build that runs.",
    "karpenter_nodepools_limit": "Limits of a node pool (spec.limits), per resource.",
    "karpenter_nodepools_usage": "Resources in use by a node pool (status.resources), per resource.",
    "karpenter_nodepools_allowed_disruptions": "Disruptions that a node pool's budgets allow now.",
    "karpenter_nodepools_nodes_consuming_budgets": "Nodes that already count against the budgets of a node pool.",
    "karpenter_cluster_state_node_count": "Nodes in the cluster, node claims without a node included.",
    "karpenter_cluster_state_synced": "1 when all that is watched has been listed; before that nothing is decided.",
    "karpenter_scheduler_unschedulable_pods_count": "Pods for which no placement was found in the last look.",
    "karpenter_scheduler_ignored_pods_count": "Pending pods that are not ours to place, or cannot be read.",
    "karpenter_scheduler_queue_depth": "Pods that wait for a place.",
    "karpenter_scheduler_pending_pods_by_effective_zone_count": "Pods that waited in the last pass, by zone.",
    "kerf_scheduling_cost_usd_per_hour": "What the nodes of the latest pass that bought any cost.",
    "kerf_scheduling_cost_bound_usd_per_hour": "What nodes for their pods cost at least; absent when it is not known.",
    "kerf_scheduling_cost_ratio": "Their cost by the least that it can be; absent when that is not known.",
    "kerf_refusals": "What was not done in the last look, by the code of the reason.",
    "kerf_garbage_collection_held": "Instances that would be ended but for the mass-kill guard, by who is asked.",
    "kerf_latest_failed_action_timestamp_seconds": "When an action of this kind failed so last, and in which look.",
    "kerf_deletion_held": "NodeClaims that others than Kerf have deleted, and whose drain is held, by their node pool.",
}


class LateGauges(Collector):
    """Gauges as plain numbers; a name's series are replaced as a whole."""

    def __init__(self) -> None:
        self._by_name: dict[str, Mapping[Labels, float]] = {}

    def put(self, series: Mapping[tuple[str, Labels], float]) -> None:
        """Replace the series of every name that occurs here."""
        fresh: dict[str, dict[Labels, float]] = {}
        for (name, labels), value in series.items():
            fresh.setdefault(name, {})[labels] = value
        self._by_name = {**self._by_name, **fresh}

    def replace(self, name: str, series: Mapping[Labels, float]) -> None:
        """Replace one name's series, also by nothing."""
        self._by_name = {**self._by_name, name: dict(series)}

    def collect(self) -> Iterable[Metric]:
        for name, series in sorted(self._by_name.items()):
            names = [label for label, _ in next(iter(series), ())]
            family = GaugeMetricFamily(name, HELP.get(name, "A number of the last look."), labels=names)
            for labels, value in sorted(series.items()):
                family.add_metric([text for _, text in labels], value)
            yield family


class Metrics:
    """All metrics: a registry of their own, and beside it the conditions, which are too many for one."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.gauges, self.conditions = LateGauges(), ConditionGauges()
        self.registry.register(self.gauges)
        self.gauges.replace("karpenter_cluster_state_synced", {(): 0.0})
        #: What has more series than a registry is made for writes itself.
        self.writers: list[Callable[[GiveWay], bytes]] = [self.conditions.text]
        self._claims()
        self._pods()
        self._others()

    def with_process(self) -> Metrics:
        """With what the process itself uses, and without a second series per counter for when it began."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        build = {
            "version": version("kerf"),
            "goversion": f"python{platform.python_version()}",
            "goarch": platform.machine(),
            "commit": "",
        }
        self.gauges.replace("karpenter_build_info", {tuple(build.items()): 1.0})
        return self

    def text(self, give_way: GiveWay = at_once) -> bytes:
        """Everything in Prometheus' text format. Any thread may ask."""
        give_way()
        return generate_latest(self.registry) + b"".join(write(give_way) for write in self.writers)

    def _claims(self) -> None:
        claim = "karpenter_nodeclaims"
        self.created = self._counter(f"{claim}_created_total", "reason", "nodepool", "min_values_relaxed")
        self.terminated = self._counter(f"{claim}_terminated_total", "nodepool", "capacity_type", "zone")
        disruption = ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")
        self.disrupted = self._counter(f"{claim}_disrupted_total", *disruption)
        self.pods_disrupted = self._counter("karpenter_pods_disruption_initiated_total", *disruption)
        self.unhealthy_disrupted = self._counter(
            f"{claim}_unhealthy_disrupted_total", "condition", "nodepool", "capacity_type", "image_id"
        )
        self.termination = self._histogram(f"{claim}_termination_duration_seconds", TERMINATIONS, "nodepool")
        self.decisions = self._counter(
            "karpenter_voluntary_disruption_decisions_total", "decision", "reason", "consolidation_type"
        )
        self.failed_validations = self._counter(
            "karpenter_voluntary_disruption_failed_validations_total", "consolidation_type"
        )
        self.drained = self._counter("karpenter_nodes_drained_total", "nodepool")
        self.nodes_created = self._counter("karpenter_nodes_created_total", "nodepool", "zone")
        self.nodes_terminated = self._counter("karpenter_nodes_terminated_total", "nodepool", "zone")

    def _pods(self) -> None:
        pods = "karpenter_pods"
        self.evictions = self._counter(f"{pods}_eviction_requests_total", "code")
        self.pods_bound = self._histogram(f"{pods}_bound_duration_seconds", DURATIONS)
        self.pods_decided = self._histogram(f"{pods}_scheduling_decision_duration_seconds", DURATIONS)
        self.pods_provisioned_bound = self._histogram(f"{pods}_provisioning_bound_duration_seconds", DURATIONS)
        self.pods_provisioned_started = self._histogram(f"{pods}_provisioning_startup_duration_seconds", DURATIONS)
        started = f"{pods}_startup_duration_seconds"
        self.pods_started = Summary(started, _TOLD[started])
        unfinished = "karpenter_scheduler_unfinished_work_seconds"
        self.unfinished = Unfinished(unfinished, _TOLD[unfinished], SOLVER)
        for one in (self.pods_started, self.unfinished):
            self.registry.register(one)

    def _others(self) -> None:
        self.received = self._counter("karpenter_interruption_received_messages_total", "message_type")
        self.unhealthy_instances = self._counter("karpenter_interruption_instance_status_unhealthy_total", "category")
        self.deleted_messages = self._counter("karpenter_interruption_deleted_messages_total")
        self.scheduling = self._histogram("karpenter_scheduler_scheduling_duration_seconds", DURATIONS, "controller")
        self.launch_failures = self._counter(
            "karpenter_cloudprovider_instance_launch_failures_total", "zone", "zone_id", "capacity_type", "reason"
        )
        self.termination_failures = self._counter(
            "karpenter_cloudprovider_instance_termination_failures_total", "zone", "zone_id"
        )
        call = ("controller", "method", "provider")
        self.cloud_calls = self._histogram("karpenter_cloudprovider_duration_seconds", Histogram.DEFAULT_BUCKETS, *call)
        self.cloud_errors = self._counter("karpenter_cloudprovider_errors_total", *call, "error")
        self.transitions = {
            kind: self._counter(f"operator_{kind}_status_condition_transitions_total", "type", "status", "reason")
            for kind in ("nodeclaim", "nodepool", "node", "ec2nodeclass", "capacitybuffer")
        }
        self.ticks = self._histogram("kerf_tick_duration_seconds", TICKS)
        self.actions = self._counter("kerf_actions_total", "action", "outcome")
        self.errors = self._counter("kerf_errors_total", "where")
        self.promised, self.realised, self.lost = (
            self._counter(f"kerf_consolidation_{what}_usd_per_hour_total", "nodepool")
            for what in ("promised", "realised", "lost")
        )
        self.ec2_held = self._counter("kerf_ec2_requests_held_seconds_total", "family")
        self.ec2_refused = self._counter("kerf_ec2_requests_throttled_total", "family")
        self.leading = Gauge(
            "leader_election_master_status", "1 when this process leads.", ["name"], registry=self.registry
        )
        self.karpenter_lease = Gauge(
            "kerf_karpenter_lease",
            "1 for the state of a lease under which a Karpenter controller may run: free, held, unread.",
            ["namespace", "name", "state"],
            registry=self.registry,
        )

    def _counter(self, name: str, *labels: str) -> Counter:
        return Counter(name, _TOLD[name.removesuffix("_total")], labels, registry=self.registry)

    def _histogram(self, name: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, _TOLD[name], labels, buckets=buckets, registry=self.registry)


_TOLD = {
    "karpenter_nodeclaims_created": "Node claims created.",
    "karpenter_nodeclaims_terminated": "Node claims gone.",
    "karpenter_nodeclaims_disrupted": "Node claims deleted by decision.",
    "karpenter_nodeclaims_unhealthy_disrupted": "Node claims deleted because their nodes were sick for too long.",
    "karpenter_nodeclaims_termination_duration_seconds": "From the deletion of a node claim to its end.",
    "karpenter_voluntary_disruption_decisions": "Decisions to disrupt a node.",
    "karpenter_voluntary_disruption_failed_validations": "Nodes that were spared because something had changed.",
    "karpenter_nodes_drained": "Nodes whose pods have all left.",
    "karpenter_nodes_created": "Nodes registered.",
    "karpenter_nodes_terminated": "Nodes gone.",
    "karpenter_pods_disruption_initiated": "Pods that want a place elsewhere as their node claims were deleted.",
    "karpenter_pods_eviction_requests": "Evictions asked for, by HTTP status.",
    "karpenter_pods_bound_duration_seconds": "From the creation of a pod until it was bound.",
    "karpenter_pods_scheduling_decision_duration_seconds": "From when a pod was seen to the first decision about it.",
    "karpenter_pods_provisioning_bound_duration_seconds": "From when a place was found for a pod until it was bound.",
    "karpenter_pods_provisioning_startup_duration_seconds": "From when a place was found for a pod until it ran.",
    "karpenter_pods_startup_duration_seconds": "From the creation of a pod until it ran.",
    "karpenter_scheduler_unfinished_work_seconds": "How long the look that is under way has taken so far.",
    "karpenter_interruption_instance_status_unhealthy": "Instances that EC2 finds impaired, or has "
    "scheduled something for; once until they recover.",
    "karpenter_interruption_received_messages": "Messages of the interruption queue, by kind.",
    "karpenter_interruption_deleted_messages": "Messages deleted from the interruption queue.",
    "karpenter_scheduler_scheduling_duration_seconds": "One look that placed pods.",
    "karpenter_cloudprovider_duration_seconds": "One call of the cloud, by what it was for.",
    "karpenter_cloudprovider_errors": "Calls of the cloud that failed, by the error.",
    "karpenter_cloudprovider_instance_launch_failures": "Launches that gave no instance, by reason.",
    "karpenter_cloudprovider_instance_termination_failures": "Instances that could not be ended when they should.",
    "operator_nodeclaim_status_condition_transitions": "Condition changes of node claims.",
    "operator_nodepool_status_condition_transitions": "Condition changes of node pools.",
    "operator_node_status_condition_transitions": "Condition changes of nodes.",
    "operator_ec2nodeclass_status_condition_transitions": "Condition changes of node classes.",
    "operator_capacitybuffer_status_condition_transitions": "Condition changes of capacity buffers.",
    "kerf_tick_duration_seconds": "One look at everything: snapshot and decision.",
    "kerf_actions": "Actions performed, by how they went.",
    "kerf_ec2_requests_held_seconds": "How long requests to EC2 waited for each other, by family of requests.",
    "kerf_ec2_requests_throttled": "Requests that EC2 refused because there were too many, by family of requests.",
    "kerf_consolidation_promised_usd_per_hour": "What consolidation promised to save, of what has been measured.",
    "kerf_consolidation_realised_usd_per_hour": "What it saved, as measured minutes later.",
    "kerf_consolidation_lost_usd_per_hour": "What it cost more than it saved, where it did.",
    "kerf_errors": "Errors that a tick, a watch or a poll ran into.",
}
