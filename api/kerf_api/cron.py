"""Cron schedules of disruption budgets: when a window opens, in UTC.

The grammar is Go's `robfig/cron` as Karpenter uses it: five fields or a descriptor such as `@daily`. It is a little
narrower than Unix cron (`7` is no Sunday, no `L`, `W` or `#`) and reads one thing differently: `*/2` in a day field is
a restriction, so that it is ORed with the other day field. We read a schedule into plain numbers here, and let
`cronsim` walk the calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from cronsim import CronSim, CronSimError

DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
#: Beyond this many years from now a schedule counts as one that never fires, as in the Go library.
HORIZON_YEARS: Final = 5

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NUMBER = re.compile(r"\+?[0-9]{1,9}", re.ASCII)
_LONGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # the first one stands for `low`, and so on


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule that has been read; `fields` are plain numbers in cronsim's notation, `text` is what was written."""

    text: str
    fields: str

    def next_after(self, instant: datetime) -> datetime | None:
        """The first time strictly after `instant` at which the schedule fires, in UTC.

        `instant` must know its time zone. None when the schedule does not fire within about five years.
        """
        return next(self.after(instant), None)

    def after(self, instant: datetime) -> Iterator[datetime]:
        """The times strictly after `instant` at which the schedule fires within about five years, in UTC."""
        start = instant.astimezone(UTC)
        try:
            for found in CronSim(self.fields, start):
                if found.year > start.year + HORIZON_YEARS:
                    return
                yield found
        except (CronSimError, OverflowError):
            return


@lru_cache(maxsize=1024)
def parse(schedule: str) -> Cron:
    """Read a schedule. Raises ValueError saying which field is wrong and what it may hold."""
    if schedule.startswith("@"):
        if schedule not in DESCRIPTORS:
            raise ValueError(f"{schedule!r} is not one of {', '.join(DESCRIPTORS)}")
        return Cron(schedule, DESCRIPTORS[schedule])
    if len(schedule) > _LONGEST:
        raise ValueError("the schedule is far too long")
    words = schedule.split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"a schedule has 5 fields (minute, hour, day of month, month, day of week), not {len(words)}")
    return Cron(schedule, " ".join(_read(word, field) for word, field in zip(words, _FIELDS, strict=True)))


def _read(word: str, field: _Field) -> str:
    """One field as `*` or a list of numbers."""
    entries = [entry for entry in word.split(",") if entry]
    if not entries:
        raise ValueError(f"{field.name}: {word!r} has no value")
    numbers: set[int] = set()
    star = False
    for entry in entries:
        first, last, step = _range(entry, field)
        star = star or (entry[0] in "*?" and step == 1)
        numbers.update(range(first, last + 1, step))
    return "*" if star else ",".join(str(number) for number in sorted(numbers))


def _range(entry: str, field: _Field) -> tuple[int, int, int]:
    """First, last and step of one entry of a list."""
    span, slash, step_text = entry.partition("/")
    step = _step(step_text, entry, field) if slash else 1
    if span in ("*", "?"):
        return field.low, field.high, step
    low_text, dash, high_text = span.partition("-")
    low = _value(low_text, field)
    high = _value(high_text, field) if dash else (field.high if slash else low)
    if low > high:
        raise ValueError(f"{field.name}: the range {span!r} runs backwards")
    return low, high, step


def _step(text: str, entry: str, field: _Field) -> int:
    if not _NUMBER.fullmatch(text) or int(text) == 0:
        raise ValueError(f"{field.name}: the step in {entry!r} must be a whole number of 1 or more")
    return int(text)


def _value(text: str, field: _Field) -> int:
    """A number or a name. Raises ValueError with the bounds of the field."""
    if text.lower() in field.names:
        return field.low + field.names.index(text.lower())
    if not _NUMBER.fullmatch(text) or not field.low <= int(text) <= field.high:
        raise ValueError(f"{field.name}: {text!r} is not {_allowed(field)}")
    return int(text)


def _allowed(field: _Field) -> str:
    numbers = f"a number from {field.low} to {field.high}"
    return f"{numbers} or a name from {field.names[0]} to {field.names[-1]}" if field.names else numbers
