"""The planted bugs of what one needs at night: the log, its level, the status, the port that they are asked over."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_DEBUGGING = "tests/unit/runtime/test_debugging.py::"
_STATUS = "tests/unit/runtime/test_status_page.py::"
_LOGS = "tests/unit/telemetry/test_logs.py::"

BUGS = (
    Bug(
        "blanks in the log",
        "Programs that read Karpenter's log with regular expressions find nothing.",
        (Edit("reconciler/kerf/telemetry:_compact", "(',', ':')", "(', ', ': ')"),),
        ("tests/unit/telemetry/test_parsed_lines.py::test_created",),
    ),
    Bug(
        "outcome under the ID of the look that saw it",
        "Who follows an ID from an event finds the decision, and never what came of it.",
        (
            Edit(
                "reconciler/kerf/telemetry:reconciling",
                "not id_",
                "not id_ or _NOW.get()",
            ),
        ),
        (_LOGS + "test_line_event_and_metric_of_a_look_bear_its_id",),
    ),
    Bug(
        "debug port for everybody who has a name for it",
        "A web page in an operator's browser makes the log louder, by a name that points to this host.",
        (Edit("reconciler/kerf/runtime:_Handler._found", "self.local", "False"),),
        (_DEBUGGING + "test_a_page_of_another_origin_gets_no_answer_and_changes_nothing",),
    ),
    Bug(
        "louder for ever",
        "A log level that somebody changed at night fills the disk by day.",
        (Edit("reconciler/kerf/runtime:LogLevel.change", "self._timer.start()", ""),),
        (_DEBUGGING + "test_the_log_level_is_changed_for_a_time_and_then_as_it_was_set",),
    ),
    Bug(
        "old news are no problem",
        "The status says that all is well while nothing may be destroyed.",
        (
            Edit(
                "reconciler/kerf/runtime:_problems",
                "one.stale",
                "one.age_seconds is None",
            ),
        ),
        (_STATUS + "test_old_news_are_named_with_their_age",),
    ),
    Bug(
        "each lost line is told of",
        "On a full disk standard error grows as fast as the log would.",
        (Edit("reconciler/kerf/telemetry:Sinks._lost", "self._said = self._clock()", ""),),
        (_LOGS + "test_a_line_that_cannot_be_written_is_told_once_a_minute_and_ends_nothing",),
    ),
    Bug(
        "first unknown gate only",
        "Who has misspelt three gates starts the controller three times.",
        (
            Edit(
                "reconciler/kerf/runtime:_switches",
                "SeveralProblems(problems)",
                "SeveralProblems(problems[:1])",
            ),
        ),
        ("tests/unit/runtime/test_settings.py::test_all_mistakes_in_one_setting_are_reported_at_once",),
    ),
)
