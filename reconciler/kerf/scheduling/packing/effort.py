"""How much work a solve may put into a cheaper answer, in steps: the same pods get the same answer on any machine.

A step is as much work as to look for a seat for pods in the nodes of one filling.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Effort:
    """So many `seats` may be looked for; `used` may come to be more, for work is counted when it is done."""

    seats: int = 0
    used: int = 0

    @property
    def left(self) -> int:
        return max(self.seats - self.used, 0)
