"""Bugs planted in the time before a batch closes: which nodes are ordered early, and what is solved for ahead."""

from __future__ import annotations

from typing import Final

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_TESTS: Final = "tests/unit/provisioning/test_early.py"
_AHEAD: Final = "tests/unit/provisioning/test_solved_ahead.py"
_BATCHES: Final = "tests/unit/runtime/test_batching.py"
_ROOM: Final = "reconciler/kerf/provisioning"
_CERTAIN: Final = "reconciler/kerf/scheduling/improving"

BUGS: tuple[Bug, ...] = (
    Bug(
        "a solution from before the close holds whatever the time",
        "Pods are sent to a node that Kerf has given up meanwhile.",
        (Edit("reconciler/kerf/model:Turn.held", "until is None or self.snapshot.now < until", "True"),),
        (f"{_AHEAD}::test_a_node_that_is_given_up_meanwhile_gets_no_pods",),
    ),
    Bug(
        "pods are solved for ahead again and again",
        "In a large cluster, where something changes all the time, solutions keep the loop from the close.",
        (Edit(f"{_ROOM}:_ahead", "batch.ahead_at is not None", "False"),),
        (f"{_AHEAD}::test_a_solution_that_does_not_hold_any_more_is_not_made_again_before_the_close",),
    ),
    Bug(
        "a solution from before the close serves however late",
        "A reconcile seconds after the close buys nodes for pods whose capacity is free in a moment.",
        (Edit(f"{_ROOM}:provision", "snapshot.now < closes + _AS_OF_CLOSE", "True"),),
        (f"{_AHEAD}::test_a_late_reconcile_decides_as_of_now",),
    ),
    Bug(
        "a solution as of the close is reported as of now",
        "Events say of one pod that it should be on a node, and that it is expected there no more.",
        (Edit(f"{_ROOM}:provision", "replace(snapshot, now=closes) if prompt else snapshot", "snapshot"),),
        (f"{_AHEAD}::test_a_prompt_reconcile_decides_as_of_the_close",),
    ),
    Bug(
        "an early order may cost any price",
        "Nodes are ordered early for pods that others to come could share for much less.",
        (
            Edit(
                f"{_ROOM}:_certain",
                "node.price > (1 + LOSS) * node.value",
                "False",
            ),
        ),
        (f"{_TESTS}::test_nodes_that_cost_more_than_their_pods_are_worth_wait",),
    ),
    Bug(
        "a few nodes are enough for an early order",
        "The only node of a small batch is ordered before more pods make it a larger one.",
        (Edit(f"{_ROOM}:certain_part", "solution.price // NODES", "solution.price"),),
        (f"{_TESTS}::test_a_few_nodes_are_no_certain_ones",),
    ),
    Bug(
        "pods with less priority are served first",
        "Early nodes for unimportant pods use up the limits before more important pods have come.",
        (Edit(f"{_ROOM}:_certain", "snapshot.pods[key].spec.priority >= least", "snapshot.pods[key] is not None"),),
        (f"{_TESTS}::test_priorities_below_one_that_still_grows",),
    ),
    Bug(
        "an early order is made again while its answer is out",
        "While the API server is slow, each look orders nodes for the same pods.",
        (Edit(f"{_ROOM}:_before", "unanswered(turn.snapshot)", "False"),),
        (f"{_TESTS}::test_a_node_claim_that_is_being_created_comes_first",),
    ),
    Bug(
        "a batch closes over creations without an answer",
        "Pods whose NodeClaim is being created get a second one at the close.",
        (Edit(f"{_ROOM}:provision", "unanswered(snapshot) and snapshot.now < closes + ANSWERS", "False"),),
        (f"{_TESTS}::test_a_node_claim_that_is_being_created_comes_first",),
    ),
    Bug(
        "an early order uses up a limit",
        "Early nodes leave too little of a NodePool's limits for the rest of the batch.",
        (Edit(f"{_CERTAIN}:worth", "done.template.name not in near and _free(done, hard)", "_free(done, hard)"),),
        (f"{_TESTS}::test_node_pools_near_a_limit",),
    ),
    Bug(
        "early orders ignore hard constraints",
        "A node in one zone is ordered before the pods that have to be spread are all there.",
        (Edit(f"{_CERTAIN}:_plain", "cls.relaxations[-1].constraints or not hard.isdisjoint(cls.counted)", "False"),),
        (
            f"{_TESTS}::test_hard_spreads",
            f"{_TESTS}::test_required_terms",
            f"{_TESTS}::test_pods_that_terms_of_others_count",
        ),
    ),
    Bug(
        "early orders ignore volumes",
        "A node is ordered early where volumes that are not made yet may not attach.",
        (Edit(f"{_CERTAIN}:_plain", "any(map(_claimed, spec.volumes))", "False"),),
        (f"{_TESTS}::test_pods_with_volumes",),
    ),
    Bug(
        "a node that is half empty is ordered early",
        "Memory that pods to come need is bought twice.",
        (Edit(f"{_CERTAIN}:_free", "not _used(done)", "False"),),
        (f"{_TESTS}::test_nodes_that_are_not_full_wait",),
    ),
    Bug(
        "free accelerators are worth nothing",
        "A GPU node is ordered early for pods without GPUs, and pods to come get another one.",
        (Edit(f"{_CERTAIN}:_used", "not accelerators or any(accelerators)", "True"),),
        (f"{_TESTS}::test_nodes_with_accelerators_to_spare_wait",),
    ),
    Bug(
        "early nodes hold CapacityBuffers",
        "Nodes for pods that are not there are ordered in each look.",
        (Edit(f"{_ROOM}:_solved", "() if early else virtual_pods(turn)", "virtual_pods(turn)"),),
        (f"{_TESTS}::test_nodes_for_capacity_buffers",),
    ),
    Bug(
        "an expectation that ends with an early order is not reported",
        "The event NotBound gets lost, for the next pass takes the end for known.",
        (
            Edit(
                f"{_ROOM}:_early",
                "(*_pod_events(snapshot, homes, {}, boundary), *events_of(snapshot))",
                "_pod_events(snapshot, homes, {}, boundary)",
            ),
        ),
        (f"{_TESTS}::test_an_expectation_that_ends_with_an_early_order_is_reported",),
    ),
    Bug(
        "the expectations of an early order are forgotten",
        "The close does not know which pods early nodes are for, and deals them out again.",
        (Edit("reconciler/kerf/runtime/state:Promises.planned", "plan.try_at is not None", "False"),),
        (f"{_TESTS}::test_the_close_plans_only_what_is_left",),
    ),
    Bug(
        "looks that find nothing are as frequent as others",
        "Thousands of pods for which there is no node keep a core busy while others come.",
        (
            Edit(
                f"{_ROOM}:again_at",
                "pause if found else max(pause, FRUITLESS * (snapshot.now - batch.first))",
                "pause",
            ),
        ),
        (f"{_TESTS}::test_a_look_that_finds_no_node_is_followed_by_a_longer_pause",),
    ),
    Bug(
        "a pod that comes resets the pause of the looks",
        "Each pod that comes is followed by a solve of all pods that wait.",
        (
            Edit(
                "reconciler/kerf/runtime/state:BatchWindow._prolong",
                "Batch(open_.first, now, maiden=maiden, lone=lone, tried_at=tried, try_at=again)",
                "Batch(open_.first, now, maiden=maiden, lone=lone, tried_at=tried)",
            ),
        ),
        (f"{_BATCHES}::test_when_to_look_for_early_orders_again_stays_with_the_batch",),
    ),
)
