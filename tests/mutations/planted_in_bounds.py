"""Bugs planted in the bounds of times and numbers, the boundaries of objects, and the handling of a wrong clock."""

from __future__ import annotations

from typing import Final

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_LAWS: Final = "tests/laws/test_bounds_laws.py"
_CLOCKS: Final = "tests/unit/runtime/test_clock_steps.py"

BUGS: tuple[Bug, ...] = (
    Bug(
        "times of objects have no bounds",
        "A timestamp of the year 9999 overflows where something is added to it.",
        (
            Edit(
                "reconciler/kerf/kube:KindDecoder.__init__",
                "bound_of(kind.type)",
                "None",
            ),
        ),
        (
            f"{_LAWS}::test_each_known_attack_changes_nothing_about_other_objects[Registered]",
            f"{_LAWS}::test_a_node_is_drained_whatever_grace_period_its_pod_has",
        ),
    ),
    Bug(
        "times of annotations have no bounds",
        "A note of the year 9999 on a NodePool overflows.",
        (
            Edit(
                "reconciler/kerf/model:read",
                "bounded(decoder_of(kind).decode(text), kind)",
                "decoder_of(kind).decode(text)",
            ),
        ),
        (f"{_LAWS}::test_an_annotation_is_bounded_as_an_object_is",),
    ),
    Bug(
        "one object ends a step for all",
        "A step that fails over one object gives no outcome for any.",
        (
            Edit(
                "reconciler/kerf/model:Turn.all",
                "Exception",
                "ZeroDivisionError",
            ),
        ),
        (f"{_LAWS}::test_without_bounds_each_attack_fails_about_its_own_object_alone",),
    ),
    Bug(
        "a clock that is set back is not noticed",
        "Pods that came while the clock was ahead wait until it gets there again.",
        (Edit("reconciler/kerf/runtime:State.notice", "back <= timedelta(0)", "True"),),
        (f"{_CLOCKS}::test_a_state_notices_a_clock_that_is_set_back_and_nothing_else",),
    ),
    Bug(
        "every step of the clock counts",
        "A clock that is an hour ahead for two seconds ends the launches under way.",
        (
            Edit(
                "reconciler/kerf/runtime:SteadyClock._counted",
                "SMALL_STEP",
                "timedelta(days=9999)",
            ),
        ),
        (f"{_CLOCKS}::test_nothing_ends_because_of_a_clock_that_is_wrong_for_two_seconds",),
    ),
    Bug(
        "conditions of a clock ahead count",
        "A drain waits for its shortest time until the clock gets where it was.",
        (
            Edit(
                "reconciler/kerf/model:since",
                "at is not None and is_ahead(at, now)",
                "at is None",
            ),
        ),
        ("tests/unit/model/test_clocks.py::test_a_condition_counts_from_its_time_or_from_the_claims_creation",),
    ),
)
