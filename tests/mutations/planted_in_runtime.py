"""The planted bugs of the loop and of what it speaks with: news, performing, telemetry, AWS."""

from __future__ import annotations

from tests.mutations.bug import Bug, rule
from tests.mutations.edits import Edit

BUGS = (
    Bug(
        "what ended while somebody decided is done again",
        "Fleet calls are made twice, and writes meet conflicts by the hundred, whenever a look takes long.",
        (
            Edit(
                "reconciler/kerf/runtime:Executor._claim",
                "lane in self._busy or lane in self._unknown",
                "lane in self._busy",
            ),
        ),
        (
            "tests/unit/runtime/test_executor.py::"
            "test_what_ends_while_somebody_decides_is_not_done_again_before_its_outcome_is_known",
        ),
    ),
    Bug(
        "a fight goes on as fast as the API server answers",
        "Two writers that undo each other's writes load the API server until one of them ends.",
        (Edit("reconciler/kerf/runtime:Promises.contested", "self.settle(action.key, '', contest.until)", "pass"),),
        ("tests/unit/runtime/test_contested.py::test_a_fight_costs_one_request_a_second",),
    ),
    Bug(
        "our own event is another writer",
        "During a scale-up Kerf reports a writer that does not exist, and slows its own writes to one a second.",
        (
            Edit(
                "reconciler/kerf/runtime:Contested.written",
                "(action.resource_version or before) in ('', own[0], after)",
                "before in ('', own[0])",
            ),
        ),
        ("tests/unit/runtime/test_contested.py::test_a_write_whose_event_comes_before_its_answer_is_no_fight",),
    ),
    Bug(
        "every write beside another writer is undone",
        "Kerf's new values beside another writer of other fields count as a fight.",
        (Edit("reconciler/kerf/runtime:_Write.repeats", "self.values[path] == value", "True"),),
        ("tests/unit/runtime/test_contested.py::test_new_values_beside_another_writer_of_other_fields_are_no_fight",),
    ),
    Bug(
        "only the latest write is compared",
        "Two writers that undo a part each keep Kerf writing as fast as the API server answers.",
        (
            Edit(
                "reconciler/kerf/runtime:_Write.repeats",
                "len(self.values) > _FIELDS",
                "len(self.values) > len(values)",
            ),
        ),
        ("tests/unit/runtime/test_contested.py::test_several_writers_who_undo_a_part_each_are_a_fight",),
    ),
    Bug(
        "the name of a running instance is given again",
        "AWS' tags name one NodeClaim for two instances, once a finalizer was taken by hand.",
        (Edit("reconciler/kerf/scheduling:is_free", "name not in snapshot.instances.claim_names", "True"),),
        ("tests/unit/scheduling/test_claims.py::test_the_name_of_an_instance_that_still_runs_is_not_given_again",),
    ),
    Bug(
        "memory of the largest node",
        "More is planned with than most machines of a type have, and pods wait on nodes that are too small.",
        (Edit("reconciler/kerf/runtime:LearnedMemory.seen", "memory <= known[0]", "memory >= known[0]"),),
        ("tests/unit/aws/catalogue/test_memory.py::test_119_of_several_nodes_the_least_counts",),
    ),
    Bug(
        "template of a dry run left behind",
        "Each look at a class leaves a launch template in the account.",
        (Edit("reconciler/kerf/aws:dry_run", "templates.withdraw(template)", "pass"),),
        (
            "tests/contract/test_aws_catalogue_validation.py"
            "::test_185_a_template_is_made_the_others_only_tried_and_nothing_is_left",
        ),
    ),
    Bug(
        "launch without token",
        "A fleet call that is repeated because its answer was lost launches a second time.",
        (
            Edit(
                "reconciler/kerf/aws:parameters",
                (
                    "{'Type': 'instant', 'ClientToken': request.group, 'LaunchTemplateConfigs': [_config(request, "
                    "template.name) for template in request.templates], 'TargetCapacitySpecification': "
                    "{'TotalTargetCapacity': len(request.members), 'DefaultTargetCapacityType': "
                    "_target_type(request)}, 'TagSpecifications': [{'ResourceType': kind, 'Tags': tags} for kind in "
                    "TAGGED]}"
                ),
                (
                    "{'Type': 'instant', 'LaunchTemplateConfigs': [_config(request, template.name) for template in "
                    "request.templates], 'TargetCapacitySpecification': {'TotalTargetCapacity': "
                    "len(request.members), 'DefaultTargetCapacityType': _target_type(request)}, 'TagSpecifications': "
                    "[{'ResourceType': kind, 'Tags': tags} for kind in TAGGED]}"
                ),
            ),
        ),
        ("tests/contract/test_cloud_fleets.py::test_the_same_request_twice_launches_once[aws]",),
    ),
    Bug(
        "PDB ignored on retry",
        "A pod whose eviction its PodDisruptionBudget refused is deleted instead.",
        (
            Edit(
                "reconciler/kerf/runtime:_",
                "kube.evict(action.ref, uid=action.uid)",
                (
                    "from kerf.ports import EvictionBlocked\n"
                    "try:\n"
                    "    kube.evict(action.ref, uid=action.uid)\n"
                    "except EvictionBlocked:\n"
                    "    kube.delete(action.ref, uid=action.uid)"
                ),
            ),
        ),
        (rule("test_an_eviction_that_was_refused_is_asked_again_and_nothing_else"),),
        seeds=range(10),
    ),
    Bug(
        "pods that lost their capacity wait for the next batch",
        "While pods keep arriving, the first ones wait 10 seconds more each time that others take their capacity.",
        (
            Edit(
                "reconciler/kerf/provisioning:provision",
                "closes > snapshot.now and _displaced(turn, snapshot.batch)",
                "False",
            ),
        ),
        (
            "tests/unit/provisioning/test_provision.py"
            "::test_an_open_batch_closes_for_a_pod_that_lost_its_capacity_to_others",
        ),
    ),
    Bug(
        "deleted budget blocks evictions until their back-off ends",
        "Who deletes a PodDisruptionBudget to let a drain go on sees nothing happen for ten seconds.",
        (
            Edit(
                "reconciler/kerf/runtime:Evictions.budget_changed",
                "new if new is not None else old",
                "new",
            ),
        ),
        ("tests/unit/runtime/test_evictions.py::test_a_deleted_budget_ends_the_waits_of_its_pods_and_of_no_others",),
    ),
    Bug(
        "all evictions asked for again when a budget allows one",
        "Each pod that becomes ready elsewhere brings a request for every pod that waits, and all but one are refused.",
        (
            Edit(
                "reconciler/kerf/runtime:Evictions.budget_changed",
                "nsmallest(more, waiting, key=lambda pod: (turns[pod.spec.node_name], pod.key))",
                "waiting",
            ),
        ),
        ("tests/unit/runtime/test_evictions.py::test_as_many_are_tried_again_as_the_budget_allows",),
    ),
    Bug(
        "expired watch treated as empty",
        "When a watch's version is too old, everything of its kind counts as gone until it is listed again.",
        (
            Edit(
                "reconciler/kerf/runtime:Reflector.step",
                "self._lost(error, relist=True)",
                "self._lost(error, relist=True)\nself._inbox.put(Listed(self.kind, (), '', now))",
            ),
        ),
        (rule("test_an_expired_watch_is_listed_again_and_nothing_is_destroyed"),),
    ),
    Bug(
        "forbidden list treated as empty",
        "A list that we may not read counts as a list of nothing.",
        (
            Edit(
                "reconciler/kerf/runtime:Reflector._list",
                "listing = self._kube.list(self.kind)",
                (
                    "from kerf.ports import Forbidden, Listing\n"
                    "try:\n"
                    "    listing = self._kube.list(self.kind)\n"
                    "except Forbidden:\n"
                    "    listing = Listing((), '0')"
                ),
            ),
        ),
        (rule("test_a_forbidden_list_is_not_an_empty_one"),),
    ),
    Bug(
        "own writes not overlaid",
        "What was written counts only when the watch shows it, so it is decided and written again until then.",
        (
            Edit(
                "reconciler/kerf/runtime:absorb",
                "_succeeded(done.action, done, state)",
                "",
            ),
        ),
        (rule("test_own_writes_count_before_a_watch_shows_them"),),
        seeds=range(10),
    ),
    Bug(
        "node is empty when a pod is expected no more",
        "A node goes as empty while the pod that it was made for is about to be placed there again.",
        (
            Edit(
                "reconciler/kerf/runtime:State._noticed_pod",
                "self._expects_no_more(name, now)",
                "pass",
            ),
        ),
        (
            "tests/unit/runtime/test_state.py"
            "::test_a_node_on_which_a_pod_is_expected_no_more_is_kept_until_the_pod_has_been_looked_at",
        ),
    ),
    Bug(
        "lease not re-checked before terminate",
        "A termination starts although the lease's renew deadline has passed while the plan was being performed.",
        (
            Edit(
                "reconciler/kerf/runtime:Executor._tried",
                "not self._may_act()",
                "not self._may_act() and type(action).__name__ != 'TerminateInstance'",
            ),
        ),
        (rule("test_no_action_starts_after_the_renew_deadline"),),
    ),
    Bug(
        "no last look",
        "An empty node is deleted although a pod has come to it that the watch has not told of.",
        (
            Edit(
                "reconciler/kerf/runtime:_",
                "action.expected_pods is not None and action.node_name",
                "action.expected_pods is not None and (not action.node_name)",
            ),
        ),
        (rule("test_pods_are_listed_once_more_before_an_empty_node_goes"),),
    ),
    Bug(
        "old news believed",
        "Nodes are drained and instances ended by what was true an hour ago.",
        (
            Edit(
                "reconciler/kerf/runtime:Freshness.within",
                "age",
                "40 * age",
            ),
            Edit(
                "reconciler/kerf/model:Snapshot.fresh",
                "self.settings.stale_after",
                "40 * self.settings.stale_after",
            ),
        ),
        (rule("test_nothing_is_destroyed_on_old_news"),),
    ),
    Bug(
        "retried in place",
        "What failed is tried again at once, by the same news, without a look at the world.",
        (
            Edit(
                "reconciler/kerf/runtime:Executor._run",
                "done = replace(self._perform(action), reconcile_id=look)",
                (
                    "done = self._perform(action)\n"
                    "done = self._perform(action) if done.outcome == 'unavailable' else done"
                ),
            ),
        ),
        (rule("test_what_failed_is_left_alone_for_longer_each_time"),),
    ),
    Bug(
        "one back-off for all",
        "While one object is left alone because something failed, nothing else is done either.",
        (
            Edit(
                "reconciler/kerf/runtime:Controller._ready",
                "waiting[action.lane] = until",
                "return ([], until)",
            ),
        ),
        (rule("test_a_pool_whose_claims_fail_holds_up_no_other"),),
    ),
    Bug(
        "decisions of another counted",
        "A new leader measures from when it first saw a pod, although the one before decided about it.",
        (
            Edit(
                "reconciler/kerf/telemetry:PodTimes.see",
                "wait.asking and wait.seen is None and telling",
                "wait.asking and wait.seen is None",
            ),
            Edit(
                "reconciler/kerf/telemetry:PodTimes._lead",
                "wait.seen, wait.decided, wait.served = (now if leading and wait.asking else None, False, None)",
                "wait.decided, wait.served = (False, None)",
            ),
        ),
        (
            "tests/unit/telemetry/test_pod_times.py"
            "::test_a_new_leader_knows_since_when_pods_wait_but_not_what_was_decided",
        ),
    ),
    Bug(
        "one unknown instance keeps the others alive",
        "EC2 ends none of those that it is asked to end together when it does not know one of them.",
        (
            Edit(
                "reconciler/kerf/aws:Terminations._end",
                "self._end(rest) if rest else {}",
                "dict.fromkeys(rest, error)",
            ),
        ),
        (
            "tests/contract/test_aws_catalogue_instances.py"
            "::test_225_who_is_not_known_is_asked_for_alone_and_the_others_end",
        ),
    ),
    Bug(
        "launches take the tokens of terminations",
        "While many nodes are launched none is ended.",
        (
            Edit(
                "reconciler/kerf/aws:Pace._take",
                "common.wait(now, of.leaves)",
                "common.wait(now)",
            ),
        ),
        (
            "tests/unit/aws/test_aws_pace.py"
            "::test_225_what_looks_waits_before_what_ends_does_and_what_makes_before_both",
        ),
    ),
    Bug(
        "a solution is kept although the world has changed",
        "Nodes are made for pods that found room while their batch was open.",
        (Edit("reconciler/kerf/model:Memory._touch", "self.held = None", "pass"),),
        (
            "tests/unit/provisioning/test_solved_ahead.py::test_what_has_changed_since_is_reckoned_with",
            "tests/laws/test_memory_laws.py::test_what_is_held_is_held_for_as_long_as_nothing_changes",
        ),
    ),
    Bug(
        "a template that was made ahead is asked for at every look",
        "A batch that waits keeps the controller busy, and EC2 too.",
        (
            Edit(
                "reconciler/kerf/runtime:_",
                "state.settle(action.key, '', done.at + TEMPLATE_STAYS)",
                "",
            ),
        ),
        ("tests/unit/runtime/test_own_writes.py::test_a_template_that_was_made_ahead_is_not_asked_for_at_every_look",),
    ),
    Bug(
        "what is foreseen is not what is created",
        "Templates are made ahead that no call names, and those that the calls name are waited for.",
        (
            Edit(
                "reconciler/kerf/provisioning:_ahead",
                "creations_of(then, solution)",
                "creations_of(then, solution)[1:]",
            ),
        ),
        (
            "tests/unit/lifecycle/test_foreseen.py"
            "::test_templates_are_asked_for_while_the_pods_wait_and_claims_when_their_time_has_come",
        ),
    ),
    Bug(
        "pods wait for the pause after they were served",
        "The instances of a large batch are asked for half a second later.",
        (
            Edit(
                "reconciler/kerf/runtime:Controller._turn",
                "self.looked_at if plan.provisioned else after",
                "after",
            ),
        ),
        (
            "tests/unit/runtime/test_controller.py"
            "::test_after_a_slow_look_others_get_to_compute_but_no_pod_waits_for_that",
        ),
    ),
)
