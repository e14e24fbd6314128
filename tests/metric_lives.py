"""What was served while a node came and went, held against the table of metrics in both directions.

Used on a real control plane (`tests/cluster/test_metrics.py`) and in the sandbox (`tests/simulation/test_metrics.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kerf.telemetry.catalogue.listed_events import EVENTS
from kerf.telemetry.catalogue.listing import Listed
from kerf.telemetry.catalogue.names import METRICS

#: The samples of each metric.
Served = Mapping[str, Sequence[Sample]]
#: What has no value, and why there is none.
WITHOUT = {
    "nothing of it happened": {
        "karpenter_nodeclaims_unhealthy_disrupted_total",
        "karpenter_voluntary_disruption_failed_validations_total",
        "karpenter_voluntary_disruption_queue_failures_total",
        "karpenter_cloudprovider_instance_launch_failures_total",
        "karpenter_cloudprovider_instance_termination_failures_total",
        "karpenter_interruption_received_messages_total",
        "karpenter_interruption_message_queue_duration_seconds",
        "karpenter_interruption_instance_status_unhealthy_total",
        "karpenter_scheduler_pending_pods_by_effective_zone_count",
        "kerf_refused_pods",
        "kerf_garbage_collection_held",
        "kerf_deletion_held",
        "kerf_node_mismatches",
        "kerf_changes_awaiting_approval",
        "kerf_ec2_requests_held_seconds_total",
        "kerf_ec2_requests_throttled_total",
        "kerf_latest_failed_action_timestamp_seconds",
        "kerf_errors_total",
        "kerf_fields_not_kept_total",
        "kerf_refusals",
        "controller_runtime_reconcile_errors_total",
        "karpenter_cloudprovider_errors_total",
        "karpenter_pods_drained_total",
        "karpenter_pods_eviction_requests_total",
        *(f"operator_{kind}_termination_duration_seconds" for kind in ("nodepool", "ec2nodeclass")),
    },
    "it comes minutes after the node has gone": {
        f"kerf_consolidation_{what}_usd_per_hour_total" for what in ("promised", "realised", "lost")
    },
    "it has a value only while something is under way": {
        "karpenter_scheduler_unfinished_work_seconds",
        "karpenter_pods_unstarted_time_seconds",
        "karpenter_pods_unbound_time_seconds",
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "karpenter_pods_provisioning_unbound_time_seconds",
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        *(
            f"operator_{kind}_termination_current_time_seconds"
            for kind in ("nodeclaim", "nodepool", "node", "ec2nodeclass")
        ),
    },
    "there is no such object, or the last of them has gone": {
        *(name for name in METRICS if name.startswith("operator_capacitybuffer_")),
        *(f"operator_{kind}_status_condition_count" for kind in ("node", "nodeclaim")),
        *(f"operator_{kind}_status_condition_current_status_seconds" for kind in ("node", "nodeclaim")),
    },
    "a kubelet may know all its conditions from the first": {
        f"operator_node_status_condition_{what}" for what in ("transitions_total", "transition_seconds")
    },
    "there are no limits": {
        "karpenter_nodepools_limit",
        "karpenter_nodes_total_pod_limits",
        "karpenter_nodes_total_daemon_limits",
    },
    "when the pods were given a place no node of the pool had registered yet": {
        "karpenter_pods_provisioning_bound_duration_seconds",
        "karpenter_pods_provisioning_startup_duration_seconds",
    },
}


def served(*texts: str) -> Served:
    """What was served, one time after the other. All of it is in the table, of the type that stands there."""
    found: dict[str, list[Sample]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            name = family.name if family.name in METRICS else f"{family.name}_total"
            assert name in METRICS, f"{family.name} is not in the table"
            assert METRICS[name].kind == family.type, name
            found.setdefault(name, []).extend(family.samples)
    return found


def unlike_the_table(found: Served) -> list[str]:
    """What has other labels or buckets than stand there, or should not be there at all."""
    return [
        f"{row.name}: {s}" for name, samples in found.items() for row in [METRICS[name]] for s in _unlike(row, samples)
    ]


def _unlike(row: Listed, samples: Sequence[Sample]) -> list[str]:
    if not row.here or row.process != "controller":
        return ["is not there"]
    wrong = [str(sample) for sample in samples if set(sample.labels) - {"le", "quantile"} != set(row.labels)]
    bounds = {float(sample.labels["le"]) for sample in samples if "le" in sample.labels}
    if bounds and bounds != {*row.buckets, float("inf")}:
        wrong.append(f"bounds {sorted(bounds)}")
    return wrong


def without_value(found: Served) -> set[str]:
    """What the table has and nothing was said of; of histograms and summaries also those of which nothing was seen."""
    rows = [row for row in METRICS.values() if row.here and row.process == "controller"]
    return {row.name for row in rows if not any(_says(row, sample) for sample in found.get(row.name, ()))}


def _says(row: Listed, sample: Sample) -> bool:
    if row.kind in ("histogram", "summary"):
        return sample.name == f"{row.name}_count" and sample.value > 0
    return sample.name == row.name


def missing(found: Served) -> set[str]:
    """What should have a value after such a life, and has none."""
    return without_value(found) - {name for names in WITHOUT.values() for name in names}


def unlisted(events: Collection[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Events (kind of the object, reason, type) that are not in the table; a condition's has its type for a reason."""
    rows = [row for part in EVENTS.values() for row in part if row.here]
    known = {(kind, row.reason, row.type) for row in rows for kind in row.objects.split(", ")}
    plain = {row.reason for row in rows}
    return {
        (kind, reason, type_)
        for kind, reason, type_ in events
        if (kind, reason, type_) not in known
        and (reason in plain or (kind, "(the type of the condition)", type_) not in known)
    }
