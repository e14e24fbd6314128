"""When a budget with a schedule holds, found by looking at every minute: slow, obvious, and not the controller's own.

Five cron fields or a descriptor, in UTC. A hit at minute M holds from M until the duration has passed; day of month and
day of week are alternatives when both are restricted. Source: disruption reference §2.2.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kerf_api import durations

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MINUTE = timedelta(minutes=1)
#: Minute, hour, day of month, month, day of week: the least and the most, and names.
_FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _DAYS))


def holds(schedule: str, duration: str, now: datetime) -> bool:
    """Whether the schedule hit a minute less than the duration ago. Raises ValueError when it cannot be read."""
    text = _DESCRIPTORS.get(schedule, schedule).split()
    if len(text) != len(_FIELDS):
        raise ValueError(f"{schedule!r} has {len(text)} fields")
    fields = [_numbers(part, *field) for part, field in zip(text, _FIELDS, strict=True)]
    either = text[2] != "*" and text[4] != "*"
    length, minute = durations.parse(duration), now.replace(second=0, microsecond=0)
    while now - minute < length:
        if _hits(fields, minute, either=either):
            return True
        minute -= _MINUTE
    return False


def _hits(fields: list[set[int]], minute: datetime, *, either: bool) -> bool:
    minutes, hours, days, months, weekdays = fields
    day, weekday = minute.day in days, minute.isoweekday() % 7 in weekdays
    fits = day or weekday if either else day and weekday
    return minute.minute in minutes and minute.hour in hours and minute.month in months and fits


def _numbers(text: str, least: int, most: int, names: tuple[str, ...]) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        low = least if first == "*" else _number(first, names)
        high = _number(last, names) if dash else most if first == "*" or step else low
        if not least <= low <= high <= most:
            raise ValueError(f"{part!r} is not within {least} and {most}")
        found.update(range(low, high + 1, int(step or 1)))
    return found


def _number(text: str, names: tuple[str, ...]) -> int:
    return names.index(text.lower()) if text.lower() in names else int(text)
