"""Bugs planted in the work budget of simulations: its bound, and the turns of the candidates."""

from __future__ import annotations

from typing import Final

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_TESTS: Final = "tests/unit/disruption/test_share.py"

BUGS: tuple[Bug, ...] = (
    Bug(
        "a simulation has no bound",
        "A drifted node with hostile pods takes seconds in each pass.",
        (Edit("reconciler/kerf/disruption:within_steps", "Work(most // 2, most=most)", "Work()"),),
        (
            f"{_TESTS}::test_a_candidate_that_takes_too_much_work_stays_with_the_reason",
            f"{_TESTS}::test_each_candidate_has_its_turn_and_a_pass_its_bound[0]",
        ),
    ),
    Bug(
        "a method has no share",
        "A pass begins one expensive candidate after the other.",
        (Edit("reconciler/kerf/disruption:Share.begins", "self.used_up", "False"),),
        (f"{_TESTS}::test_a_candidate_that_did_not_get_its_turn_comes_first",),
    ),
    Bug(
        "candidates that were left over come last again",
        "The candidate that has drifted longest takes all work of each pass.",
        (Edit("reconciler/kerf/disruption:Share.first", "late or order", "order"),),
        (
            f"{_TESTS}::test_a_candidate_that_did_not_get_its_turn_comes_first",
            f"{_TESTS}::test_each_candidate_has_its_turn_and_a_pass_its_bound[0]",
        ),
    ),
    Bug(
        "a pass forgets the candidates that were left over",
        "After a pass that may begin nothing, candidates start their wait again.",
        (
            Edit(
                "reconciler/kerf/disruption:_started",
                "unready + _left_over(seen.snapshot, shares)",
                "unready",
            ),
        ),
        (f"{_TESTS}::test_candidates_wait_on_while_a_method_begins_nothing",),
    ),
    Bug(
        "the search for proposals has no bound",
        "Hostile pods keep the worker process from any answer, and the cluster from consolidation.",
        (
            Edit(
                "reconciler/kerf/disruption:Bounded.exhausted", "self._left <= 0 or self._steps <= 0", "self._left <= 0"
            ),
        ),
        (f"{_TESTS}::test_the_search_for_proposals_ends_however_much_work_there_is",),
    ),
    Bug(
        "pending pods come before those of the node",
        "Pending pods of one tenant keep the nodes of another from being replaced.",
        (
            Edit(
                "reconciler/kerf/disruption:Scheduler._solved",
                "pod.spec.node_name",
                "not pod.spec.node_name",
            ),
        ),
        (f"{_TESTS}::test_pending_pods_do_not_keep_a_node_from_its_turn[shop]",),
    ),
)
