"""Questions to the API server by a person, who may not be allowed to read everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kerf.ports import Forbidden, PortError

T = TypeVar("T")


@dataclass(slots=True)
class Asking:
    """Reads that may fail: how many did not, and a line for each that did."""

    checked: int = field(default=0, kw_only=True)
    not_checked: list[str] = field(default_factory=list, kw_only=True)

    def read(self, what: str, ask: Callable[[], T], *needed: str) -> T | None:
        """Return the answer; None when it cannot be had, which is noted with the permission that is needed."""
        try:
            answer = ask()
        except Forbidden:
            self.not_checked.append(f"{what}: needs permission to {', '.join(needed)}")
        except PortError as error:
            self.not_checked.append(f"{what}: {error}")
        else:
            self.checked += 1
            return answer
        return None
