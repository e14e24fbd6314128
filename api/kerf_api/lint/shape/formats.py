"""What the API server means by patterns and formats, for engines that mean something else."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

#: As Go reads RFC 3339: an hour may have one digit, and a comma may stand before the fraction.
_GO_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|[+-](\d\d):(\d\d))", re.ASCII
)
#: A year with the same days as the year 0, which Python does not have.
_LEAP: Final = 2000


def ascii_classes(pattern: str) -> str:
    """An RE2 pattern for engines whose digits and spaces are Unicode's."""
    return pattern.replace(r"\s", r"[\t\n\f\r ]").replace(r"\d", "[0-9]")


def is_date_time(text: str) -> bool:
    """Whether a text is an instant as of RFC 3339."""
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def is_go_time(text: str) -> bool:
    """Whether Go's `time.Parse` takes a text for an instant as of RFC 3339: it refuses small letters, and takes some
    texts that are none."""
    found = _GO_TIME.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second, offset, minutes = (int(part or 0) for part in found.groups())
    try:
        datetime(year or _LEAP, month, day, hour, minute, second)
    except ValueError:
        return False
    return offset <= 24 and minutes <= 60
