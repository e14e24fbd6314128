"""Every metric of ours, by the name `kerf_…`: what Karpenter has no name for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kerf.telemetry.catalogue.listing import OWN, Listed, counter, gauge, histogram

TICKS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Of views: of a small cluster, and of thousands of nodes on a busy machine.
_VIEWS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_REVIEWS: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0)
_SAVINGS: Final = "kerf_consolidation_{}_usd_per_hour_total"

CONTROLLER: Final = (
    gauge(
        "kerf_scheduling_cost_usd_per_hour",
        "",
        "Hourly cost of the nodes planned by the most recent provisioning pass.",
        OWN,
    ),
    gauge(
        "kerf_scheduling_cost_bound_usd_per_hour",
        "",
        "Lower bound of that cost; absent when it is not known.",
        OWN,
    ),
    gauge(
        "kerf_scheduling_cost_ratio",
        "",
        "That cost divided by its lower bound; absent when the bound is not known.",
        OWN,
    ),
    gauge("kerf_refusals", "code", "Refusals of the most recent reconcile, by code.", OWN),
    gauge("kerf_troubles", "code", "Problems that need a person, by code, as `kerf status` names them.", OWN),
    gauge("kerf_refused_pods", "rule", "Unschedulable pods of the most recent provisioning pass, by rule.", OWN),
    gauge("kerf_nodes", "nodepool capacity_type zone", "Nodes of NodePools, by capacity type and zone.", OWN),
    gauge(
        "kerf_nodepools_unpriced_nodes",
        "nodepool",
        "Nodes without a known price, which the cost of their NodePool leaves out.",
        OWN,
    ),
    counter(_SAVINGS.format("promised"), "nodepool", "Promised savings of measured consolidations.", OWN),
    counter(_SAVINGS.format("realised"), "nodepool", "Measured savings of consolidations.", OWN),
    counter(_SAVINGS.format("lost"), "nodepool", "Measured losses of consolidations.", OWN),
    gauge(
        "kerf_garbage_collection_held",
        "object",
        "Instances that the mass-kill guard excludes from termination, by the object that asks for confirmation.",
        OWN,
    ),
    gauge(
        "kerf_deletion_held",
        "nodepool",
        "NodeClaims deleted by another client, whose drain the deletion guard blocks, by NodePool.",
        OWN,
    ),
    gauge(
        "kerf_node_mismatches",
        "nodepool",
        "Shapes of pods that still wait because new nodes differ from the plan.",
        OWN,
    ),
    gauge(
        "kerf_changes_awaiting_approval",
        "nodepool",
        "1 while a change of the NodePool, its EC2NodeClass or its images waits for approval.",
        OWN,
    ),
    counter(
        "kerf_ec2_requests_held_seconds_total",
        "family",
        "Time that EC2 requests waited for the rate limit, by family of requests.",
        OWN,
    ),
    counter(
        "kerf_ec2_requests_throttled_total",
        "family",
        "EC2 requests refused by throttling, by family of requests.",
        OWN,
    ),
    counter(
        "kerf_api_requests_held_seconds_total",
        "",
        "Time that API requests waited for KUBE_CLIENT_QPS.",
        OWN,
    ),
    histogram("kerf_tick_duration_seconds", "", "Duration of a reconcile: snapshot and decision.", OWN, buckets=TICKS),
    counter("kerf_actions_total", "action outcome", "Actions performed, by outcome.", OWN),
    counter(
        "kerf_fields_not_kept_total",
        "kind field",
        "Fields that the API server dropped from a write because the served CRD lacks them.",
        OWN,
    ),
    counter("kerf_errors_total", "where", "Errors of reconciles, watches, polls and the flight recorder.", OWN),
    counter(
        "kerf_events_total",
        "type outcome",
        "Events, by outcome: written, repeated (not written again), flood (too many), failed.",
        OWN,
    ),
    gauge(
        "kerf_recorder_failing",
        "",
        "1 while an error prevents the flight recorder from recording decisions; 0 without a recorder.",
        OWN,
    ),
    gauge(
        "kerf_record_upload_failing",
        "",
        "1 while the upload of the record to its bucket fails (RECORD_S3); 0 without a bucket.",
        OWN,
    ),
    gauge(
        "kerf_latest_failed_action_timestamp_seconds",
        "action outcome reconcile_id",
        "Time of the most recent failure of an action, with its reconcile.",
        OWN,
    ),
    gauge(
        "kerf_karpenter_lease",
        "namespace name state",
        "1 for the state of a Lease that a Karpenter controller may hold: free, held, unread.",
        OWN,
    ),
)

WEBHOOK: Final = tuple(
    replace(row, process="webhook")
    for row in (
        counter(
            "kerf_webhook_reviews_total",
            "path resource outcome",
            "Admission reviews, by path, resource and outcome (allowed, denied, skipped).",
            OWN,
        ),
        counter(
            "kerf_webhook_bad_requests_total", "code", "Requests that are not admission reviews, by HTTP status.", OWN
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
            "Expiry of the webhook's certificate.",
            OWN,
        ),
    )
)

PAGE: Final = tuple(
    replace(row, process="page")
    for row in (
        counter("kerf_page_requests_total", "code", "Requests, by HTTP status of the answer.", OWN),
        counter(
            "kerf_page_reviews_total",
            "kind outcome",
            "Reviews that the API server was asked for, by kind (TokenReview, SubjectAccessReview) and outcome "
            "(allowed, denied, failed).",
            OWN,
        ),
        counter(
            "kerf_page_failures_total",
            "work",
            "Failures of background work, by work (reading: lists of the cluster; views: the views of a reading).",
            OWN,
        ),
        histogram(
            "kerf_page_views_duration_seconds",
            "",
            "Time to make the views of a reading for one set of namespaces.",
            OWN,
            buckets=_VIEWS,
        ),
    )
)

OURS: Final[tuple[Listed, ...]] = (*CONTROLLER, *WEBHOOK, *PAGE)
