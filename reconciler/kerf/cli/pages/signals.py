"""The pages docs/reference/metrics.md and events.md, from the tables that the code goes by."""

from __future__ import annotations

from typing import Final

from kerf.telemetry.catalogue import listed_libraries, listed_metrics, listed_own
from kerf.telemetry.catalogue.listed_events import EVENTS, ListedEvent
from kerf.telemetry.catalogue.listing import CONDITIONS, NODES, OFFERINGS, PODS, Listed

_METRICS: Final = """\
# Metrics

Rendered by `make manifests` from the tables in `reconciler/kerf/telemetry/catalogue/`, which the code itself uses. Kerf
serves metrics in Prometheus' text format on `:8080/metrics`. Replicas that do not lead serve only the metrics about the
process, its requests and the Lease. [Monitoring](../monitoring.md) describes their use.

`same` is Karpenter's metric with its type, labels and (for a histogram) buckets. A test creates and removes a node on a
real control plane and compares the served metrics with this page in both directions.

## Number of series

By default there is no series per pod, and one per NodeClaim. `DETAILED_METRICS` (`settings.detailedMetrics` of the
chart) adds series per object. It lists names, separated by commas, or is `all`:

{details}
`DISABLE_CLUSTER_STATE_OBSERVABILITY` removes the series of single pods and the resources of single nodes, regardless of
`DETAILED_METRICS`. The chart's `serviceMonitor.metricRelabelings` drop single metrics, as with Karpenter.
`python -m benchmarks scrape` measures a scrape with 5,000 nodes and 100,000 pods, with and without.
"""

_DETAILS: Final = (
    (
        CONDITIONS,
        "all conditions of each NodeClaim and Node, with their ages. Without it: Ready of each NodeClaim; and for "
        "the 500 objects of each kind with the oldest trouble, all conditions without their final status",
        "12 for each NodeClaim, about 10 for each Node",
    ),
    (
        NODES,
        "`karpenter_nodes_allocatable` and the like: resources by node, with some 40 labels",
        "20 for each Node, or more",
    ),
    (
        OFFERINGS,
        "prices and availability of instance types, their sizes",
        "2 for each type, zone and capacity type: 20,000",
    ),
    (
        PODS,
        "`karpenter_pods_state`; the times of all pending pods, not only of the 400 with the longest wait",
        "1 for each pod",
    ),
)

_EVENTS: Final = """\
# Events

Rendered by `make manifests` from `reconciler/kerf/telemetry/catalogue/listed_events.py`. Kerf writes Events of core/v1
with Karpenter's component (`karpenter`); events about cluster-scoped objects are in the namespace `default`. The
annotation `kerf.sh/reconcile-id` is the ID of the reconcile
([logs](logs.md#from-a-line-to-the-event-and-the-metric-and-back)).

- Kerf does not repeat an event on an object within the time in the column "again after". Two events are the same if
  object (kind, namespace and name), reason and cause are equal. A restart or another leader may repeat one.
- The rate is limited: 50 per second with bursts of 200; for `Nominated` 5 per second with bursts of 10. Kerf tries a
  dropped event again with its next occurrence. `kerf_events_total{type,outcome}` counts written, repeated, dropped and
  failed events.
- No message is longer than 1,024 characters, the limit of Kubernetes.
- Nothing depends on events: Kerf drops an event that it cannot write.

Reasons and types are Karpenter's. Karpenter compares events without kind and namespace, so that two pods of one name
suppress each other's events; Kerf compares both.
"""

_NAMES: Final = {
    "NodeClaims": listed_metrics.CLAIMS,
    "Nodes": listed_metrics.NODES_,
    "Pods": listed_metrics.PODS_,
    "NodePools": listed_metrics.POOLS,
    "Disruption": listed_metrics.DISRUPTION,
    "Scheduler and state": listed_metrics.SCHEDULER,
    "AWS": listed_metrics.CLOUD,
    "Conditions": listed_libraries.OBJECTS,
    "Requests": listed_libraries.REQUESTS,
    "The loop and the lease": listed_libraries.LOOP,
    "The process": listed_libraries.PROCESS,
    "Kerf's own": listed_own.OURS,
}
_MOST_LABELS: Final = 14
_COMPARED: Final = "compared with Karpenter"


def metrics_page() -> str:
    details = _table("word", "additional series", "how many series")
    details += "".join(f"| `{word}` | {text} | {count} |\n" for word, text, count in _DETAILS)
    parts = [_METRICS.format(details=details)]
    for title, rows in _NAMES.items():
        parts.append(f"\n## {title}\n\n{_table('metric', 'type', 'labels', 'what it is', _COMPARED)}")
        parts += map(_metric, rows)
    parts.append(_buckets())
    return "".join(parts)


def _table(*columns: str) -> str:
    """The head of one."""
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"


def _metric(row: Listed) -> str:
    said = [row.about.removesuffix(".")] if row.about and row.here else []
    said += [f"with `DETAILED_METRICS={row.detail}`"] if row.detail else []
    said += [f"of the {row.process}"] if row.process != "controller" else []
    compared = row.karpenter.replace("|", "\\|")
    return f"| `{row.name}` | {row.kind} | {_labels(row)} | {'; '.join(said)} | {compared} |\n"


def _labels(row: Listed) -> str:
    if len(row.labels) <= _MOST_LABELS:
        return ", ".join(row.labels)
    own = ", resource_type" if "resource_type" in row.labels else ""
    return f"[those of nodes](#labels-of-nodes){own}"


def _buckets() -> str:
    """Bounds, by those who have them; labels of nodes."""
    by_bounds: dict[tuple[float, ...], list[str]] = {}
    for rows in _NAMES.values():
        for row in rows:
            if row.buckets and row.here:
                by_bounds.setdefault(row.buckets, []).append(row.name)
    lines = "".join(
        f"| {' '.join(f'{bound:g}' for bound in bounds)} | {', '.join(f'`{name}`' for name in names)} |\n"
        for bounds, names in by_bounds.items()
    )
    place = ", ".join((*listed_metrics.PLACE, *listed_metrics.WELL_KNOWN))
    return (
        f"\n## Buckets\n\n{_table('bounds', 'of')}{lines}\n## Labels of nodes\n\n{place}.\n\n"
        "Each is what the Node's label says, by the part of its name after `/`; `phase` is empty: Kubernetes sets none "
        "any more. CPU is in cores, memory in bytes.\n"
    )


def events_page() -> str:
    parts = [_EVENTS]
    for title, rows in EVENTS.items():
        parts.append(f"\n## {title}\n\n{_table('on', 'reason', 'type', 'when', 'again after', _COMPARED)}")
        parts += map(_event, rows)
    return "".join(parts)


def _event(row: ListedEvent) -> str:
    again = row.again if row.here else ""
    return f"| {row.objects} | `{row.reason}` | {row.type} | {row.when} | {again} | {row.karpenter} |\n"
