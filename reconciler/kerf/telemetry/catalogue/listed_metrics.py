"""Every metric of Karpenter's by the name `karpenter_…`, and what there is of it. Source: operations reference §2.

Those by other names are in `listed_libraries.py`, ours in `listed_own.py`; `names.py` has all of them.
"""

from __future__ import annotations

from typing import Final

from kerf.telemetry.catalogue.listing import (
    LIBRARY,
    NODES,
    OFFERINGS,
    PODS,
    Listed,
    counter,
    gauge,
    histogram,
    summary,
)
from kerf_api import labels

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
#: How old nodes get.
LIFETIMES: Final = (
    *(n * _MINUTE for n in (15, 30, 45)),
    *(n * _HOUR for n in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(n * _DAY for n in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
#: Powers of two, in seconds: of node claims up to 2,048, of instances up to 1,024.
TERMINATIONS: Final = tuple(float(2**n) for n in range(12))
INSTANCE_TERMINATIONS: Final = TERMINATIONS[:-1]
#: How many go with one call.
BATCH_SIZES: Final = (1.0, 2.0, 4.0, 5.0, *(float(n * 10**e) for e in (1, 2) for n in range(1, 10)), 1000.0)
SCORES: Final = (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0)
#: Labels of a node's series: what it is, and where each of the others is on the node.
PLACE: Final = ("node_name", "phase", "managed")
WELL_KNOWN: Final = {
    "nodepool": labels.NODEPOOL,
    "zone": labels.ZONE,
    "region": labels.REGION,
    "instance_type": labels.INSTANCE_TYPE,
    "arch": labels.ARCH,
    "os": labels.OS,
    "capacity_type": labels.CAPACITY_TYPE,
    "windows_build": labels.WINDOWS_BUILD,
    "zone_id": labels.ZONE_ID,
    **{suffix.replace("-", "_"): f"{labels.AWS_GROUP}/{suffix}" for suffix in labels.AWS_SUFFIXES},
}
_NODE = " ".join((*PLACE, *WELL_KNOWN))
_PER_RESOURCE = f"{_NODE} resource_type"
_DISRUPTION = "reason nodepool capacity_type consolidation_policy termination_mode"
_OFFERING = "instance_type capacity_type zone"
_CALL = "controller method provider"
_LOOK = "controller is empty: one reconcile loop decides for all"
_LONGEST = "same; for the 400 pods with the longest wait, unless DETAILED_METRICS names pods"

CLAIMS: Final = (
    counter("karpenter_nodeclaims_created_total", "reason nodepool min_values_relaxed", "NodeClaims created."),
    counter("karpenter_nodeclaims_terminated_total", "nodepool capacity_type zone", "NodeClaims removed."),
    counter("karpenter_nodeclaims_disrupted_total", _DISRUPTION, "NodeClaims that Kerf disrupted."),
    counter(
        "karpenter_nodeclaims_unhealthy_disrupted_total",
        "condition nodepool capacity_type image_id",
        "NodeClaims disrupted because their nodes stayed unhealthy for the toleration period.",
    ),
    histogram(
        "karpenter_nodeclaims_termination_duration_seconds",
        "nodepool",
        "Time from the deletion of a NodeClaim to its removal.",
        buckets=TERMINATIONS,
    ),
    histogram(
        "karpenter_nodeclaims_instance_termination_duration_seconds",
        "nodepool",
        "Time from the TerminateInstances call to the removal of the NodeClaim.",
        "same; until the removal of the NodeClaim, shortly after that of the instance",
        buckets=INSTANCE_TERMINATIONS,
    ),
)

NODES_: Final = (
    counter("karpenter_nodes_created_total", "nodepool zone", "Nodes registered."),
    counter("karpenter_nodes_terminated_total", "nodepool zone", "Nodes removed."),
    counter("karpenter_nodes_drained_total", "nodepool", "Nodes drained."),
    summary(
        "karpenter_nodes_termination_duration_seconds", "nodepool", "Time from the deletion of a Node to its removal."
    ),
    histogram(
        "karpenter_nodes_lifetime_duration_seconds", "nodepool", "Age of nodes at their removal.", buckets=LIFETIMES
    ),
    gauge("karpenter_nodes_allocatable", _PER_RESOURCE, "Allocatable resources of a node.", detail=NODES),
    gauge("karpenter_nodes_total_pod_requests", _PER_RESOURCE, "Requests of the pods on a node.", detail=NODES),
    gauge("karpenter_nodes_total_pod_limits", _PER_RESOURCE, "Limits of the pods on a node.", detail=NODES),
    gauge(
        "karpenter_nodes_total_daemon_requests",
        _PER_RESOURCE,
        "Requests of the DaemonSet pods on a node.",
        detail=NODES,
    ),
    gauge(
        "karpenter_nodes_total_daemon_limits", _PER_RESOURCE, "Limits of the DaemonSet pods on a node.", detail=NODES
    ),
    gauge(
        "karpenter_nodes_system_overhead",
        _PER_RESOURCE,
        "Capacity of a node minus its allocatable resources.",
        detail=NODES,
    ),
    gauge("karpenter_nodes_current_lifetime_seconds", _NODE, "Age of a node.", detail=NODES),
    gauge(
        "karpenter_cluster_utilization_percent",
        "resource_type",
        "Requests of pods as a percentage of allocatable resources.",
    ),
)

PODS_: Final = (
    gauge(
        "karpenter_pods_state",
        "name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed",
        "1 for each pod, with its placement.",
        detail=PODS,
    ),
    summary("karpenter_pods_startup_duration_seconds", "", "Time from the creation of a pod until it is running."),
    histogram("karpenter_pods_bound_duration_seconds", "", "Time from the creation of a pod to its binding."),
    gauge("karpenter_pods_unstarted_time_seconds", "name namespace", "Age of pods that are not running yet.", _LONGEST),
    gauge("karpenter_pods_unbound_time_seconds", "name namespace", "Age of pods that are not bound yet.", _LONGEST),
    histogram(
        "karpenter_pods_scheduling_decision_duration_seconds",
        "",
        "Time from the first observation of a pod to the first scheduling decision.",
    ),
    gauge(
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        "name namespace",
        "Time since the first observation of pods without a scheduling decision.",
        _LONGEST,
    ),
    histogram(
        "karpenter_pods_provisioning_bound_duration_seconds",
        "",
        "Time from the scheduling decision for a pod to its binding.",
    ),
    histogram(
        "karpenter_pods_provisioning_startup_duration_seconds",
        "",
        "Time from the scheduling decision for a pod until it is running.",
    ),
    gauge(
        "karpenter_pods_provisioning_unbound_time_seconds",
        "name namespace",
        "Time since the scheduling decision for pods that are not bound yet.",
        _LONGEST,
    ),
    gauge(
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "name namespace",
        "Time since the scheduling decision for pods that are not running yet.",
        _LONGEST,
    ),
    counter("karpenter_pods_eviction_requests_total", "code", "Eviction requests, by HTTP status."),
    counter(
        "karpenter_pods_drained_total", "reason", "Pods drained from disrupted nodes, by the reason of the disruption."
    ),
    counter(
        "karpenter_pods_disruption_initiated_total",
        _DISRUPTION,
        "Reschedulable pods of disrupted NodeClaims.",
    ),
)

POOLS: Final = (
    gauge("karpenter_nodepools_limit", "nodepool resource_type", "Limits of a NodePool (spec.limits), by resource."),
    gauge(
        "karpenter_nodepools_usage",
        "nodepool resource_type",
        "Resources in use by a NodePool (status.resources), by resource.",
    ),
    gauge("karpenter_nodepools_cost_total", "nodepool", "Cost of a NodePool's nodes, in dollars per hour."),
    counter(
        "karpenter_nodepools_cost_tracker_errors_total",
        "nodepool",
        "Offerings without a price.",
        "renamed: `kerf_nodepools_unpriced_nodes`, the nodes that the cost leaves out",
    ),
    gauge(
        "karpenter_nodepools_allowed_disruptions",
        "nodepool reason",
        "Disruptions that a NodePool's budgets allow now.",
    ),
    gauge(
        "karpenter_nodepools_nodes_consuming_budgets",
        "nodepool reason",
        "Nodes that already count against the budgets of a NodePool.",
    ),
)

DISRUPTION: Final = (
    counter(
        "karpenter_voluntary_disruption_decisions_total",
        "decision reason consolidation_type",
        "Decisions to disrupt a node.",
    ),
    counter(
        "karpenter_voluntary_disruption_decisions_by_nodepool_total",
        "decision reason consolidation_type nodepool",
        "Decisions to disrupt a node, by NodePool.",
    ),
    gauge("karpenter_voluntary_disruption_eligible_nodes", "reason", "Nodes eligible for disruption, by reason."),
    counter(
        "karpenter_voluntary_disruption_consolidation_timeouts_total",
        "consolidation_type",
        "Consolidation passes that timed out.",
        "missing: a search has a limit of steps, not of time, and continues in the next pass",
    ),
    counter(
        "karpenter_voluntary_disruption_failed_validations_total",
        "consolidation_type",
        "Disruptions dropped because the cluster had changed.",
    ),
    counter(
        "karpenter_voluntary_disruption_queue_failures_total",
        "decision reason consolidation_type",
        "Replacements of disruption commands that failed.",
        "same; consolidation_type is the type of consolidation; Karpenter sets it to the value of decision",
    ),
    histogram(
        "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
        "reason consolidation_type",
        "Duration of a consolidation pass over all nodes.",
        "same; one pass covers all: reason is `underutilized`, consolidation_type is empty",
    ),
    histogram(
        "karpenter_consolidation_score",
        "decision nodepool policy",
        "Savings divided by disruption of moves under the policy Balanced.",
        "missing: the event `ConsolidationApproved` has the score; another process scores moves",
        buckets=SCORES,
    ),
    counter(
        "karpenter_consolidation_moves_total",
        "decision nodepool policy",
        "Moves scored under the policy Balanced.",
        "missing: another process scores moves; `karpenter_voluntary_disruption_decisions_total` counts those "
        "that Kerf started",
    ),
)

SCHEDULER: Final = (
    histogram(
        "karpenter_scheduler_scheduling_duration_seconds",
        "controller",
        "Duration of a provisioning pass.",
        "same; of the controller `provisioner` alone: consolidation is computed in another process",
    ),
    gauge("karpenter_scheduler_queue_depth", "controller scheduling_id", "Pending pods in the batch."),
    gauge(
        "karpenter_scheduler_unfinished_work_seconds",
        "controller scheduling_id",
        "Duration so far of the current reconcile.",
    ),
    gauge("karpenter_scheduler_ignored_pods_count", "", "Pending pods that Kerf does not schedule, or cannot decode."),
    gauge(
        "karpenter_scheduler_unschedulable_pods_count",
        "controller",
        "Unschedulable pods of the most recent provisioning pass.",
    ),
    gauge(
        "karpenter_scheduler_pending_pods_by_effective_zone_count",
        "controller zone",
        "Pending pods of the most recent provisioning pass, by zone.",
    ),
    gauge("karpenter_cluster_state_node_count", "", "Nodes in the cluster, including NodeClaims without a Node."),
    gauge(
        "karpenter_cluster_state_synced",
        "",
        "1 when all watched kinds are listed; before that Kerf decides nothing.",
    ),
    gauge("karpenter_cluster_state_unsynced_time_seconds", "", "Time since the state was last synced."),
)

CLOUD: Final = (
    gauge("karpenter_build_info", "version goversion goarch commit", "1, with the version of the running build."),
    histogram(
        "karpenter_cloudprovider_duration_seconds",
        _CALL,
        "Duration of calls to AWS, by method.",
        f"same; {_LOOK}; with methods that Karpenter does not have",
        buckets=LIBRARY,
    ),
    counter(
        "karpenter_cloudprovider_errors_total",
        f"{_CALL} error",
        "Failed calls to AWS, by error.",
        f"same; {_LOOK}; errors are named by their class (`Throttled`, `Forbidden`, …)",
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_offering_available",
        _OFFERING,
        "1 when the offering of an instance type in a zone and capacity type is available.",
        detail=OFFERINGS,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        _OFFERING,
        "Price of an instance type in a zone and capacity type, in dollars per hour.",
        detail=OFFERINGS,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_cpu_cores",
        "instance_type",
        "CPU cores of an instance type.",
        detail=OFFERINGS,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_memory_bytes",
        "instance_type",
        "Memory of an instance type, in bytes.",
        detail=OFFERINGS,
    ),
    counter(
        "karpenter_cloudprovider_instance_launch_failures_total",
        "zone zone_id capacity_type reason",
        "Failed launches, by reason.",
    ),
    counter(
        "karpenter_cloudprovider_instance_termination_failures_total",
        "zone zone_id",
        "Failed terminations of instances.",
    ),
    histogram(
        "karpenter_cloudprovider_batcher_batch_time_seconds",
        "batcher",
        "Duration of the batching window.",
        "missing: there is no batching window: requests during a call are part of the next one",
    ),
    histogram(
        "karpenter_cloudprovider_batcher_batch_size",
        "batcher",
        "NodeClaims of a CreateFleet call.",
        "same; of the batcher `create_fleet` alone",
        buckets=BATCH_SIZES,
    ),
    gauge(
        "karpenter_ec2nodeclasses_userdata_bytes",
        "nodeclass",
        "Size of the user data of the newest launch template, in bytes.",
    ),
    counter(
        "karpenter_interruption_received_messages_total",
        "message_type",
        "Messages of the interruption queue, by kind.",
    ),
    counter("karpenter_interruption_deleted_messages_total", "", "Messages deleted from the interruption queue."),
    histogram(
        "karpenter_interruption_message_queue_duration_seconds",
        "",
        "Time that messages were in the interruption queue.",
    ),
    counter(
        "karpenter_interruption_instance_status_unhealthy_total",
        "category",
        "Instances that EC2 reports as impaired or with scheduled events; each once until it recovers.",
    ),
)

KARPENTERS: Final[tuple[Listed, ...]] = (
    *CLAIMS,
    *NODES_,
    *PODS_,
    *POOLS,
    *DISRUPTION,
    *SCHEDULER,
    *CLOUD,
)
