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
_LOOK = "controller is empty: one loop decides for all"
_LONGEST = "same; of the 400 pods that wait longest, unless DETAILED_METRICS names pods"

CLAIMS: Final = (
    counter("karpenter_nodeclaims_created_total", "reason nodepool min_values_relaxed", "Node claims created."),
    counter("karpenter_nodeclaims_terminated_total", "nodepool capacity_type zone", "Node claims gone."),
    counter("karpenter_nodeclaims_disrupted_total", _DISRUPTION, "Node claims deleted by decision."),
    counter(
        "karpenter_nodeclaims_unhealthy_disrupted_total",
        "condition nodepool capacity_type image_id",
        "Node claims deleted because their nodes were sick for too long.",
    ),
    histogram(
        "karpenter_nodeclaims_termination_duration_seconds",
        "nodepool",
        "From the deletion of a node claim to its end.",
        buckets=TERMINATIONS,
    ),
    histogram(
        "karpenter_nodeclaims_instance_termination_duration_seconds",
        "nodepool",
        "From when EC2 was asked to end an instance until its node claim was gone.",
        "same; until the claim is gone, a moment after the instance",
        buckets=INSTANCE_TERMINATIONS,
    ),
)

NODES_: Final = (
    counter("karpenter_nodes_created_total", "nodepool zone", "Nodes registered."),
    counter("karpenter_nodes_terminated_total", "nodepool zone", "Nodes gone."),
    counter("karpenter_nodes_drained_total", "nodepool", "Nodes whose pods have all left."),
    summary("karpenter_nodes_termination_duration_seconds", "nodepool", "From the deletion of a node to its end."),
    histogram(
        "karpenter_nodes_lifetime_duration_seconds", "nodepool", "Age of nodes when they went.", buckets=LIFETIMES
    ),
    gauge("karpenter_nodes_allocatable", _PER_RESOURCE, "What a node has for pods.", detail=NODES),
    gauge("karpenter_nodes_total_pod_requests", _PER_RESOURCE, "What the pods on a node request.", detail=NODES),
    gauge("karpenter_nodes_total_pod_limits", _PER_RESOURCE, "The limits of the pods on a node.", detail=NODES),
    gauge("karpenter_nodes_total_daemon_requests", _PER_RESOURCE, "What its daemons request.", detail=NODES),
    gauge("karpenter_nodes_total_daemon_limits", _PER_RESOURCE, "The limits of its daemons.", detail=NODES),
    gauge("karpenter_nodes_system_overhead", _PER_RESOURCE, "Capacity that is not for pods.", detail=NODES),
    gauge("karpenter_nodes_current_lifetime_seconds", _NODE, "Age of a node.", detail=NODES),
    gauge("karpenter_cluster_utilization_percent", "resource_type", "Requests of all that nodes have for pods."),
)

PODS_: Final = (
    gauge(
        "karpenter_pods_state",
        "name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed",
        "1 for each pod, and where it is.",
        detail=PODS,
    ),
    summary("karpenter_pods_startup_duration_seconds", "", "From the creation of a pod until it ran."),
    histogram("karpenter_pods_bound_duration_seconds", "", "From the creation of a pod until it was bound."),
    gauge("karpenter_pods_unstarted_time_seconds", "name namespace", "Age of pods that do not run yet.", _LONGEST),
    gauge("karpenter_pods_unbound_time_seconds", "name namespace", "Age of pods that are not bound yet.", _LONGEST),
    histogram(
        "karpenter_pods_scheduling_decision_duration_seconds",
        "",
        "From when a pod was seen to the first decision about it.",
    ),
    gauge(
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        "name namespace",
        "Of pods about which nothing was decided yet: since they were seen.",
        _LONGEST,
    ),
    histogram(
        "karpenter_pods_provisioning_bound_duration_seconds",
        "",
        "From when a place was found for a pod until it was bound.",
    ),
    histogram(
        "karpenter_pods_provisioning_startup_duration_seconds",
        "",
        "From when a place was found for a pod until it ran.",
    ),
    gauge(
        "karpenter_pods_provisioning_unbound_time_seconds",
        "name namespace",
        "Of pods that are not bound yet: since a place was found for them.",
        _LONGEST,
    ),
    gauge(
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "name namespace",
        "Of pods that do not run yet: since a place was found for them.",
        _LONGEST,
    ),
    counter("karpenter_pods_eviction_requests_total", "code", "Evictions asked for, by HTTP status."),
    counter("karpenter_pods_drained_total", "reason", "Pods evicted from nodes that go, by why these go."),
    counter(
        "karpenter_pods_disruption_initiated_total",
        _DISRUPTION,
        "Pods that want a place elsewhere as their node claims were deleted.",
    ),
)

