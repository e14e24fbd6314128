"""The planted bugs of the deletion guard: what others delete is drained all at once after all, or never."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_TABLES = "tests/unit/lifecycle/test_deletion_guard.py"
_THAT_GO = "tests/unit/lifecycle/test_deletions_that_go.py"
_WEBHOOK = "tests/unit/webhook/test_deletions.py"
_ENDS = "tests/unit/model/test_ends.py"
_STATE = "tests/unit/runtime/test_state.py"
_WORLD = "tests/scenarios/test_scenarios.py::test_scenario"

BUGS = (
    Bug(
        "guard forgets what it held",
        "As soon as the first step has gone, the others are few enough, and all of them go.",
        (
            Edit(
                "reconciler/kerf/lifecycle:judge",
                "len(counted) > most or any((one.claim.is_true(HELD) for one in counted))",
                "len(counted) > most",
            ),
        ),
        (f"{_TABLES}::test_the_last_ones_wait_like_the_first_though_they_are_few",),
    ),
    Bug(
        "small cluster emptied",
        "Three nodes may always go at once, though there are no more.",
        (Edit("reconciler/kerf/lifecycle:limit", "min(FEW, nodes // 2)", "FEW"),),
        (f"{_TABLES}::test_three_go_at_once_or_the_share_and_of_a_few_nodes_half",),
    ),
    Bug(
        "own ends held",
        "What has expired, or is interrupted, waits like what somebody else has deleted.",
        (
            Edit(
                "reconciler/kerf/lifecycle:deleted",
                "not claim.managed or not claim.is_true('Registered') or ends.by_us(claim)",
                "not claim.managed or not claim.is_true('Registered')",
            ),
        ),
        (
            f"{_THAT_GO}::test_what_kerf_ends_itself_neither_counts_nor_waits",
            f"{_THAT_GO}::test_an_interruption_that_is_noted_meanwhile_lets_it_go",
        ),
    ),
    Bug(
        "end not noted",
        "Nobody knows of a claim whose deletion it was, and Kerf holds up its own.",
        (
            Edit(
                "reconciler/kerf/model:noted",
                "yield note(claim, action.reason, snapshot.now)",
                "pass",
            ),
        ),
        (f"{_ENDS}::test_the_note_comes_first_and_in_the_same_lane",),
    ),
    Bug(
        "old note believed",
        "A deletion that did not come off once excuses that of somebody else, much later.",
        (
            Edit(
                "reconciler/kerf/model:by_us",
                "noted is not None and (deleted is None or noted - SKEW <= deleted <= noted + _FOLLOWS_WITHIN)",
                "noted is not None",
            ),
        ),
        (f"{_THAT_GO}::test_a_note_of_long_ago_says_nothing_of_a_deletion_now",),
    ),
    Bug(
        "interrupted while it is held",
        "The message is deleted, and the node waits until EC2 has taken it.",
        (
            Edit(
                "reconciler/kerf/disruption:_one",
                "kind is not None and kind.ends and (held := [claim for claim in waiting if not ends.by_us(claim)])",
                (
                    "kind is not None and (not kind.ends) and (held := [claim for claim in waiting if not "
                    "ends.by_us(claim)])"
                ),
            ),
        ),
        (
            "tests/unit/disruption/test_forceful.py"
            "::test_a_claim_whose_end_is_held_up_is_noted_before_the_message_is_deleted",
            f"{_WORLD}[termination/many-nodes-deleted]",
        ),
    ),
    Bug(
        "steps by number alone",
        "The next nodes are drained although the pods of those before have no place yet.",
        (Edit("reconciler/kerf/lifecycle:_held", "0 if unsettled else max(0, most - busy)", "max(0, most - busy)"),),
        (
            f"{_TABLES}::test_a_step_waits_for_pods_that_have_no_node_yet_but_not_for_ever",
            f"{_WORLD}[termination/pool-deleted-without-another]",
        ),
    ),
    Bug(
        "stuck drain holds all",
        "Three nodes whose pods may not be disrupted keep all others from going, for ever.",
        (Edit("reconciler/kerf/lifecycle:_held", "one.begun and _busy_until(view, one) > now", "one.begun"),),
        (f"{_TABLES}::test_drains_that_get_no_further_do_not_hold_the_others_up_for_ever",),
    ),
    Bug(
        "held beyond the grace period",
        "A claim is held until its drain has no time left.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_held",
                "[one for one in open_ if one.latest is None or one.latest > now]",
                "open_",
            ),
        ),
        (f"{_THAT_GO}::test_half_of_a_termination_grace_period_is_left_for_the_drain",),
    ),
    Bug(
        "word for fewer",
        "A NodePool goes with more nodes than anybody has given leave for.",
        (Edit("webhook:objection", "count <= max(FEW, allowed)", "count <= FEW or allowed"),),
        (f"{_WEBHOOK}::test_a_pool_goes_with_few_nodes_or_with_a_word_for_as_many_as_it_has",),
    ),
    Bug(
        "pool's word lost with the pool",
        "What a NodePool says of its deletion is gone when its claims are deleted.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_STEPS",
                "(hydrate, register, demote, initialize, check, note_pod_events, tag, deletion_guard.note_leave)",
                "(hydrate, register, demote, initialize, check, note_pod_events, tag)",
            ),
        ),
        (
            f"{_TABLES}::test_a_pools_word_is_noted_on_its_claims_for_it_may_be_gone_when_it_counts",
            f"{_WORLD}[termination/pool-deleted]",
        ),
    ),
    Bug(
        "successors come too late",
        "Nobody looks for a place for the pods of nodes that are held before these are drained.",
        (
            Edit(
                "reconciler/kerf/runtime:State._noticed_claim",
                "new is not None and new.is_true(HELD)",
                "new is not None and new.is_true(HELD) and False",
            ),
        ),
        (f"{_STATE}::test_a_claim_whose_end_is_held_up_has_places_looked_for_its_pods",),
    ),
)
