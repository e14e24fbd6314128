"""The pages docs/reference/metrics.md and events.md, from the tables that the code goes by."""

from __future__ import annotations

from typing import Final

from kerf.telemetry.catalogue import listed_libraries, listed_metrics, listed_own
from kerf.telemetry.catalogue.listed_events import EVENTS, ListedEvent
from kerf.telemetry.catalogue.listing import CONDITIONS, NODES, OFFERINGS, PODS, Listed

_METRICS: Final = """\
# Metrics

Rendered by `make manifests` from the tables in `reconciler/kerf/telemetry/` (`names.py`), by which the code itself
goes. They are served as Prometheus' text on `:8080/metrics`; only the leader's say something, but for those about the
process, its requests and the lease. Their use is described in [operations](../operations.md#look).

`same` is Karpenter's metric with its type and labels (and, of a histogram, buckets). A test lets a node come and go on
a real control plane, reads what the controller serves, and holds it against this page in both directions.

## How many series

There is no series for each pod, and one for each node claim, unless you ask for more. `DETAILED_METRICS`
(`settings.detailedMetrics` of the chart) names what is to have one for each object, by comma, or `all`:

{details}
`DISABLE_CLUSTER_STATE_OBSERVABILITY` leaves out what is about single pods, and the resources of single nodes, whatever
is named there. Single metrics are dropped by the chart's `serviceMonitor.metricRelabelings`, as with Karpenter.
`python -m benchmarks scrape` measures a scrape with 5,000 nodes and 100,000 pods, with and without.
"""

_DETAILS: Final = (
    (
        CONDITIONS,
        "of each NodeClaim and Node all conditions, and since when they are so. Without it: Ready of each NodeClaim; "
        "and of the 500 of each kind that have been in trouble for longest, all that is not as it ends up",
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
        "`karpenter_pods_state`; the times of all pods that wait, not only of the 400 that have waited for longest",
        "1 for each pod",
    ),
)

_EVENTS: Final = """\
# Events

Rendered by `make manifests` from `reconciler/kerf/telemetry/catalogue/listed_events.py`. They are Events of core/v1, as
Karpenter's (component `karpenter`), those about objects without a namespace in `default`. The annotation
`kerf.sh/reconcile-id` is the look that one belongs to
([logs](logs.md#from-a-line-to-the-event-and-the-metric-and-back)).

- The same event on the same object is not written again for a while: "again after". The same is: object (kind,
  namespace and name), reason, and the cause where there are several. A restart, or another leader, may repeat one.
- There is never a flood: 50 a second, 200 at once; of `Nominated` 5 a second, 10 at once. What is left out is tried
  again when it is next said. `kerf_events_total{type,outcome}` counts what was written, repeated, left out or failed.
- No message is longer than 1,024 characters, as Kubernetes has it.
- Nothing depends on events: one that cannot be written is dropped.

Karpenter's reasons and types are kept. Where it leaves kind and namespace out of what it takes for the same (so that
two pods of one name silence each other), here both count.
"""

_NAMES: Final = {
    "Node claims": listed_metrics.CLAIMS,
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
    details = _table("word", "what comes with it", "how many series")
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
    said += ["of the webhook"] if row.process == "webhook" else []
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