POOLS: Final = (
    gauge("karpenter_nodepools_limit", "nodepool resource_type", "Limits of a node pool (spec.limits), per resource."),
    gauge(
        "karpenter_nodepools_usage",
        "nodepool resource_type",
        "Resources in use by a node pool (status.resources), per resource.",
    ),
    gauge("karpenter_nodepools_cost_total", "nodepool", "What the nodes of a node pool cost, in dollars an hour."),
    counter(
        "karpenter_nodepools_cost_tracker_errors_total",
        "nodepool",
        "Offerings whose price was not found.",
        "renamed: `kerf_nodepools_unpriced_nodes`, the nodes that the cost leaves out now",
    ),
    gauge(
        "karpenter_nodepools_allowed_disruptions",
        "nodepool reason",
        "Disruptions that a node pool's budgets allow now.",
    ),
    gauge(
        "karpenter_nodepools_nodes_consuming_budgets",
        "nodepool reason",
        "Nodes that already count against the budgets of a node pool.",
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
        "Decisions to disrupt a node, by its node pool.",
    ),
    gauge("karpenter_voluntary_disruption_eligible_nodes", "reason", "Nodes that could be disrupted, by why."),
    counter(
        "karpenter_voluntary_disruption_consolidation_timeouts_total",
        "consolidation_type",
        "Consolidation that ran out of time.",
        "missing: a search has a number of steps here, not a time, and goes on in the next pass",
    ),
    counter(
        "karpenter_voluntary_disruption_failed_validations_total",
        "consolidation_type",
        "Nodes that were spared because something had changed.",
    ),
    counter(
        "karpenter_voluntary_disruption_queue_failures_total",
        "decision reason consolidation_type",
        "Replacements of commands that were given up because one of them failed.",
        "same; consolidation_type is the type, where Karpenter repeats the decision",
    ),
    histogram(
        "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
        "reason consolidation_type",
        "One pass over all nodes in search of cheaper ones.",
        "same; one pass looks for all: reason is `underutilized`, consolidation_type empty",
    ),
    histogram(
        "karpenter_consolidation_score",
        "decision nodepool policy",
        "Saving by disruption of moves, policy Balanced.",
        "missing: the event `ConsolidationApproved` has the score; moves are weighed in another process",
        buckets=SCORES,
    ),
    counter(
        "karpenter_consolidation_moves_total",
        "decision nodepool policy",
        "Moves weighed, policy Balanced.",
        "missing: moves are weighed in another process; `karpenter_voluntary_disruption_decisions_total` counts those "
        "that were made",
    ),
)

SCHEDULER: Final = (
    histogram(
        "karpenter_scheduler_scheduling_duration_seconds",
        "controller",
        "One look that placed pods.",
        "same; of the controller `provisioner` alone: consolidation is thought over in another process",
    ),
    gauge("karpenter_scheduler_queue_depth", "controller scheduling_id", "Pods that wait for a place."),
    gauge(
        "karpenter_scheduler_unfinished_work_seconds",
        "controller scheduling_id",
        "How long the look that is under way has taken so far.",
    ),
    gauge("karpenter_scheduler_ignored_pods_count", "", "Pending pods that are not ours to place, or cannot be read."),
    gauge(
        "karpenter_scheduler_unschedulable_pods_count",
        "controller",
        "Pods for which no placement was found in the last look.",
    ),
    gauge(
        "karpenter_scheduler_pending_pods_by_effective_zone_count",
        "controller zone",
        "Pods that waited in the last pass, by zone.",
    ),
    gauge("karpenter_cluster_state_node_count", "", "Nodes in the cluster, node claims without a node included."),
    gauge(
        "karpenter_cluster_state_synced",
        "",
        "1 when all that is watched has been listed; before that nothing is decided.",
    ),
    gauge("karpenter_cluster_state_unsynced_time_seconds", "", "For how long it has not been."),
)

CLOUD: Final = (
    gauge("karpenter_build_info", "version goversion goarch commit", "1, by the build that runs."),
    histogram(
        "karpenter_cloudprovider_duration_seconds",
        _CALL,
        "One call of the cloud, by what it was for.",
        f"same; {_LOOK}; methods of ours beside Karpenter's",
        buckets=LIBRARY,
    ),
    counter(
        "karpenter_cloudprovider_errors_total",
        f"{_CALL} error",
        "Calls of the cloud that failed, by the error.",
        f"same; {_LOOK}; errors are named by what comes next (`Throttled`, `Forbidden`, …)",
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_offering_available",
        _OFFERING,
        "1 when an instance type can be had in this zone, as this capacity type.",
        detail=OFFERINGS,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        _OFFERING,
        "What an instance type costs in this zone, as this capacity type, in dollars an hour.",
        detail=OFFERINGS,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_cpu_cores",
        "instance_type",
        "Cores of an instance type.",
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
        "Launches that gave no instance, by reason.",
    ),
    counter(
        "karpenter_cloudprovider_instance_termination_failures_total",
        "zone zone_id",
        "Instances that could not be ended when they should.",
    ),
    histogram(
        "karpenter_cloudprovider_batcher_batch_time_seconds",
        "batcher",
        "How long a batch was open.",
        "missing: nothing waits for a batch: what comes while a call is under way goes with the next",
    ),
    histogram(
        "karpenter_cloudprovider_batcher_batch_size",
        "batcher",
        "For how many node claims a fleet call was made.",
        "same; of the batcher `create_fleet` alone",
        buckets=BATCH_SIZES,
    ),
    gauge(
        "karpenter_ec2nodeclasses_userdata_bytes",
        "nodeclass",
        "Size of the user data of the launch template that was made last.",
    ),
    counter(
        "karpenter_interruption_received_messages_total",
        "message_type",
        "Messages of the interruption queue, by kind.",
    ),
    counter("karpenter_interruption_deleted_messages_total", "", "Messages deleted from the interruption queue."),
    histogram(
        "karpenter_interruption_message_queue_duration_seconds", "", "How long messages were in the interruption queue."
    ),
    counter(
        "karpenter_interruption_instance_status_unhealthy_total",
        "category",
        "Instances that EC2 finds impaired, or has scheduled something for; once until they recover.",
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
