"""The planted bugs of the claim's life: launch, registration, drain, termination, garbage."""

from __future__ import annotations

from tests.mutations.bug import Bug, rule
from tests.mutations.edits import Edit

_EXPECTATIONS = "tests/unit/lifecycle/test_expectations.py"
_GIVING_WAY = "tests/unit/lifecycle/test_giving_way.py"
_ZONAL_SHIFT = "tests/simulation/test_zonal_shift.py"
_PLACEMENT = "tests/unit/aws/catalogue/test_placement.py"
_VALIDATION = "tests/unit/aws/catalogue/test_validation.py"
_EXPRESSIONS = "tests/unit/aws/catalogue/test_kubelet_expressions.py"
_LAUNCH = "tests/unit/lifecycle/test_launch.py"
_UNUSED = "tests/unit/aws/catalogue/test_unused.py"

BUGS = (
    Bug(
        "an instance that EC2 does not list yet is lost",
        "After a restart, nodes that have just joined are deleted with the pods that are starting there.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_lost_now",
                "shown_from(claim, registered, view.now)",
                "registered",
            ),
        ),
        ("tests/unit/lifecycle/test_garbage.py::test_an_instance_that_ec2_does_not_list_yet_is_not_lost",),
    ),
    Bug(
        "a drain ends because EC2 lists late",
        "Pods are deleted by force from an instance that runs, and it is terminated later, without a drain.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_lost",
                "deleted if claim is None else shown_from(claim, deleted, view.now)",
                "deleted",
            ),
        ),
        (
            "tests/unit/lifecycle/test_lost_nodes.py::"
            "test_a_node_that_is_deleted_before_ec2_lists_its_instance_is_not_taken_for_lost",
        ),
    ),
    Bug(
        "class valid before it was tried",
        "Nodes are asked for from a class that nobody may launch from.",
        (
            Edit(
                "reconciler/kerf/lifecycle:Trial._ask",
                ("self.plan = act(ValidateClass(reason=reason, class_name=of.name, request=request))\nreturn None"),
                (
                    "self.plan = act(ValidateClass(reason=reason, class_name=of.name, request=request))\n"
                    "return validation.SUCCEEDED"
                ),
            ),
        ),
        (f"{_VALIDATION}::test_185_before_it_was_tried_the_result_is_unknown",),
    ),
    Bug(
        "dry run believed for another class",
        "What was found out before the class was changed counts for what it has become.",
        (
            Edit(
                "reconciler/kerf/lifecycle:Trial.verdict",
                "known is None or known.identity != validation.identity(of)",
                "known is None",
            ),
        ),
        (f"{_VALIDATION}::test_190_so_does_another_thing_that_it_selects",),
    ),
    Bug(
        "expressions believed before a type is known",
        "A class is valid before anybody knows on which types its expressions fail.",
        (
            Edit(
                "reconciler/kerf/lifecycle:Trial.verdict",
                "snapshot.catalogues.get(of.name) is None",
                "not of.name",
            ),
        ),
        (f"{_EXPRESSIONS}::test_192_before_the_types_are_known_no_expression_is_evaluated",),
    ),
    Bug(
        "reserved for other pods than there will be",
        "What is reserved follows the pods that a type has by itself, whatever maxPods says.",
        (
            Edit(
                "reconciler/kerf/ec2:resolved",
                "known['max_pods'] = capacity.pods(info, sizing)",
                "",
            ),
        ),
        (f"{_EXPRESSIONS}::test_117_what_is_reserved_may_follow_the_pods_that_come_of_max_pods",),
    ),
    Bug(
        "any number of pods",
        "Nodes are planned, and started, with numbers of pods that no kubelet takes.",
        (
            Edit(
                "reconciler/kerf/ec2:_value",
                "found < 0 or (len(steps) == 1 and found > _MOST_PODS)",
                "found < 0 and (not steps)",
            ),
        ),
        (f"{_EXPRESSIONS}::test_116_max_pods_that_no_kubelet_takes_give_no_types",),
    ),
    Bug(
        "no taint before drain",
        "Pods are evicted from a node that takes new ones, so they come back to it and the drain never ends.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_stages",
                "untainted = [(node, tainted) for node in nodes if (tainted := _tainted(node)) != node]",
                "untainted: list[tuple[Node, Node]] = []",
            ),
        ),
        (rule("test_a_node_takes_no_new_pods_while_it_is_drained"),),
        seeds=range(10),
    ),
    Bug(
        "no drain of a node that is not ready",
        "Pods that run on a node of which nobody hears are cut off with it.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_drain_stage",
                "(wait := drain(view, node, deadline, why)) is not None",
                "node.ready and (wait := drain(view, node, deadline, why)) is not None",
            ),
        ),
        (rule("test_a_node_that_is_not_ready_is_drained_all_the_same"),),
        seeds=range(28, 29),
    ),
    Bug(
        "claim written after launch",
        "Between the launch and the write nothing but a tag says whose the instances are.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_new_group",
                "return _write(request, members)",
                (
                    "names = tuple((claim.name for claim in members))\n"
                    "call = LaunchInstances(reason=_reason(members[0]), request=request, claims=names)\n"
                    "return joined((act(call), _write(request, members)))"
                ),
            ),
        ),
        (rule("test_a_launch_is_written_to_its_claims_first"),),
        seeds=range(10),
    ),
    Bug(
        "claims of one plan launched one by one",
        "Whatever has been created by the next look is launched by itself: calls of AWS by the dozen.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_new_groups",
                "group.until is not None",
                "False",
            ),
        ),
        (f"{_LAUNCH}::test_claims_wait_for_equal_ones_that_are_being_created_and_go_with_one_call",),
    ),
    Bug(
        "finalizer removed before the instance is gone",
        "The claim lets go as soon as the termination has been asked for, whether or not it took effect.",
        (
            Edit(
                "reconciler/kerf/lifecycle:terminate",
                "begun and listed and (instance is None)",
                "begun",
            ),
        ),
        (rule("test_a_claim_lets_go_when_its_instance_is_gone"),),
        seeds=range(10),
    ),
    Bug(
        "expectations never taken back",
        "Pods that were told a node which died wait for it, and get no other.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_taken_back",
                "node is None or node.metadata.deleting",
                "node is not None and node.metadata.deleting",
            ),
        ),
        (f"{_EXPECTATIONS}::test_what_was_expected_of_a_node_that_goes_is_taken_back",),
    ),
    Bug(
        "node takes pods before they are told",
        "A node loses its taint while the pods that it was made for do not know of it: others come first.",
        (
            Edit(
                "reconciler/kerf/lifecycle:first",
                "tells and (not one.waits) and (one.last >= beaten.get(one.claim.pool_name, -inf))",
                "tells and one.last >= beaten.get(one.claim.pool_name, -inf)",
            ),
        ),
        (f"{_EXPECTATIONS}::test_the_node_takes_pods_when_they_have_been_told",),
    ),
    Bug(
        "node does not give way",
        "A node opens although more important pods wait for another: they come to it, or make its own pods go.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_safe",
                (
                    "able, away = ([one for one in rows if one.up], max((one.top for one in rows if not one.up), "
                    "default=-inf))"
                ),
                (
                    "return [one for one in rows if one.up]\n"
                    "able, away = ([one for one in rows if one.up], max((one.top for one in rows if not one.up), "
                    "default=-inf))"
                ),
            ),
        ),
        (f"{_GIVING_WAY}::test_a_node_gives_way_to_pods_that_are_more_important",),
    ),
    Bug(
        "node gives way only until another is up",
        "A node opens at the same time as the one that more important pods wait for: they come to it all the same.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_ready",
                "found and one.top <= last and (one.first != first)",
                "False",
            ),
        ),
        (f"{_GIVING_WAY}::test_a_node_gives_way_to_pods_that_are_more_important",),
    ),
    Bug(
        "what was forgotten is not told again",
        "A pod that was tried just before its node opened is expected there no more, and others take its room.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_comes",
                "_told_until(claim)",
                "None",
            ),
        ),
        (f"{_EXPECTATIONS}::test_what_was_forgotten_is_told_again_until_the_node_has_been_up_for_some_seconds",),
    ),
    Bug(
        "terminate by node name",
        "The instance that ends is the one behind the Node of the claim's node name, whoever registered under it.",
        (
            Edit(
                "reconciler/kerf/lifecycle:terminate",
                "if _shared(view, claim):\n    return (progress, True)",
                (
                    "if _shared(view, claim):\n"
                    "    return (progress, True)\n"
                    "named = view.snapshot.nodes.get(claim.status.node_name)\n"
                    "own = named.spec.provider_id.rsplit('/', 1)[-1] if named is not None else ''\n"
                    "instance_id = own or instance_id"
                ),
            ),
        ),
        (rule("test_an_instance_ends_by_its_id"),),
    ),
    Bug(
        "garbage collection younger than the adoption time",
        "An instance without a claim is ended at once, though its claim may only not have been seen yet.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_adopted_by",
                "instance.launched + view.snapshot.settings.adoption_time",
                "instance.launched",
            ),
        ),
        (rule("test_a_young_instance_without_a_claim_is_left_alone"),),
        seeds=range(133, 134),
    ),
    Bug(
        "one odd object stops everything",
        "An annotation that cannot be read keeps the whole plan from being made.",
        (
            Edit(
                "reconciler/kerf/model:guarded",
                "Exception",
                "KeyError",
            ),
            Edit(
                "reconciler/kerf/model:planning.guarded",
                "Exception",
                "KeyError",
            ),
        ),
        (rule("test_an_object_that_cannot_be_understood_holds_up_only_itself"),),
    ),
    Bug(
        "drivers are not waited for",
        "A node is initialized although a driver whose devices pods claim has published nothing yet.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_silent_drivers",
                "sorted({driver.strip() for driver in wanted.split(',')} - own - {''})",
                "[]",
            ),
        ),
        (
            "tests/unit/disruption/catalogue/test_launched.py::test_151_every_driver_must_have_published_its_latest_pool",
        ),
    ),
    Bug(
        "launches into a zone shifted away",
        "What is launched there cannot be relied on, and takes no traffic.",
        (
            Edit(
                "reconciler/kerf/ec2:_shut",
                "frozenset((subnet.zone for subnet in facts.subnets)) - roomy | _shifted(facts)",
                "frozenset((subnet.zone for subnet in facts.subnets)) - roomy",
            ),
        ),
        (f"{_ZONAL_SHIFT}::test_nothing_is_launched_there_until_the_shift_is_over_by_itself",),
    ),
    Bug(
        "an instance in a zone shifted away is ended",
        "What EC2 says of an impaired zone is believed, and what may run there is ended.",
        (
            Edit(
                "reconciler/kerf/lifecycle:terminate",
                "claim_held(view, claim, instance)",
                "None",
            ),
        ),
        (f"{_ZONAL_SHIFT}::test_nothing_is_ended_there_before_the_shift_is_over",),
    ),
    Bug(
        "a node opens before its partition is known",
        "Pods that are to be in different partitions are counted in none.",
        (
            Edit(
                "reconciler/kerf/lifecycle:register",
                "placement.is_awaited(progress.claim)",
                "False",
            ),
        ),
        (f"{_PLACEMENT}::test_219_a_node_takes_no_pods_before_its_partition_is_known_and_then_has_the_label",),
    ),
    Bug(
        "profiles go with their claims",
        "When claims are lost their instances lose their role half an hour later, and cannot pull an image any more.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_profiles",
                "name in names or name in claimed or name in running",
                "name in names or name in claimed",
            ),
        ),
        (f"{_UNUSED}::test_199_a_profile_that_an_instance_has_stays_whatever_became_of_its_claim",),
    ),
    Bug(
        "templates of pending launches go",
        "A launch that waits for long finds its template gone again and again.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_templates",
                "names",
                "frozenset[str]()",
            ),
        ),
        (f"{_UNUSED}::test_158_a_template_of_a_launch_to_come_or_under_way_stays",),
    ),
    Bug(
        "a changed spec not told",
        "A NodePool is valid or invalid for ever, and its requirements are those that it had first.",
        (
            Edit("reconciler/kerf/model:SpecIndex.replace", "self._journal.touch(self.NAME, old.name)", "pass"),
            Edit("reconciler/kerf/model:SpecIndex.replace", "self._journal.touch(self.NAME, new.name)", "pass"),
        ),
        ("tests/simulation/test_edited_pools.py::test_plans_with_a_memory_are_those_without_while_pools_are_edited",),
    ),
)
