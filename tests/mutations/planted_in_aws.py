"""The planted bugs of what is asked of AWS again, and what is not."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_ASKED = "tests/contract/test_aws_answers.py"
_PARAMETERS = "tests/unit/aws/catalogue/test_image_parameters.py"
_LOOKS = "tests/simulation/test_class_looks.py"
_CALLS = "tests/unit/lifecycle/test_calls.py"

BUGS = (
    Bug(
        "what a failed look has learned thrown away",
        "While AWS refuses every third call a class is not resolved for minutes, and nothing is launched from it.",
        (
            Edit(
                "reconciler/kerf/aws:AwsCloud._ask_once",
                "self._answers.ask((_ATTEMPT, uid, *key), read, ATTEMPT_SECONDS)",
                "read()",
            ),
        ),
        (f"{_ASKED}::test_a_look_that_failed_is_repeated_only_where_it_failed",),
    ),
    Bug(
        "what a look has learned kept for the next",
        "Subnets that were tagged or filled meanwhile are not noticed.",
        (
            Edit(
                "reconciler/kerf/aws:AwsCloud.resolve",
                "self._answers.forget(lambda key: key[:2] == (_ATTEMPT, uid))",
                "",
            ),
        ),
        (f"{_ASKED}::test_a_look_that_succeeded_is_made_anew",),
    ),
    Bug(
        "free addresses from before a launch",
        "Addresses that our own launch took are counted as free, and more is launched into a subnet than fits.",
        (
            Edit(
                "reconciler/kerf/aws:AwsCloud.create_fleet",
                "key[2] in _COUNTED",
                "key[2] not in _COUNTED",
            ),
        ),
        (f"{_ASKED}::test_what_a_launch_has_taken_is_counted_again",),
    ),
    Bug(
        "an answer from before it was forgotten",
        "A profile that was deleted while IAM was asked is taken to be there for a quarter of an hour.",
        (
            Edit(
                "reconciler/kerf/aws:Answers.forget",
                "self._asking = {this: key for this, key in self._asking.items() if not old(key)}",
                "",
            ),
        ),
        ("tests/unit/aws/test_aws_answers.py::test_an_answer_that_was_on_its_way_when_it_was_forgotten_is_not_kept",),
    ),
    Bug(
        "nothing kept as an answer",
        "A parameter, subnet or profile that somebody makes is not seen until its absence has been forgotten.",
        (
            Edit(
                "reconciler/kerf/aws:Answers.ask",
                "self._asking.pop(this, None) is not None and told and answer",
                "self._asking.pop(this, None) is not None and told",
            ),
        ),
        (
            "tests/unit/aws/test_aws_answers.py::test_that_nothing_is_there_is_asked_anew",
            f"{_PARAMETERS}::test_168_a_parameter_that_is_not_there_is_asked_for_each_time",
            f"{_ASKED}::test_a_profile_that_was_found_is_taken_to_be_there",
        ),
    ),
    Bug(
        "deprecated image stays the latest",
        "Nodes start with an image that AWS has withdrawn, until its parameter has been forgotten.",
        (
            Edit(
                "reconciler/kerf/aws:ImageReader._outdated",
                "{one.id for one in found if not one.deprecated}",
                "{one.id for one in found}",
            ),
        ),
        (f"{_PARAMETERS}::test_168_a_parameter_whose_image_is_deprecated_is_asked_at_once",),
    ),
    Bug(
        "deleted profile stays found",
        "A class keeps a profile that we have deleted ourselves, and nothing can be launched from it.",
        (Edit("reconciler/kerf/aws:changing", "forget(answers)", "pass"),),
        (f"{_ASKED}::test_a_profile_that_we_have_deleted_is_not_there",),
    ),
    Bug(
        "lost profile stays found",
        "Launches from a class fail for a quarter of an hour, because nobody looks whether its profile is still there.",
        (Edit("reconciler/kerf/aws:AwsCloud._doubt_profiles", "any(map(profiles.unfit, words))", "not words"),),
        (f"{_ASKED}::test_a_profile_with_which_nothing_can_be_launched_is_looked_for",),
    ),
    Bug(
        "a gone instance hides ailments",
        "While one instance has vanished nothing is known of what ails the others.",
        (
            Edit(
                "reconciler/kerf/aws:_of",
                "_impaired(ec2)",
                "[]",
            ),
        ),
        (f"{_ASKED}::test_an_instance_that_is_gone_hides_no_other",),
    ),
    Bug(
        "pods that come count as rest",
        "A pod is planned with what a class selected minutes ago.",
        (
            Edit(
                "reconciler/kerf/runtime:Observer._idle",
                "state.busy or state.batch.asked_since(now - state.settings.batch_max)",
                "state.busy",
            ),
        ),
        (f"{_LOOKS}::test_a_pod_that_has_no_place_anywhere_has_it_looked_at_once",),
    ),
    Bug(
        "a class that is not ready has time",
        "A subnet that was tagged as it should be counts only minutes later.",
        (
            Edit(
                "reconciler/kerf/runtime:Catalogues.due_at",
                "idle and _settled(node_class, known.facts)",
                "idle",
            ),
        ),
        (
            f"{_LOOKS}::test_a_class_that_is_not_ready_is_looked_at_every_minute",
            f"{_LOOKS}::test_a_class_with_capacity_reservations_is_looked_at_every_minute",
        ),
    ),
    Bug(
        "NodeClaims share a call whatever types hold them",
        "EC2 launches an instance that is too small for the pods of its NodeClaim.",
        (Edit("reconciler/kerf/lifecycle:_held_alike", "holding.of(members[0]) or number", "0"),),
        (f"{_CALLS}::test_claims_whose_requests_other_types_hold_have_calls_of_their_own",),
    ),
    Bug(
        "NodeClaims into one reservation share a call",
        "EC2 refuses all of a call that wants more machines than a reservation has left.",
        (Edit("reconciler/kerf/lifecycle:_held_alike", "holding.reserved", "False"),),
        (f"{_CALLS}::test_reservations_are_not_shared",),
    ),
    Bug(
        "limits leave the smallest types alone",
        "In a NodePool with limits no launch names the other types, however much room there is.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_fit",
                "min((most, *fitting))",
                "min(fitting, default=most)",
            ),
        ),
        (f"{_CALLS}::test_limits_with_room_exclude_no_type",),
    ),
)
