"""Bugs planted where nodes that pods cannot run on are judged, recorded and followed by others."""

from __future__ import annotations

from typing import Final

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_EVIDENCE: Final = "reconciler/kerf/scheduling/mismatch"
_STORY: Final = "tests/scenarios/test_unused_nodes.py"
_DIFFER = "tests/unit/disruption/test_replacements_that_differ.py"
_ALIKE: Final = "tests/unit/provisioning/test_planned_alike.py"
_LATE = "tests/unit/provisioning/test_late.py"
_DRIFTED: Final = "tests/unit/disruption/test_several_drifted.py"
_RECORDS: Final = "tests/unit/lifecycle/test_mismatches.py"

BUGS: tuple[Bug, ...] = (
    Bug(
        "unused nodes never delay the next one",
        "An agent that cordons each node costs two nodes a minute for ever.",
        (Edit("reconciler/kerf/model:Record.limits", "self.nodes >= FREE_ATTEMPTS", "False"),),
        (
            f"{_STORY}::test_after_ten_attempts_in_a_row_the_next_ones_are_delayed[cordoned-_cordons]",
            f"{_RECORDS}::test_a_few_unused_nodes_are_not_reported",
        ),
    ),
    Bug(
        "unused nodes count as nodes other than planned",
        "A node that a person cordons holds up the pods it was made for.",
        (
            Edit(
                f"{_EVIDENCE}:_judged",
                "yield Verdict(one, pod, shape, undecided, unused)",
                "yield Verdict(one, pod, shape, undecided)",
            ),
        ),
        (f"{_STORY}::test_a_few_nodes_that_are_cordoned_delay_nothing",),
    ),
    Bug(
        "each unused node of one attempt counts",
        "Ten nodes that are cordoned together delay the next one.",
        (Edit("reconciler/kerf/lifecycle:_with_unused", "_created(verdict.watched, now) <= record.at", "False"),),
        (f"{_RECORDS}::test_unused_nodes_of_one_attempt_count_once_and_another_row_begins_after_three_hours",),
    ),
    Bug(
        "a pod that the kubelet rejected counts as one that ran",
        "A label that changes as pods are bound costs two nodes a minute for ever.",
        (Edit(f"{_EVIDENCE}:_watch", "not pods.rejected(pod)", "True"),),
        (
            f"{_STORY}::test_a_label_that_changes_after_pods_are_bound_is_evidence",
            "tests/unit/scheduling/test_evidence.py"
            "::test_a_pod_that_the_kubelet_rejected_is_evidence_for_the_next_one_of_its_shape",
        ),
    ),
    Bug(
        "the second attempt is like the first",
        "A pod is refused for a day because nodes of one architecture are not usable.",
        (Edit("reconciler/kerf/provisioning:_elsewhere_than", "_AVOIDED if record.where else ()", "()"),),
        (f"{_STORY}::test_where_other_nodes_are_well_the_second_one_runs_the_pod[of an architecture]",),
    ),
    Bug(
        "a pod in place of a deleted one is another case",
        "A CI runner whose pods are given up after minutes buys twenty nodes an hour that do not help.",
        (Edit(f"{_EVIDENCE}:_made_for", "one.initialized", "False"),),
        (
            f"{_STORY}::test_pods_that_are_given_up_and_made_again_get_two_nodes[tainted]",
            "tests/unit/scheduling/test_evidence.py::test_a_pod_in_place_of_a_deleted_one_takes_over_its_verdict",
        ),
    ),
    Bug(
        "pods with a hard spread avoid the zone of the first node",
        "The second node breaks the spread for the kube-scheduler, and the pod waits a day.",
        (Edit("reconciler/kerf/provisioning:_elsewhere_than", "must_be_spread(pod)", "False"),),
        ("tests/unit/provisioning/test_progress.py::test_a_second_node_keeps_to_the_spread_of_the_pod",),
    ),
    Bug(
        "a taint that evicts is learned of no node",
        "A controller that quarantines each node evicts its pods forty times an hour.",
        (Edit("reconciler/kerf/lifecycle:_evicting", "one.initialized and one.evicted", "False"),),
        (
            f"{_STORY}::test_a_taint_that_evicts_is_learned_of_two_nodes[60.0]",
            f"{_RECORDS}::test_a_taint_that_evicts_is_learned_though_no_pod_waits_for_the_node[evicted]",
        ),
    ),
    Bug(
        "a replacement that starts slowly is not compared with its plan",
        "An agent's taint makes a slow node time out, and it is bought again for ever.",
        (Edit("reconciler/kerf/disruption:ends_at", "at + _COMPARED", "at"),),
        (
            f"{_DIFFER}::test_a_replacement_that_starts_slowly_is_compared_all_the_same[9-14]",
            "tests/scenarios/test_scenarios.py::test_scenario[progress/slow-replacement-is-tainted-at-first]",
        ),
    ),
    Bug(
        "a replacement may lack labels",
        "A roll-out evicts every pod to nodes whose labels it does not select.",
        (Edit("reconciler/kerf/scheduling/mismatch:_passing", "not accepted_by_node(pod, own)", "False"),),
        (f"{_DIFFER}::test_a_label_that_pods_select_has_time_to_come",),
    ),
    Bug(
        "a replacement may attach too few volumes",
        "Consolidation to a cheaper type evicts pods every two minutes.",
        (Edit("reconciler/kerf/scheduling/mismatch:_lasting", "wanted > most", "False"),),
        (f"{_DIFFER}::test_nodes_that_attach_too_few_volumes_are_no_replacement",),
    ),
    Bug(
        "DaemonSet pods that came after the plan do not count",
        "A roll-out evicts every pod to nodes without room for them.",
        (Edit("reconciler/kerf/scheduling/mismatch:_too_small", "(*coming, *daemons)", "coming"),),
        (f"{_DIFFER}::test_daemon_pods_that_no_plan_knew_count",),
    ),
    Bug(
        "each node of a roll-out learns for itself that replacements differ",
        "A roll-out buys two nodes for each node of the NodePool.",
        (Edit("reconciler/kerf/disruption:_drift_candidate", "waits is not None", "False"),),
        (f"{_DIFFER}::test_two_nodes_with_two_in_a_row_hold_the_roll_out_of_their_node_pool[failing1-True]",),
    ),
    Bug(
        "a trait is not examined when a node would show it",
        "A taint that one node of a NodePool has remains a fact of all until something else changes.",
        (Edit("reconciler/kerf/lifecycle:find", "_traits_due(turn.snapshot)", "None"),),
        (f"{_RECORDS}::test_a_trait_is_looked_at_again_when_the_next_node_would_show_it[NoSchedule-50]",),
    ),
    Bug(
        "what one node shows and others do not is learned in each turn",
        "Kerf writes the annotation of the NodePool again and again.",
        (Edit("reconciler/kerf/lifecycle:_learned", "facts = _standing(snapshot, pool, facts)", "pass"),),
        (f"{_RECORDS}::test_a_taint_that_another_node_does_not_have_is_not_learned_again_each_time[well]",),
    ),
    Bug(
        "of empty nodes of a static NodePool the first by name goes",
        "A roll-out to nodes that do not come up removes those that work, one after the other.",
        (Edit("reconciler/kerf/disruption:_rank", "_EMPTY if able else _UNREADY", "_EMPTY"),),
        ("tests/unit/disruption/test_surplus.py::test_an_empty_node_that_is_not_well_goes_before_one_that_is",),
    ),
    Bug(
        "a replacement that is late is like one whose launch failed",
        "The roll-out of a static NodePool to nodes that do not come up launches six an hour.",
        (Edit("reconciler/kerf/disruption:are_late", "bool(awaited(view, command))", "False"),),
        (
            "tests/scenarios/test_runaway.py::"
            "test_successors_in_a_static_node_pool_that_never_initialize_are_tried_once_an_hour",
        ),
    ),
    Bug(
        "nodes that do not join are all tried again",
        "Every fifteen minutes a NodePool with a wrong image launches a node for each of its pods.",
        (Edit("reconciler/kerf/model:unregistered", "fails and found[-1].at + _TOLD > now", "False"),),
        ("tests/scenarios/test_runaway.py::test_after_nodes_that_never_join_there_is_one_at_a_time[False]",),
    ),
    Bug(
        "the pods of a zone that is broken go first",
        "Pods of other zones get no node of the NodePool as long as these pods wait.",
        (Edit("reconciler/kerf/provisioning:_next_attempt", "min(nodes, key=likeness)", "nodes[0]"),),
        ("tests/unit/provisioning/test_expecting.py::test_the_next_node_is_where_none_has_failed",),
    ),
    Bug(
        "a roll-out to nodes that do not join",
        "Where the latest nodes have not joined, a roll-out launches as many as budgets allow.",
        (Edit("reconciler/kerf/disruption:limited", "limits.of(one) is not None", "False"),),
        (f"{_DRIFTED}::test_after_nodes_that_did_not_join_only_one_is_started",),
    ),
    Bug(
        "any initialized node answers for late ones",
        "Each amd64 node that comes up has all pods for arm64 launch nodes again that never do.",
        (Edit("reconciler/kerf/scheduling/facts:_Late._answered", "answers(one, late, kind)", "True"),),
        (f"{_ALIKE}::test_late_nodes_are_followed_by_one_while_other_nodes_come_up[architecture-10]",),
    ),
    Bug(
        "late nodes close their NodePool",
        "Pods for amd64 wait a day because GPU nodes have no device plugin.",
        (Edit("reconciler/kerf/scheduling/facts:Limits._found", "late.left_of_all()", "0"),),
        (f"{_ALIKE}::test_late_nodes_are_followed_by_one_while_other_nodes_come_up[extended resource-30]",),
    ),
    Bug(
        "pods that share a node with one that stays late wait with it",
        "As long as a pod for a GPU is pending, the pods that the solver puts beside it get no node.",
        (Edit("reconciler/kerf/provisioning:_barred", "own[: max(len(own) - need, 0)]", "own[:0]"),),
        (f"{_ALIKE}::test_pods_that_only_share_a_node_with_them_get_one",),
    ),
    Bug(
        "a pod that would fit on a node has others of its shape wait",
        "The node has room for one of them; the others get no node of another NodePool.",
        (
            Edit(
                "reconciler/kerf/provisioning:_barred",
                "solved(members[shape], roughly=True)",
                "solved(members[shape][:1], roughly=True)",
            ),
        ),
        (f"{_LATE}::test_pods_beside_which_others_have_a_node_all_get_one_of_another_node_pool",),
    ),
    Bug(
        "pods wait for late nodes of one NodePool though another would do",
        "The other NodePool would serve them at once.",
        (Edit("reconciler/kerf/provisioning:_avoiding_late", "another and not must_be_spread(pod)", "False"),),
        (f"{_ALIKE}::test_pods_whose_nodes_stay_late_get_one_of_another_node_pool",),
    ),
    Bug(
        "pods that are held have the others planned again and again",
        "Each plan searches for a cheaper answer; pods of nodes that have just come up wait seconds for the last one.",
        (
            Edit(
                "reconciler/kerf/provisioning:_on_existing_nodes",
                "_on_new_nodes(solved(left, without, roughly=True), held)",
                "_on_new_nodes(solved(left, without), held)",
            ),
        ),
        (
            "tests/unit/provisioning/test_progress.py::test_pods_that_are_held_cost_no_further_search_for_a_cheaper_plan",
        ),
    ),
    Bug(
        "pods with a hard spread wait for nodes that do not help them",
        "Their zone is full; until one of them has a place there, the others of their workload can have none.",
        (
            Edit(
                "reconciler/kerf/provisioning:_displaced",
                "displaced(turn, opened - SEEN, must_be_spread if awaits else None)",
                "not awaits and displaced(turn, opened - SEEN)",
            ),
        ),
        (
            "tests/unit/provisioning/test_provision.py"
            "::test_a_pod_with_a_hard_spread_that_lost_its_capacity_does_not_wait_for_nodes_that_are_still_to_come",
        ),
    ),
    Bug(
        "pods lose their nodes for the sake of those with a hard spread",
        "Their NodePool makes no nodes while pods with a spread could have some of another one.",
        (Edit("reconciler/kerf/provisioning:_with_hard_spreads", "before.get(key) != name", "False"),),
        (f"{_LATE}::test_a_hard_spread_takes_no_node_from_pods_whose_node_pool_makes_them[None]",),
    ),
    Bug(
        "pods lose their places for the sake of those with a hard spread",
        "The other NodePool serves these and no others.",
        (
            Edit(
                "reconciler/kerf/provisioning:_with_hard_spreads",
                "other.unplaced.keys() < solution.unplaced.keys()",
                "True",
            ),
        ),
        (f"{_ALIKE}::test_pods_with_a_hard_spread_get_nodes_of_another_node_pool_if_no_other_pod_pays_for_it",),
    ),
    Bug(
        "pods pass over three NodePools that make no nodes for them, and not over a fourth",
        "They wait for as long as its nodes count as late, though another one would serve them.",
        (Edit("reconciler/kerf/provisioning:_avoiding_late", "range(_AVOIDED)", "range(3)"),),
        (f"{_LATE}::test_node_pools_that_make_no_such_node_are_passed_over_one_after_the_other[4]",),
    ),
    Bug(
        "pods that are held get a node where others avoid late ones",
        "The node that was launched for them may still run them.",
        (
            Edit(
                "reconciler/kerf/provisioning:with_progress",
                "partial(_on_existing_nodes, held, solved)",
                "partial(_on_existing_nodes, {}, solved)",
            ),
        ),
        (f"{_LATE}::test_pods_that_are_held_get_no_new_node_where_others_go",),
    ),
    Bug(
        "virtual pods take the nodes of real ones",
        "They have no creation time, and come before all others.",
        (Edit("reconciler/kerf/provisioning:real_first", "virtual(pod)", "False"),),
        (
            f"{_LATE}::test_virtual_pods_take_no_node_from_real_ones",
            "tests/unit/provisioning/test_progress.py::test_the_next_attempt_is_for_a_pod_and_not_for_a_virtual_one",
        ),
    ),
    Bug(
        "pods with a hard spread wait because the next NodePool makes no such nodes either",
        "A third one would serve them.",
        (Edit("reconciler/kerf/provisioning:_with_hard_spreads", "range(_AVOIDED)", "range(0)"),),
        (f"{_LATE}::test_a_hard_spread_passes_over_node_pools_one_after_the_other[2]",),
    ),
    Bug(
        "some of many held pods get nodes",
        "The search for a cheaper plan moves them away from the existing node.",
        (
            Edit(
                "reconciler/kerf/provisioning:_on_existing_nodes",
                "(solution.placed.keys(), frozenset[str]())",
                "()",
            ),
        ),
        ("tests/unit/provisioning/test_progress.py::test_pods_that_are_held_get_no_node_however_many_they_are",),
    ),
    Bug(
        "an expiring node that waits keeps others of its NodePool from their successors",
        "Its successor would be like late nodes; theirs would not.",
        (
            Edit(
                "reconciler/kerf/disruption/methods:_prepared",
                "view.snapshot.node_pools[state.pool_name].static",
                "True",
            ),
        ),
        (f"{_DRIFTED}::test_one_that_waits_for_its_successor_keeps_no_other_of_its_node_pool_waiting",),
    ),
    Bug(
        "consolidation makes nodes like those that stay late",
        "A replacement of that kind never comes up, and the next one does not either.",
        (Edit("reconciler/kerf/scheduling/facts:Limits.bars", "not limit.left", "False"),),
        (f"{_DRIFTED}::test_a_node_whose_successor_would_be_like_late_ones_stays",),
    ),
    Bug(
        "nodes that must go get no successor though another NodePool would do",
        "Their pods wait at the end of an expired node for one that the next NodePool makes.",
        (
            Edit(
                "reconciler/kerf/disruption:_simulated",
                "must_go and len(shut) < min(len(view.snapshot.node_pools) - 1, _MOST_POOLS)",
                "False",
            ),
        ),
        (f"{_DRIFTED}::test_a_node_that_must_go_gets_a_successor_of_another_node_pool[others0]",),
    ),
    Bug(
        "a roll-out evades to a NodePool without the change",
        "Where nodes with the change do not come up, those without it say that it is well.",
        (
            Edit(
                "reconciler/kerf/disruption:_simulated",
                "must_go and len(shut) < min(len(view.snapshot.node_pools) - 1, _MOST_POOLS)",
                "len(shut) < min(len(view.snapshot.node_pools) - 1, _MOST_POOLS)",
            ),
        ),
        (f"{_DRIFTED}::test_a_node_that_can_stay_waits_for_its_node_pool",),
    ),
    Bug(
        "an expired node goes without a successor because one is on its way",
        "Whether nodes of its NodePool come up would be known a minute later.",
        (Edit("reconciler/kerf/disruption/methods:_one", "outcome.barred", "False"),),
        (f"{_DRIFTED}::test_a_node_that_must_go_waits_for_the_attempt_that_is_under_way",),
    ),
    Bug(
        "pods that only together need a node like late ones all wait",
        "One requires a zone, one an architecture; of both, nodes are late, and neither gets one.",
        (Edit("reconciler/kerf/provisioning:_company_of_oldest", "len(node.pods) > 1", "False"),),
        (f"{_ALIKE}::test_of_pods_that_only_together_need_such_a_node_the_oldest_gets_one",),
    ),
    Bug(
        "consolidation makes several nodes beside late ones",
        "Their NodePool makes one at a time.",
        (Edit("reconciler/kerf/disruption:not_made", "counts[limit.pool] > limit.left", "not limit.left"),),
        (f"{_DRIFTED}::test_consolidation_makes_one_node_at_a_time_beside_late_ones",),
    ),
    Bug(
        "nodes stay because of a pending pod that gets no node",
        "The scheduler puts their pods beside it, on a node like the late ones.",
        (
            Edit(
                "reconciler/kerf/disruption:_simulated",
                "_Otherwise(ask, left_out=found.waiting)",
                "_Otherwise(ask)",
            ),
        ),
        (f"{_DRIFTED}::test_a_pending_pod_that_gets_no_node_keeps_no_node_from_its_successor",),
    ),
    Bug(
        "only the types of the scheduler's plan are compared with late nodes",
        "A replacement is made of the one cheaper type that never comes up.",
        (Edit("reconciler/kerf/disruption:not_made", "limits.of(one)", "None"),),
        (f"{_DRIFTED}::test_a_replacement_of_fewer_types_than_planned_is_not_made_where_it_would_be_like_late_ones",),
    ),
)
