"""One thing that was looked at, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GOOD: Final = "ok"
WRONG: Final = "wrong"
#: It will not keep Kerf from working, or it could not be found out.
DOUBTFUL: Final = "doubtful"


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` was looked at, `how` it is (GOOD, WRONG or DOUBTFUL), what was seen in words, and what mends it."""

    what: str
    how: str
    seen: str = ""
    fix: str = ""
