"""The planted bugs of consolidation: what it has to save, what it did save, what is told of it, and when it goes."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

BUGS = (
    Bug(
        "types that save too little",
        "A replacement may become a type that saves less than is asked for.",
        (
            Edit(
                "reconciler/kerf/disruption:replacements",
                "most_for(view, candidates) + 1",
                "price_of(candidates)",
            ),
        ),
        ("tests/unit/disruption/test_worth.py::test_a_replacement_has_only_types_that_surely_save_enough",),
    ),
    Bug(
        "one saves for another",
        "Of nodes that are only deleted those that save much count for those that save nothing.",
        (
            Edit(
                "reconciler/kerf/disruption:shortfall",
                "[candidates] if comes else [[one] for one in candidates]",
                "[candidates]",
            ),
        ),
        ("tests/unit/disruption/test_worth.py::test_fewer_go_when_all_together_would_bring_too_little",),
    ),
    Bug(
        "asked too late",
        "A NodePool that cannot be read is consolidated as if it asked for nothing.",
        (
            Edit(
                "reconciler/kerf/disruption:consolidation_blockers",
                (
                    "if isinstance(wanted, Blocker):\n"
                    "    yield wanted\n"
                    "elif until is not None:\n"
                    "    yield too_young(pool, wanted, until)"
                ),
                "if until is not None:\n    yield too_young(pool, wanted, until)",
            ),
        ),
        (
            "tests/unit/disruption/test_worth.py::test_while_an_annotation_cannot_be_read_no_node_in_use_is_consolidated_and_that_is_told",
        ),
    ),
    Bug(
        "nobody looks when it has grown",
        "That a node has reached its age is noticed only when something else happens.",
        (
            Edit(
                "reconciler/kerf/disruption:_one",
                (
                    "Plan(events=() if told_elsewhere else unconsolidatable(view, state), "
                    "next_due=_waits_until(view, state))"
                ),
                "Plan(events=() if told_elsewhere else unconsolidatable(view, state))",
            ),
        ),
        ("tests/unit/disruption/test_worth.py::test_it_says_until_when_and_somebody_looks_again_then",),
    ),
    Bug(
        "saved as planned",
        "What consolidation saved is told by what was planned, not by what was launched.",
        (
            Edit(
                "reconciler/kerf/disruption:_results",
                "one.price - came",
                "one.promised",
            ),
        ),
        ("tests/unit/disruption/test_savings.py::test_what_the_replacement_became_counts_not_what_was_planned",),
    ),
    Bug(
        "blamed for more than was moved",
        "A node that was bought counts against a command for more pods of a controller than it moved.",
        (
            Edit(
                "reconciler/kerf/disruption:_bought",
                "left[owner] -= 1",
                "pass",
            ),
        ),
        ("tests/unit/disruption/test_savings.py::test_a_node_counts_by_the_share_of_its_pods_that_may_have_moved",),
    ),
    Bug(
        "accounts forgotten too early",
        "A command that has been measured leaves its pods to the next one to be blamed for.",
        (
            Edit(
                "reconciler/kerf/disruption:_kept",
                "not one.measured or (one.ended or now) >= oldest",
                "not one.measured",
            ),
        ),
        (
            "tests/unit/disruption/test_savings.py::test_each_pod_counts_for_one_command_only_however_far_apart_they_end",
        ),
    ),
    Bug(
        "a pause that is lost",
        "A pause that another write of the NodePool held up is never written.",
        (
            Edit(
                "reconciler/kerf/disruption:measure",
                "Accounts(open_, losses)",
                "Accounts(open_)",
            ),
        ),
        ("tests/unit/disruption/test_savings.py::test_a_pause_that_could_not_be_written_is_written_the_next_time",),
    ),
    Bug(
        "no pause",
        "A NodePool whose consolidation costs more than it saves goes on with it.",
        (
            Edit(
                "reconciler/kerf/disruption:consolidation_blockers",
                "if pause is not None:\n    yield pause",
                "",
            ),
        ),
        ("tests/unit/disruption/test_savings.py::test_while_it_pauses_no_node_in_use_is_consolidated",),
    ),
    Bug(
        "advice that nobody has tried",
        "A change is told although something else would hold the node then.",
        (
            Edit(
                "reconciler/kerf/judgement:remedies",
                "after.wanted and (not after.open)",
                "after.wanted or after.open",
            ),
        ),
        ("tests/unit/judgement/test_remedies.py::test_what_holds_a_node_behind_the_first_thing_is_told",),
    ),
    Bug(
        "one pod of a workload",
        "A change of a template is tried for one of its pods, and does too little.",
        (
            Edit(
                "reconciler/kerf/judgement:_of_pods",
                "(other.key for other in one.movable if _whose(other) == whose)",
                "(pod.key,)",
            ),
        ),
        ("tests/unit/judgement/test_remedies.py::test_all_pods_of_a_workload_change_together",),
    ),
    Bug(
        "the smaller part of a plan goes first",
        "A few nodes go, and their pods land on those that were to go next: these are found anew, and pods move twice.",
        (
            Edit(
                "reconciler/kerf/disruption:consolidation",
                "ledger.used or not settled(view) or outweighed(view, ready)",
                "ledger.used or not settled(view)",
            ),
        ),
        ("tests/unit/disruption/test_consolidation.py::test_the_larger_part_of_what_was_found_is_waited_for",),
    ),
)
