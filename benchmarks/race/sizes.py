"""How many pods a run has, where it has not as many as a whole load."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

WHOLE: Final = 1000


@dataclass(frozen=True, slots=True)
class Size:
    """A size by which numbers of pods are reckoned; `pods` are those of the load (a)."""

    pods: int = WHOLE

    def __call__(self, count: int) -> int:
        """So many pods of a whole load, at this size; one at least."""
        return ceil(count * self.pods / WHOLE)
