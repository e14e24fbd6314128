"""What the API server means by patterns and formats, for engines that mean something else."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


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
