"""Every metric of Karpenter's that its libraries bring, and what there is of it: conditions of objects, requests to the
API server and to AWS, the loop, the lease, the process. Source: operations reference §2.10, §2.11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf.telemetry.catalogue.listing import (
    LIBRARY,
    OWN,
    RECONCILES,
    SAME,
    Listed,
    counter,
    gauge,
    histogram,
)

#: Kinds with metrics of their conditions, as metrics spell them; the labels that their series have besides.
WITH_CONDITIONS: Final = {
    "nodeclaim": "karpenter_sh_nodepool karpenter_k8s_aws_ec2nodeclass",
    "nodepool": "",
    "node": "karpenter_sh_nodepool karpenter_k8s_aws_ec2nodeclass karpenter_sh_initialized",
    "ec2nodeclass": "",
    "capacitybuffer": "",
}
#: Kinds of which there are thousands.
MANY: Final = frozenset({"nodeclaim", "node"})
#: How long a condition was as it was, or a deletion took, in seconds.
TRANSITIONS: Final = tuple(0.5 * 2**n for n in range(15))
_FEWER: Final = {
    "nodeclaim": "same; Ready of each; the others unless they have their final status, or DETAILED_METRICS names "
    "conditions",
    "node": "same; those that differ from a healthy node's, unless DETAILED_METRICS names conditions",
}
_AGES: Final = "same; those without their final status, unless DETAILED_METRICS names conditions"
_OLD_NAMES: Final = "missing: Karpenter has deprecated it; `operator_<kind>_{}` has the same"
_LOOP: Final = "same; of one controller, `loop`, which does the work of all of Karpenter's"
_NO_SUCH: Final = "missing: there is one loop and one inbox, "


def of_conditions(kind: str) -> Iterator[Listed]:
    """The metrics of each kind that has conditions."""
    count, ages = (_FEWER[kind], _AGES) if kind in MANY else (SAME, SAME)
    own, start = WITH_CONDITIONS[kind], f"operator_{kind}"
    buckets = LIBRARY if kind == "ec2nodeclass" else TRANSITIONS
    labels = f"namespace name type status reason {own}"
    yield gauge(f"{start}_status_condition_count", labels, f"1 for each condition of each {kind}.", count)
    yield gauge(f"{start}_status_condition_current_status_seconds", labels, "Time since the condition changed.", ages)
    yield counter(f"{start}_status_condition_transitions_total", "type status reason", "Changes of conditions.")
    yield histogram(
        f"{start}_status_condition_transition_seconds",
        "type status",
        "Time that a condition kept its status before a change.",
        buckets=buckets,
    )
    labels = f"namespace name {own}"
    yield gauge(f"{start}_termination_current_time_seconds", labels, "Time since the deletion.")
    yield histogram(
        f"{start}_termination_duration_seconds", "", "Time from the deletion to the removal.", buckets=buckets
    )


def _deprecated() -> Iterator[Listed]:
    for name, labels, make in (
        ("status_condition_transitions_total", "group kind type status reason", counter),
        ("status_condition_transition_seconds", "group kind type status", histogram),
        ("status_condition_current_status_seconds", "group kind namespace name type status reason", gauge),
        ("status_condition_count", "group kind namespace name type status reason", gauge),
        ("termination_current_time_seconds", "group kind namespace name", gauge),
        ("termination_duration_seconds", "group kind", histogram),
    ):
        yield make(f"operator_{name}", labels, "", _OLD_NAMES.format(name))


OBJECTS: Final = (*(row for kind in WITH_CONDITIONS for row in of_conditions(kind)), *_deprecated())

REQUESTS: Final = (
    counter("client_go_request_total", "code method", "Requests to the API server, by HTTP status."),
    histogram(
        "client_go_request_duration_seconds",
        "verb group version kind subresource",
        "Time until the API server began its response.",
        "same; kind is the resource (`nodeclaims`); watches are not timed",
        buckets=tuple(round(0.001 * 1.5**n, 6) for n in range(20)),
    ),
    counter(
        "rest_client_requests_total",
        "code method host",
        "",
        "missing: Karpenter's series is empty; use `client_go_request_total`",
    ),
    counter(
        "aws_sdk_go_request_total", "service action status_code", "Calls to AWS, by the status of the last attempt."
    ),
    counter("aws_sdk_go_request_attempt_total", "service action status_code", "Attempts of calls to AWS."),
    histogram(
        "aws_sdk_go_request_retry_count",
        "service action status_code",
        "Retries of calls to AWS.",
        buckets=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
    ),
    histogram(
        "aws_sdk_go_request_duration_seconds",
        "service action status_code",
        "Duration of calls to AWS, with all attempts.",
        buckets=LIBRARY,
    ),
    histogram(
        "aws_sdk_go_request_attempt_duration_seconds",
        "service action status_code",
        "Duration of an attempt of a call to AWS.",
        "missing: few calls have a second attempt; `aws_sdk_go_request_duration_seconds` has the time",
        buckets=LIBRARY,
    ),
)

LOOP: Final = (
    counter("controller_runtime_reconcile_total", "controller result", "Reconciles, by result.", _LOOP),
    counter(
        "controller_runtime_reconcile_errors_total",
        "controller",
        "Reconciles that failed with an unexpected error.",
        _LOOP,
    ),
    histogram(
        "controller_runtime_reconcile_time_seconds",
        "controller",
        "Duration of a reconcile: snapshot, decision, start of actions.",
        _LOOP,
        buckets=RECONCILES,
    ),
    gauge("controller_runtime_max_concurrent_reconciles", "controller", "Always 1.", _LOOP),
    gauge("controller_runtime_active_workers", "controller", "1 during a reconcile.", _LOOP),
    counter(
        "controller_runtime_terminal_reconcile_errors_total",
        "controller",
        "",
        "missing: every error is followed by another reconcile",
    ),
    counter(
        "controller_runtime_reconcile_panics_total",
        "controller",
        "",
        'renamed: `kerf_errors_total{where="decide"}`, also in `controller_runtime_reconcile_errors_total`',
    ),
    counter(
        "controller_runtime_reconcile_timeouts_total",
        "controller",
        "",
        "missing: a reconcile has no time-out; requests have one",
    ),
    counter(
        "controller_runtime_conversion_webhook_panics_total",
        "",
        "",
        "missing: there is no conversion webhook (`kerf convert`)",
    ),
    gauge(
        "workqueue_depth",
        "name controller priority",
        "Watch events that the loop has not processed yet.",
        "same; of one queue, `inbox`; priority is empty",
    ),
    *(
        make(f"workqueue_{name}", "name controller", "", _NO_SUCH + instead)
        for name, make, instead in (
            ("adds_total", counter, "whose events are not counted one by one"),
            (
                "queue_duration_seconds",
                histogram,
                "which each reconcile empties: `controller_runtime_reconcile_time_seconds`",
            ),
            ("work_duration_seconds", histogram, "see `controller_runtime_reconcile_time_seconds`"),
            ("unfinished_work_seconds", gauge, "see `karpenter_scheduler_unfinished_work_seconds`"),
            ("longest_running_processor_seconds", gauge, "see `karpenter_scheduler_unfinished_work_seconds`"),
            ("retries_total", counter, "and nothing is put back: the next reconcile decides again"),
        )
    ),
    gauge("leader_election_master_status", "name", "1 when this process leads."),
    counter("leader_election_slowpath_total", "name", "", "missing: the lease is always read before it is renewed"),
)

PROCESS: Final = (
    counter("process_cpu_seconds_total", "", "CPU time of the process, in seconds."),
    gauge("process_resident_memory_bytes", "", "Resident memory of the process, in bytes."),
    gauge("process_virtual_memory_bytes", "", "Virtual memory of the process, in bytes."),
    gauge("process_start_time_seconds", "", "Start time of the process."),
    gauge("process_open_fds", "", "Open file descriptors."),
    gauge("process_max_fds", "", "Limit of open file descriptors."),
    gauge("go_*", "", "", "missing: Python has no goroutines; see `process_*`"),
    gauge("python_info", "version implementation major minor patchlevel", "1, with the version of Python.", OWN),
)

LIBRARIES: Final[tuple[Listed, ...]] = (*OBJECTS, *REQUESTS, *LOOP, *PROCESS)
