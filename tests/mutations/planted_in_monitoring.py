"""The planted bugs of what operators see: the count of nodes, the alerts and the dashboards of the chart."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_ALERTS = "charts/kerf/files/alerts.yaml"
_COUNTING, _JUDGING = "tests/unit/telemetry/test_fleet.py", "tests/unit/charts/test_alerts.py"
_SHOWING = "tests/unit/charts/test_dashboards.py"

BUGS = (
    Bug(
        "a node that changes is one more",
        "The number of nodes grows whenever something about a node is written.",
        (Edit("reconciler/kerf/telemetry:Fleet.see", "if before is not None:\n    self._nodes[before] -= 1", ""),),
        (f"{_COUNTING}::test_a_node_counts_once_whatever_else_changes_about_it",),
    ),
    Bug(
        "nodes of others are counted",
        "The share of spot is that of the whole cluster, its static node groups included.",
        (
            Edit(
                "reconciler/kerf/telemetry:_place",
                (
                    "if not pool:\n"
                    "    return None\n"
                    "return (pool, own.get(labels.CAPACITY_TYPE, ''), own.get(labels.ZONE, ''))"
                ),
                (
                    "if node is None:\n"
                    "    return None\n"
                    "return (own.get(labels.NODEPOOL, ''), own.get(labels.CAPACITY_TYPE, ''), own.get(labels.ZONE, "
                    "''))"
                ),
            ),
        ),
        (f"{_COUNTING}::test_of_what_has_gone_and_of_nodes_of_others_nothing_is_told",),
    ),
    Bug(
        "an alert about every release",
        "Somebody is called at night for the Kerf of another cluster that the same Prometheus looks at.",
        (Edit(_ALERTS, 'kerf_deletion_held{job="$(job)"}', "kerf_deletion_held{}"),),
        (f"{_JUDGING}::test_it_is_about_this_release_alone",),
    ),
    Bug(
        "a threshold that nobody can change",
        "prometheusRule.alerts.KerfNodePoolNearLimit.threshold has no effect.",
        (
            Edit(
                _ALERTS,
                '(karpenter_nodepools_limit{job="$(job)"}) > 0)\n      > $(threshold)',
                '(karpenter_nodepools_limit{job="$(job)"}) > 0)\n      > 90',
            ),
        ),
        (f"{_JUDGING}::test_those_that_compare_with_a_threshold_have_one",),
    ),
    Bug(
        "an alert that leads nowhere",
        "Who is called finds no section that says what to do.",
        (Edit("docs/troubleshooting.md", "### KerfNodesDoNotRegister\n", "### Nodes do not register\n"),),
        (f"{_JUDGING}::test_it_leads_to_a_section_that_says_what_to_do",),
    ),
    Bug(
        "a panel of all releases",
        "Numbers of several clusters are added up.",
        (
            Edit(
                "charts/kerf/files/dashboards/capacity.json",
                'max(karpenter_cluster_state_node_count{job=~\\"$job\\"})',
                'max(karpenter_cluster_state_node_count{job=~\\".+\\"})',
            ),
        ),
        (f"{_SHOWING}::test_each_query_is_about_the_chosen_job",),
    ),
)
