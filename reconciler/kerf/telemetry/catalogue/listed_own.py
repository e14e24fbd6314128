"""Every metric of ours, by the name `kerf_…`: what Karpenter has no name for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kerf.telemetry.catalogue.listing import OWN, Listed, counter, gauge, histogram

TICKS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REVIEWS: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0)
_SAVINGS: Final = "kerf_consolidation_{}_usd_per_hour_total"

CONTROLLER: Final = (
    gauge(
        "kerf_scheduling_cost_usd_per_hour",
        "",
        "What the nodes of the latest pass that bought any cost.",
        OWN,
    ),
    gauge(
        "kerf_scheduling_cost_bound_usd_per_hour",
        "",
        "What nodes for their pods cost at least; absent when it is not known.",
        OWN,
    ),
    gauge(
        "kerf_scheduling_cost_ratio",
        "",
        "Their cost by the least that it can be; absent when that is not known.",
        OWN,
    ),
    gauge("kerf_refusals", "code", "What was not done in the last look, by the code of the reason.", OWN),
    gauge("kerf_troubles", "code", "Problems that need a person, by code: those that `kerf status` names.", OWN),
    gauge("kerf_refused_pods", "rule", "Pods without a place in the latest pass, by the rule that says so.", OWN),
    gauge("kerf_nodes", "nodepool capacity_type zone", "Nodes of node pools, by capacity type and zone.", OWN),
    gauge(
        "kerf_nodepools_unpriced_nodes",
        "nodepool",
        "Nodes that the cost of their node pool leaves out: nobody knows their price.",
        OWN,
    ),
    counter(_SAVINGS.format("promised"), "nodepool", "What consolidation promised to save, of what was measured.", OWN),
    counter(_SAVINGS.format("realised"), "nodepool", "What it saved, as measured minutes later.", OWN),
    counter(_SAVINGS.format("lost"), "nodepool", "What it cost more than it saved, where it did.", OWN),
    gauge(
        "kerf_garbage_collection_held",
        "object",
        "Instances that would be ended but for the mass-kill guard, by who is asked.",
        OWN,
    ),
    gauge(
        "kerf_deletion_held",
        "nodepool",
        "Node claims that others than Kerf have deleted, and whose drain is held, by their node pool.",
        OWN,
    ),
    gauge(
        "kerf_node_mismatches",
        "nodepool",
        "Shapes of pods that new nodes did not help, because these came up other than planned.",
        OWN,
    ),
    counter(
        "kerf_ec2_requests_held_seconds_total",
        "family",
        "How long requests to EC2 waited for each other, by family of requests.",
        OWN,
    ),
    counter(
        "kerf_ec2_requests_throttled_total",
        "family",
        "Requests that EC2 refused because there were too many, by family of requests.",
        OWN,
    ),
    counter(
        "kerf_api_requests_held_seconds_total",
        "",
        "How long requests to the API server waited for KUBE_CLIENT_QPS.",
        OWN,
    ),
    histogram("kerf_tick_duration_seconds", "", "One look at everything: snapshot and decision.", OWN, buckets=TICKS),
    counter("kerf_actions_total", "action outcome", "Actions performed, by how they went.", OWN),
    counter(
        "kerf_fields_not_kept_total",
        "kind field",
        "Fields that the API server dropped from a write, as the served definition does not have them.",
        OWN,
    ),
    counter("kerf_errors_total", "where", "Errors that a tick, a watch or a poll ran into.", OWN),
    counter(
        "kerf_events_total",
        "type outcome",
        "Events, by what became of them: written, repeated (kept quiet), flood (too many), failed.",
        OWN,
    ),
    gauge(
        "kerf_latest_failed_action_timestamp_seconds",
        "action outcome reconcile_id",
        "When an action of this kind failed so last, and in which look.",
        OWN,
    ),
    gauge(
        "kerf_karpenter_lease",
        "namespace name state",
        "1 for the state of a lease under which a Karpenter controller may run: free, held, unread.",
        OWN,
    ),
)

WEBHOOK: Final = tuple(
    replace(row, process="webhook")
    for row in (
        counter(
            "kerf_webhook_reviews_total",
            "path resource outcome",
            "Admission reviews answered, by path, resource and outcome (allowed, denied, skipped).",
            OWN,
        ),
        counter(
            "kerf_webhook_bad_requests_total", "code", "Requests that were no admission reviews, by HTTP status.", OWN
        ),
        counter(
            "kerf_webhook_connections_dropped_total",
            "reason",
            "Connections that the webhook closed, by reason (slow: out of time; crowded: too many, or too many bytes; "
            "handshake: no TLS).",
            OWN,
        ),
        histogram(
            "kerf_webhook_duration_seconds",
            "path",
            "Time to answer an admission review, without network and TLS.",
            OWN,
            buckets=_REVIEWS,
        ),
        gauge(
            "kerf_webhook_certificate_expiry_timestamp_seconds",
            "",
            "When the certificate expires that the webhook serves.",
            OWN,
        ),
    )
)

OURS: Final[tuple[Listed, ...]] = (*CONTROLLER, *WEBHOOK)
