"""The planted bugs of trust: a check is missing, so that what others write launches or ends something."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_OF_KEYS, _OF_SECRET, _OF_MARKS = (
    f"tests/unit/runtime/test_{name}.py" for name in ("launch_keys", "launch_secret", "marks")
)
_OF_UNMARKED, _OF_LIMITS, _OF_OWN = (
    f"tests/unit/lifecycle/test_{name}.py" for name in ("unmarked", "pool_limits", "ownership")
)


def _bug(name: str, breaks: str, place: str, old: str, new: str, test: str) -> Bug:
    return Bug(name, breaks, (Edit(place, old, new),), (test,))


BUGS = (
    _bug(
        "request not in the mark",
        "The request may be another one than the one that Kerf marked.",
        "reconciler/kerf/runtime:LaunchKeys.check",
        "request is not None and _digest(request) == digest",
        "request is not None",
        f"{_OF_UNMARKED}::test_a_request_that_was_changed_under_its_mark_is_not_sent",
    ),
    _bug(
        "claim not in the mark",
        "A mark may be copied to another NodeClaim.",
        "reconciler/kerf/runtime:LaunchKeys._code",
        "[_PURPOSE, self._cluster_name, uid, group, digest]",
        "[_PURPOSE, self._cluster_name, group, digest]",
        f"{_OF_KEYS}::test_neither_another_claim_nor_another_group_nor_another_cluster_is_covered",
    ),
    _bug(
        "group not in the mark",
        "A marked NodeClaim may name the group of others.",
        "reconciler/kerf/runtime:LaunchKeys._code",
        "[_PURPOSE, self._cluster_name, uid, group, digest]",
        "[_PURPOSE, self._cluster_name, uid, digest]",
        f"{_OF_KEYS}::test_neither_another_claim_nor_another_group_nor_another_cluster_is_covered",
    ),
    _bug(
        "fields of the mark joined",
        "The end of one field may be the beginning of the next.",
        "reconciler/kerf/runtime:LaunchKeys._code",
        "json.dumps",
        "''.join",
        f"{_OF_KEYS}::test_fields_do_not_run_into_each_other",
    ),
    _bug(
        "requests without a mark",
        "A request counts whoever wrote it.",
        "reconciler/kerf/lifecycle:request_of",
        "if not view.mark_of(claim).request:\n    return None",
        "",
        f"{_OF_UNMARKED}::test_a_request_that_was_changed_under_its_mark_is_not_sent",
    ),
    _bug(
        "groups without a mark",
        "A launch group counts whoever wrote it.",
        "reconciler/kerf/lifecycle:View.group_of",
        "self.mark_of(claim).group",
        "True",
        f"{_OF_UNMARKED}::test_a_claim_that_names_the_group_of_others_takes_none_of_their_instances",
    ),
    _bug(
        "named instances",
        "A NodeClaim gets whatever instance it names.",
        "reconciler/kerf/lifecycle:pairs",
        "instance is not None and is_own(view, claim, instance)",
        "instance is not None",
        f"{_OF_UNMARKED}::test_a_claim_that_names_the_instance_of_another_does_not_get_it",
    ),
    _bug(
        "doubt without a list",
        "An unmarked group is taken as one without instances before a list could show them.",
        "reconciler/kerf/lifecycle:step",
        "if not view.listed_after(since + SHOWN_AFTER):\n    return Reason(UNMARKED, _TEXT)",
        "",
        f"{_OF_UNMARKED}::test_after_an_upgrade_the_instances_of_a_call_are_adopted",
    ),
    _bug(
        "unmarked claims first",
        "A NodeClaim that others wrote is dealt an instance before the NodeClaims of the group.",
        "reconciler/kerf/lifecycle:_rank",
        "(not marked, marked and claim.metadata.deleting, claim.name)",
        "(False, claim.metadata.deleting, claim.name)",
        f"{_OF_UNMARKED}::test_a_marked_claim_that_still_waits_is_dealt_its_instance_first",
    ),
    _bug(
        "orphans with a friend",
        "An eternal NodeClaim with an orphan's launch group keeps the orphan for ever.",
        "reconciler/kerf/lifecycle:may_get_instance",
        "since is None or not view.listed_after(since + SHOWN_AFTER)",
        "True",
        f"{_OF_UNMARKED}::test_an_eternal_claim_with_the_group_of_an_orphan_keeps_it_for_two_minutes_at_most",
    ),
    _bug(
        "doubts grow old",
        "A group that was written a moment ago is as old as the one before.",
        "reconciler/kerf/runtime:Marks._check",
        "since is not None and known is not None and (old is not None) and (_group(old) == _group(claim))",
        "since is not None and known is not None and (old is not None)",
        f"{_OF_MARKS}::test_an_unmarked_group_is_doubted_from_when_it_was_first_seen",
    ),
    _bug(
        "doubts while standing by",
        "A call that the leader before made is taken for one that was not made.",
        "reconciler/kerf/runtime:Marks.stand_by",
        "now",
        "None",
        f"{_OF_MARKS}::test_a_doubt_begins_again_while_this_process_stands_by",
    ),
    _bug(
        "limits by claim",
        "Each call of a look may take all that limits leave.",
        "reconciler/kerf/lifecycle:PoolLimits.planned",
        "left.less(self._largest(pool_name, call, len(call.members)))",
        "left",
        f"{_OF_LIMITS}::test_calls_of_one_look_leave_the_rest_to_each_other",
    ),
    _bug(
        "limits without commands",
        "Nodes with a command never count, so that whoever writes commands has no limits.",
        "reconciler/kerf/lifecycle:PoolLimits._work_out",
        "min(later[name], 2 * limit - staying - replaced)",
        "later[name]",
        f"{_OF_LIMITS}::test_commands_that_others_write_on_every_node_at_most_double_the_limits",
    ),
    _bug(
        "instances without a claim",
        "Limits forget instances whose claims went without their finalizer.",
        "reconciler/kerf/lifecycle:PoolLimits._work_out",
        "min(later[name], 2 * limit - staying - replaced) - apart[name]",
        "min(later[name], 2 * limit - staying - replaced)",
        f"{_OF_LIMITS}::test_instances_count_when_their_claims_are_gone_and_others_wait_for_their_end",
    ),
    _bug(
        "claims let go",
        "A claim that another finalizer keeps holds its instance for ever.",
        "reconciler/kerf/lifecycle:holds",
        "claim.managed and (not let_go)",
        "True",
        "tests/unit/lifecycle/test_garbage.py::test_a_claim_that_kerf_does_not_end_keeps_no_instance",
    ),
    _bug(
        "class statuses",
        "A launch takes image, groups and profile from the status of the class.",
        "reconciler/kerf/lifecycle:planned",
        "nodeclass.as_resolved(listed, snapshot.class_facts.get(listed.name))",
        "listed",
        f"{_OF_OWN}::test_a_launch_uses_what_aws_gave_for_the_class_and_not_its_status",
    ),
    _bug(
        "nodes of others",
        "The node that a status names is drained, whoever it belongs to.",
        "reconciler/kerf/lifecycle:_registered_nodes",
        "len(view.claims.get(claim.status.provider_id, ())) > 1 or not nodes or _of_others(view, claim)",
        "len(view.claims.get(claim.status.provider_id, ())) > 1",
        f"{_OF_OWN}::test_a_node_of_another_claim_is_not_drained_for_a_claim_whose_status_names_it",
    ),
    _bug(
        "malformed keys",
        "A key of a few bytes counts as a key.",
        "reconciler/kerf/runtime:_key",
        "key if len(key) >= KEY_BYTES else None",
        "key or None",
        f"{_OF_SECRET}::test_a_malformed_key_is_replaced_and_reported",
    ),
    _bug(
        "earlier key forgotten",
        "After a rotation no mark of before counts.",
        "reconciler/kerf/runtime:LaunchSecret._wanted",
        "earlier = used",
        "earlier = None",
        f"{_OF_SECRET}::test_deletion_rotates_the_key_and_the_earlier_one_counts_until_no_claim_bears_it",
    ),
)
