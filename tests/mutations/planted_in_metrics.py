"""The planted bugs of metrics and events: what is told, of how much, and by which names."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_SERIES = "tests/unit/telemetry/test_series.py::"
_COUNTED = "tests/unit/telemetry/test_counted.py::"

BUGS = (
    Bug(
        "a series for each pod",
        "With 100,000 pods Prometheus is sent a hundred megabytes every half minute, though nobody has asked for it.",
        (
            Edit(
                "reconciler/kerf/telemetry:ObjectSeries.__init__",
                "PodStates() if PODS in details else None",
                "PodStates()",
            ),
        ),
        (_SERIES + "test_no_series_is_about_one_pod",),
    ),
    Bug(
        "all that wait",
        "A storm of pods that wait is one of series as well.",
        (
            Edit(
                "reconciler/kerf/telemetry:PodTimes.text",
                "not self._everything and len(waits) > MOST",
                "self._everything",
            ),
        ),
        (_SERIES + "test_pods_that_wait_are_told_of_up_to_so_many",),
    ),
    Bug(
        "trouble without bounds",
        "A fleet that drifts as a whole has a series for each condition of each node claim.",
        (Edit("reconciler/kerf/telemetry:ConditionGauges._counts", "whole or id(lines) in unsound", "True"),),
        (_SERIES + "test_what_is_in_trouble_is_told_of_up_to_so_many",),
    ),
    Bug(
        "pods that are over take room",
        "Jobs that have ended fill the cluster, as the numbers have it.",
        (Edit("reconciler/kerf/telemetry:_OVER", "frozenset({'Succeeded', 'Failed'})", "frozenset()"),),
        (_SERIES + "test_utilization_is_what_bound_pods_that_are_not_over_request",),
    ),
    Bug(
        "nodes that went still cost",
        "The cost of a NodePool only ever grows.",
        (Edit("reconciler/kerf/telemetry:PoolCosts.see", "self._nodes[before] -= 1", ""),),
        (_SERIES + "test_what_the_nodes_of_a_pool_cost",),
    ),
    Bug(
        "another label",
        "A dashboard that was made for Karpenter has an empty panel.",
        (
            Edit(
                "reconciler/kerf/telemetry:CLAIMS",
                "'nodepool capacity_type zone'",
                "'nodepool zone capacity'",
            ),
        ),
        (
            "tests/unit/telemetry/test_metric_reference.py"
            "::test_every_metric_of_karpenters_is_listed_with_its_type_and_labels",
        ),
    ),
    Bug(
        "an event of no row",
        "An event comes that no page tells of.",
        (Edit("reconciler/kerf/lifecycle:_force", "'Disrupted'", "'Forced'"),),
        ("tests/unit/telemetry/test_event_reference.py::test_every_reason_in_the_code_is_listed_and_no_other",),
    ),
    Bug(
        "messages of any length",
        "An event that says much is refused by the API server, and nobody reads it.",
        (Edit("reconciler/kerf/telemetry:EventWriter.write", "event = bounded(event)", ""),),
        (_COUNTED + "test_no_message_is_longer_than_kubernetes_takes",),
    ),
    Bug(
        "an error is a success",
        "A loop that a bug ends each time looks as if all were well.",
        (Edit("reconciler/kerf/telemetry:Troubles.deciding_failed", "self.broken = True", ""),),
        (_COUNTED + "test_a_look_that_a_bug_ends_is_an_error_and_the_next_is_none",),
    ),
)
