"""The planted bugs of approval: a change goes on that nobody approved, or one that is approved waits."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_DISRUPTION = "reconciler/kerf/disruption"
_UNIT = "tests/unit/disruption/test_approval.py"
_API = "tests/unit/api/test_approval.py"
_SCENARIOS = "tests/scenarios/test_scenarios.py::test_scenario[approval/{}]"

BUGS = (
    Bug(
        "any approval will do",
        "The digest of another plan approves a change.",
        (
            Edit(
                f"{_DISRUPTION}:_gate",
                "parts is not None and notes.get(labels.APPROVED_PLAN) == parts.digest",
                "parts is not None and labels.APPROVED_PLAN in notes",
            ),
        ),
        (f"{_UNIT}::test_only_the_digest_of_now_or_its_own_delay_opens_the_gate",),
    ),
    Bug(
        "delay of another plan",
        "The wait of a change counts from the first reconcile of the change before it.",
        (
            Edit(
                f"{_DISRUPTION}:_gate",
                "seen.since if seen is not None and seen.parts == parts else None",
                "seen.since if seen is not None else None",
            ),
        ),
        (f"{_UNIT}::test_only_the_digest_of_now_or_its_own_delay_opens_the_gate",),
    ),
    Bug(
        "invalid rule is no rule",
        "A misspelt kerf.sh/plan-first lets changes go on.",
        (Edit("api:of", "return ON", "return default"),),
        (f"{_API}::test_the_nodepool_comes_before_its_class_and_that_before_the_setting",),
    ),
    Bug(
        "class before NodePool",
        "The annotation of the EC2NodeClass overrides that of the NodePool.",
        (
            Edit(
                "api:of",
                "pool.get(labels.PLAN_FIRST, node_class.get(labels.PLAN_FIRST))",
                "node_class.get(labels.PLAN_FIRST, pool.get(labels.PLAN_FIRST))",
            ),
        ),
        (f"{_API}::test_the_nodepool_comes_before_its_class_and_that_before_the_setting",),
    ),
    Bug(
        "drift does not ask",
        "Drifted nodes are replaced without an approval.",
        (
            Edit(
                f"{_DISRUPTION}:_drifted",
                "canary.drift_blocker(view, state) or known_candidate(view, key, eventual=True)",
                "known_candidate(view, key, eventual=True)",
            ),
        ),
        (_SCENARIOS.format("waits-and-goes-on"),),
    ),
    Bug(
        "consolidation does not ask",
        "Consolidation replaces nodes of an earlier version without an approval.",
        (
            Edit(
                f"{_DISRUPTION}:consolidation_blockers",
                "if waits is not None:\n    yield waits",
                "",
            ),
        ),
        (_SCENARIOS.format("consolidation"),),
    ),
    Bug(
        "settled too early",
        "A change counts as approved as soon as Kerf has seen it.",
        (
            Edit(
                f"{_DISRUPTION}:seen",
                "before.settled if before is not None else _assumed(pool, gate.parts, drifted)",
                "gate.parts",
            ),
        ),
        (_SCENARIOS.format("consolidation"),),
    ),
    Bug(
        "a lost note approves",
        "A change that waits goes on when kubectl replace has removed the note of Kerf.",
        (
            Edit(
                f"{_DISRUPTION}:_assumed",
                "told is None or (told.reason == NOTHING_TO_APPROVE and parts.digest in told.message)",
                "True",
            ),
        ),
        (f"{_UNIT}::test_a_change_still_waits_when_kubectl_replace_has_removed_the_note",),
    ),
    Bug(
        "images left out",
        "A new image behind @latest is no change.",
        (
            Edit(
                "api:Parts.digest",
                "[_VERSION, self.node_pool, self.node_class, self.images]",
                "[_VERSION, self.node_pool, self.node_class]",
            ),
        ),
        (f"{_API}::test_each_part_is_in_the_digest_and_named_when_it_changes",),
    ),
    Bug(
        "budgets in the digest",
        "A budget that pauses an approved roll-out withdraws its approval.",
        (Edit("api:of_pool", 'key != "budgets"', "key"),),
        (f"{_API}::test_what_replaces_no_node_is_the_same_digest",),
    ),
    Bug(
        "written defaults in the digest",
        "The digest of a manifest differs from that of the object that the API server makes of it.",
        (Edit("api:_written", "if found != unset:", "if found is not unset:"),),
        (f"{_API}::test_what_replaces_no_node_is_the_same_digest",),
    ),
    Bug(
        "unknown images are no images",
        "While the images of a class are not known its plan has a digest.",
        (
            Edit(
                f"{_DISRUPTION}:parts_of",
                (
                    "node_class is None or node_class.metadata.unreadable or pool.metadata.unreadable"
                    " or not node_class.status.amis"
                ),
                "node_class is None or node_class.metadata.unreadable or pool.metadata.unreadable",
            ),
        ),
        (f"{_UNIT}::test_a_class_without_images_is_named",),
    ),
    Bug(
        "plan from the file's own texts",
        "The digest in a plan from a file covers the digest of user data in place of user data.",
        (
            Edit(
                "reconciler/kerf/planning:Comparison.comparable",
                "Change(tuple(map(self._comparable, change.applied)), change.deleted, change.written)",
                "Change(tuple(map(self._comparable, change.applied)), change.deleted)",
            ),
        ),
        ("tests/unit/planning/test_approvals.py::test_the_planned_digest_is_the_one_that_the_controller_waits_for",),
    ),
)
