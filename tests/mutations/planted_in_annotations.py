"""The planted bugs of annotations in which Kerf keeps its own state: another account may change them after all."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_UNIT = "tests/unit/webhook/test_own_annotations.py"

BUGS = (
    Bug(
        "new objects not looked at",
        "A new NodeClaim may have the annotations of a launch.",
        (
            Edit(
                "api:_changes",
                "old is not None or key not in _ON_NEW.get(kind, _NONE)",
                "old is not None and key not in _ON_NEW.get(kind, _NONE)",
            ),
        ),
        (f"{_UNIT}::test_another_account_may_not_write_it",),
    ),
    Bug(
        "values not compared",
        "An annotation that is there may have another value.",
        (
            Edit(
                "api:_changes",
                "new[key] != before[key]",
                "not before[key]",
            ),
        ),
        (f"{_UNIT}::test_another_account_may_not_write_it",),
    ),
    Bug(
        "empty annotation let through",
        "An empty value counts as no annotation.",
        (Edit("api:_changes", "key in new and key not in before", "new.get(key) and key not in before"),),
        (f"{_UNIT}::test_another_account_may_not_write_it",),
    ),
    Bug(
        "record of garbage removable",
        "The count of terminated instances begins again as often as an editor of NodePools wants.",
        (Edit("api:_REMOVABLE", "WRITTEN[kind] - {labels.GARBAGE}", "WRITTEN[kind]"),),
        (f"{_UNIT}::test_nothing_of_a_claim_may_be_removed_and_of_parents_not_the_terminated_instances",),
    ),
    Bug(
        "state of claims removable",
        "Another account may remove the launch request of a NodeClaim.",
        (Edit("api:_changes", "key not in new", "not new"),),
        (f"{_UNIT}::test_nothing_of_a_claim_may_be_removed_and_of_parents_not_the_terminated_instances",),
    ),
    Bug(
        "templates with state",
        "A NodePool may be given a template with annotations that only Kerf writes.",
        (
            Edit(
                "api/kerf_api/lint:_RUNTIME",
                "(rules_nodepool.check, written_annotations.of_template)",
                "(rules_nodepool.check,)",
            ),
        ),
        ("tests/unit/api/test_rulebook.py::test_the_wrong_example_breaks_the_rule[KERF-NP-126]",),
    ),
)
