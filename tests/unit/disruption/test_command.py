"""A command and a failure as annotations hold them; a person may have had a hand in it."""

from __future__ import annotations

import pytest

from kerf.disruption.command import Command, Failure, command_of, failure_of
from kerf.model.annotations import text_of
from kerf_api import labels
from tests.unit.disruption.worlds import NOW


def test_what_is_written_is_read() -> None:
    command, failure = Command(id="c", reason="Drifted", started=NOW), Failure(at=NOW, count=2)
    notes = {labels.COMMAND: text_of(command), labels.COMMAND_FAILED: text_of(failure)}
    assert (command_of(notes), failure_of(notes, NOW)) == (command, failure)


@pytest.mark.parametrize("time", ["2026-01-01T12:00:00", "noon", ""])
def test_what_has_no_time_with_a_zone_is_not_there(time: str) -> None:
    command = f'{{"id":"c","reason":"Drifted","started":"{time}"}}'
    notes = {labels.COMMAND: command, labels.COMMAND_FAILED: f'{{"at":"{time}"}}'}
    assert (command_of(notes), failure_of(notes, NOW)) == (None, None)
