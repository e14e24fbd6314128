"""The planted bugs of disruption: budgets, candidates, commands."""

from __future__ import annotations

from tests.mutations.bug import Bug, rule
from tests.mutations.edits import Edit

_DIFFER = "tests/unit/disruption/test_replacements_that_differ.py"

BUGS = (
    Bug(
        "budget counts only ready nodes",
        "A node that is not ready uses up no budget, so one more goes while it is away already.",
        (
            Edit(
                "reconciler/kerf/disruption:_counts",
                (
                    "claim is not None and claim.managed and state.initialized and (not "
                    "claim.is_true('InstanceTerminating'))"
                ),
                (
                    "claim is not None and claim.managed and state.initialized and state.node.ready and (not "
                    "claim.is_true('InstanceTerminating'))"
                ),
            ),
        ),
        (rule("test_a_node_that_is_not_ready_uses_up_budget"),),
    ),
    Bug(
        "deletion that only a plan can keep",
        "A node is deleted for a saving, its pods go where nobody planned them, and one needs such a node again.",
        (
            Edit(
                "reconciler/kerf/disruption:loss",
                "price >= most",
                "price > 9 * most",
            ),
        ),
        (rule("test_a_node_stays_when_its_pods_may_need_as_dear_a_node_again"),),
    ),
    Bug(
        "only two orders of pods",
        "A node goes for one that is cheaper, and for a pod that finds no room then another one is bought.",
        (
            Edit(
                "reconciler/kerf/disruption:SCATTERED",
                "KubeSchedulerOrderByName",
                "KubeSchedulerOrder",
            ),
        ),
        ("tests/simulation/test_load_curve.py::test_a_day",),
    ),
    Bug(
        "held for longer than it says",
        "A pod that may leave since its do-not-disrupt has run out is thought to stay, until something else changes.",
        (
            Edit(
                "reconciler/kerf/disruption:_leavers_of",
                "pods.next_protection_end(on_node, now)",
                "None",
            ),
        ),
        ("tests/unit/disruption/catalogue/test_simulation.py::test_a_pod_is_reckoned_with_from_when_it_may_leave",),
    ),
    Bug(
        "started beside others as if alone",
        "Nodes that one plan starts have their pods on the same free resources.",
        (
            Edit(
                "reconciler/kerf/disruption:_Places._fill",
                "self._scheduler = self._scheduler.filled(new, self._planned, arriving)",
                "pass",
            ),
        ),
        ("tests/unit/disruption/test_several_drifted.py::test_free_resources_of_a_node_are_taken_once",),
    ),
    Bug(
        "gone with the place of others",
        "A node is started that takes the pods of one that goes already: these wait for a new node.",
        (
            Edit(
                "reconciler/kerf/disruption:_Places.successors",
                "one.key in self._taken or mind_others(self._view, moving.values())",
                "mind_others(self._view, moving.values())",
            ),
        ),
        (
            "tests/unit/disruption/test_several_drifted.py::"
            "test_one_that_takes_the_pods_of_another_stays_until_they_have_moved",
        ),
    ),
    Bug(
        "a successor that has not joined has room for others",
        "A node is deleted when its own successors are ready, and its pods wait for that of another node.",
        (
            Edit(
                "reconciler/kerf/disruption:_Places.successors",
                "found.unplaced or limited(self._view, found.new_nodes) or "
                "(not self._late.isdisjoint(found.placed.values()))",
                "found.unplaced or limited(self._view, found.new_nodes)",
            ),
        ),
        (
            "tests/unit/disruption/test_several_drifted.py::"
            "test_one_that_would_have_its_pods_on_the_successor_of_another_waits_for_that",
        ),
    ),
    Bug(
        "bought before all are tainted",
        "Nodes that go together are replaced when the first of them is tainted: one that stays is paid for twice.",
        (
            Edit(
                "reconciler/kerf/disruption:_create",
                "claim.name < min(command.peers, default='~') and all((_ready(view, p) for p in command.peers))",
                "claim.name < min(command.peers, default='~')",
            ),
        ),
        (
            "tests/unit/disruption/test_together.py::test_when_one_has_to_stay_nothing_is_bought",
            "tests/unit/disruption/test_together.py::test_a_crash_between_any_two_actions_buys_nothing_twice",
        ),
    ),
    Bug(
        "half a group goes on",
        "A command that was written to some of its nodes only is never taken back.",
        (
            Edit(
                "reconciler/kerf/disruption:_PEERS_LIMIT",
                "timedelta(seconds=15)",
                "timedelta(hours=15)",
            ),
        ),
        ("tests/unit/disruption/test_together.py::test_a_command_written_to_some_of_them_only_is_taken_back",),
    ),
    Bug(
        "dearer than what goes, all together",
        "Each of several replacements may cost as much as all that goes.",
        (
            Edit(
                "reconciler/kerf/disruption:_within",
                "below if len(new) == 1 else below * one.price // planned if planned else 0",
                "below",
            ),
        ),
        (
            "tests/unit/disruption/test_together.py::"
            "test_the_worst_prices_of_all_replacements_together_are_below_what_goes",
        ),
    ),
    Bug(
        "one place for two",
        "A node goes because its pods fit where those of a node go that is being replaced already.",
        (
            Edit(
                "reconciler/kerf/disruption:_outcome",
                "homeless - _homeless(view, leaving, before, soon)",
                "set[str]()",
            ),
        ),
        (
            "tests/unit/disruption/catalogue/test_simulation.py::"
            "test_a_place_that_another_node_s_pod_goes_to_already_is_paid_for",
            "tests/scenarios/test_scenarios.py::test_scenario[budgets/strictest-of-several]",
        ),
    ),
    Bug(
        "pods move to a replacement that cannot run them",
        "A roll-out to nodes with too little CPU, or with a taint of an agent, stops every pod.",
        (Edit("reconciler/kerf/disruption:_misfits", "one is not None", "False"),),
        (
            f"{_DIFFER}::test_one_that_has_too_little_for_the_pods_ends_the_command",
            "tests/scenarios/test_scenarios.py::test_scenario[progress/replacement-lacks-cpu]",
        ),
    ),
    Bug(
        "a replacement that differs is bought again and again",
        "Each NodeClaim of a roll-out buys a node every few minutes.",
        (Edit("reconciler/kerf/disruption:Failure.until", "self.inputs and self.count > 1", "False"),),
        (f"{_DIFFER}::test_a_second_one_of_the_same_inputs_is_followed_by_one_a_day",),
    ),
    Bug(
        "further attempts are merged with nodes that did not help",
        "Pods that a plugin of the scheduler keeps apart are evicted every few minutes.",
        (Edit("reconciler/kerf/disruption:consolidation_blockers", "attempt is not None", "False"),),
        ("tests/simulation/test_unknown_rule.py::test_pods_that_a_plugin_keeps_apart_are_not_moved_together_again",),
    ),
    Bug(
        "a node in place of an expectation that ended is like any other",
        "Consolidation moves its pods back to where they were not bound.",
        (Edit("reconciler/kerf/provisioning:with_progress", "pod.metadata.uid in ended", "False"),),
        ("tests/simulation/test_unknown_rule.py::test_pods_that_a_plugin_keeps_apart_are_not_moved_together_again",),
    ),
    Bug(
        "a budget that closes ends a replacement",
        "A node is bought and given up each time that a PodDisruptionBudget is closed for ten minutes.",
        (
            Edit(
                "reconciler/kerf/disruption:_stop_of",
                'blocker.code == "PodDisruptionBudget" and command.replacements and command.created',
                "False",
            ),
        ),
        (
            "tests/unit/disruption/test_commands.py::test_once_the_replacement_is_bought_a_disruption_budget_delays_only_the_drain",
        ),
    ),
    Bug(
        "back-off forgotten on restart",
        "That a replacement failed is remembered in memory only; a restarted controller tries again at once.",
        (
            Edit(
                "reconciler/kerf/disruption:_roll_back",
                (
                    "annotations[labels.COMMAND_FAILED] = "
                    "text_of(failed_now(view.snapshot, claim, command, differs=stop.differs, late=stop.late))"
                ),
                "assert failed_now(view.snapshot, claim, command, differs=stop.differs)",
            ),
            Edit(
                "reconciler/kerf/runtime:_",
                (
                    "if isinstance(done.error, AlreadyGone):\n"
                    "    known = state.cluster.get(action.ref)\n"
                    "    if known is not None and action.resource_version in ('', known.metadata.resource_version):\n"
                    "        state.drop(action.ref, done.at, known.metadata.uid)\n"
                    "elif done.value is not None:\n"
                    "    state.put(kinds.BY_NAME[action.ref.kind], done.value, done.at)\n"
                    "    if (fields := state.promises.written(action, done.value, done.at)):\n"
                    "        state.notices.note(FieldsDropped(action.ref.kind, fields))"
                ),
                (
                    "if action.verb == 'RollBackCommand':\n"
                    "    state.actions.failed(f'StartCommand {action.ref}', done.at, 60.0)\n"
                    "if isinstance(done.error, AlreadyGone):\n"
                    "    known = state.cluster.get(action.ref)\n"
                    "    if known is not None and action.resource_version in ('', known.metadata.resource_version):\n"
                    "        state.drop(action.ref, done.at, known.metadata.uid)\n"
                    "elif done.value is not None:\n"
                    "    state.put(kinds.BY_NAME[action.ref.kind], done.value, done.at)\n"
                    "    if (fields := state.promises.written(action, done.value, done.at)):\n"
                    "        state.notices.note(FieldsDropped(action.ref.kind, fields))"
                ),
            ),
        ),
        (rule("test_backoff_survives_a_restart"),),
    ),
    Bug(
        "nomination ignored by emptiness",
        "An empty node goes although a pending pod is expected there.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "view.snapshot.nominated_until.get(key)",
                "None",
            ),
            Edit(
                "reconciler/kerf/disruption:_stop_of",
                "view.snapshot.nominated_until.get(claim.name)",
                "None",
            ),
        ),
        (rule("test_a_nominated_node_is_not_empty"),),
    ),
    Bug(
        "room that is not missed",
        "A node goes as empty although a CapacityBuffer keeps room there.",
        (
            Edit(
                "reconciler/kerf/disruption:_wish",
                "empty and (not held)",
                "empty",
            ),
        ),
        (
            "tests/unit/disruption/test_buffers.py::test_an_empty_node_where_room_is_kept_stays_and_that_is_said",
            "tests/simulation/test_capacity_buffers.py::test_a_controller_that_takes_over_keeps_them",
        ),
    ),
    Bug(
        "a command that waits for nothing",
        "A claim is deleted as soon as its node is tainted, with the replacements still to be created.",
        (
            Edit(
                "reconciler/kerf/disruption:_advance",
                "not command.created",
                "not command.created and command.reason == EMPTY",
            ),
        ),
        (
            "tests/simulation/test_crash_points.py::"
            "test_nodes_that_go_have_a_successor_each_wherever_the_controller_is_killed[Drifted-0]",
        ),
    ),
    Bug(
        "the old one first",
        "A node that expires goes before its successor is ready.",
        (
            Edit(
                "reconciler/kerf/disruption:_one",
                "ledger.take(found.pool.name, found.key)",
                "successors = []\nledger.take(found.pool.name, found.key)",
            ),
        ),
        (
            "tests/simulation/test_retirement.py::"
            "test_the_successor_is_ready_before_the_first_pod_leaves_and_nothing_outlives_its_time",
        ),
    ),
    Bug(
        "held ones all at once",
        "What budgets held beyond its end goes without a successor as soon as they open.",
        (
            Edit(
                "reconciler/kerf/disruption:retirement",
                "ends[key].at > view.snapshot.now or _held_beyond_its_end(view, claim, ends[key])",
                "ends[key].at > view.snapshot.now",
            ),
        ),
        (
            "tests/unit/disruption/test_retirement.py::test_what_a_budget_held_beyond_its_end_has_its_successor_first",
            "tests/scenarios/test_scenarios.py::test_scenario[expiration/within-budgets]",
        ),
    ),
    Bug(
        "no breaker",
        "Nodes are repaired however many of their NodePool are sick.",
        (
            Edit(
                "reconciler/kerf/disruption:_too_many",
                "-(-nodes // _ONE_OF)",
                "nodes",
            ),
        ),
        (
            "tests/unit/disruption/catalogue/test_repair.py::test_130_each_pool_is_judged_by_itself",
            "tests/scenarios/test_scenarios.py::test_scenario[repair/sick-nodes]",
        ),
    ),
    Bug(
        "the same blocker again and again",
        "What holds a node is told as an event every two minutes although nothing has changed.",
        (
            Edit(
                "reconciler/kerf/disruption:refused",
                "tuple((event.standing() for event in events))",
                "events",
            ),
        ),
        (
            "tests/simulation/test_node_answers.py::"
            "test_an_answer_that_does_not_change_is_told_once_an_hour_and_another_at_once",
        ),
    ),
    Bug(
        "only the first hold is told",
        "Who asks why a node stays learns of the next thing that holds it only when the first is out of the way.",
        (
            Edit(
                "reconciler/kerf/judgement:_holds",
                "found",
                "found[:1]",
            ),
        ),
        ("tests/unit/judgement/test_ends.py::test_everything_that_holds_a_node_is_told_at_once",),
    ),
    Bug(
        "the mildest pool decides",
        "Of several NodePools only the first is asked whether a move saves enough.",
        (
            Edit(
                "reconciler/kerf/disruption:_pools",
                "sorted(pools)",
                "sorted(pools)[:1]",
            ),
        ),
        ("tests/unit/disruption/test_worth.py::test_of_several_node_pools_the_strictest_decides",),
    ),
)
