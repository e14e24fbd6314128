"""The planted bugs of what a pull request is told: which objects differ, what that means, and where it was written."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_TEST_SINCE, _TEST_CHANGES = "tests/unit/cli/test_since.py", "tests/unit/api/test_changes.py"
_TEST_RENDERING = "tests/unit/cli/test_rendering.py"

BUGS = (
    Bug(
        "what others merged meanwhile counts",
        "A branch is compared with where main is now: pools that others have added since seem to be removed.",
        (Edit("reconciler/kerf/cli:_commit", "base.out.decode().split()[0]", "commit"),),
        (f"{_TEST_SINCE}::test_what_others_did_meanwhile_is_no_change_of_this_branch",),
    ),
    Bug(
        "a broken file removes its pools",
        "Of a file that cannot be read now all objects are told to be removed.",
        (Edit("reconciler/kerf/cli:_removals", "problems if file.name not in faulty else ()", "problems"),),
        (f"{_TEST_SINCE}::test_of_a_file_that_cannot_be_read_nothing_is_said_to_be_removed",),
    ),
    Bug(
        "what a change breaks elsewhere is silent",
        "A pool that did not change is told nothing of, though the class that it names is gone.",
        (
            Edit(
                "reconciler/kerf/cli:check",
                (
                    "(finding.world or finding.file, finding.subject) in touched or (not finding.subject and "
                    "finding.file in earlier.changed) or _identity(finding) not in was"
                ),
                (
                    "(finding.world or finding.file, finding.subject) in touched or (not finding.subject and "
                    "finding.file in earlier.changed)"
                ),
            ),
        ),
        (f"{_TEST_SINCE}::test_what_a_removal_breaks_elsewhere_is_told_of_what_did_not_change",),
    ),
    Bug(
        "a change that no cluster takes passes",
        "A static pool becomes a dynamic one, and only the API server says no.",
        (Edit("reconciler/kerf/cli:_refused", "(problem.rule, problem.steps) not in alone", "False"),),
        (f"{_TEST_SINCE}::test_a_change_that_no_cluster_takes_is_an_error",),
    ),
    Bug(
        "clusters of one repository are mixed up",
        "The pool of one cluster is compared with the pool of the same name of another, which comes first.",
        (Edit("api/kerf_api/lint:_pairs", "(True, False)", "(False,)"),),
        (f"{_TEST_CHANGES}::test_objects_are_matched_by_name_wherever_they_stand_and_in_their_own_file_first",),
    ),
    Bug(
        "a label of the template is a narrowed requirement",
        "A new label is told as the loss of all other values that the label might have.",
        (Edit("api/kerf_api/lint:_row", "row.wanted.key == key and (not row.is_label)", "row.wanted.key == key"),),
        (f"{_TEST_CHANGES}::test_the_fields_that_replace_all_nodes_are_named",),
    ),
    Bug(
        "a patch is blamed for the base",
        "Of several files that have a field the first is named, whatever its value.",
        (Edit("reconciler/kerf/cli:OfKustomization.place", "missing or found != value", "missing"),),
        (f"{_TEST_RENDERING}::test_of_several_files_the_one_with_the_value_is_named",),
    ),
)
