"""A disagreement with the kube-scheduler's plugins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Of the engine: it places a pod on an existing node that the plugins refuse; on a planned node; it misses an existing
#: node; it leaves a daemon pod without resources on a planned node; it raised.
EXISTING: Final = "a"
MISSED: Final = "b"
PLANNED: Final = "c"
DAEMON: Final = "daemon"
UNMADE: Final = "d"
FAILED: Final = "error"
#: A pod that waits has neither a place nor a refusal.
LEFT_OUT: Final = "left out"
NEW_NODE: Final = "a new node"
#: Of the referee: it refuses a node that the plugins allow; it allows a node that they refuse.
BLAMED: Final = "referee refuses"
LET_PASS: Final = "referee allows"


@dataclass(frozen=True, slots=True)
class Difference:
    """`plugin` is the one that refuses, with its message; where the plugins allow, `message` is ours."""

    direction: str
    pod: str
    node: str
    plugin: str = ""
    message: str = ""

    @property
    def kind(self) -> str:
        """Differences of one kind have one direction and one plugin, or one rule."""
        if self.direction == MISSED:
            return f"{MISSED} {NEW_NODE if self.message == NEW_NODE else 'refusal'}"
        rule = self.message.split(":")[0] if self.direction == BLAMED else ""
        return f"{self.direction} {self.plugin or rule}".strip()

    def __str__(self) -> str:
        where = f"{self.pod} on {self.node}"
        if self.direction == MISSED:
            return f"b: {where}: the plugins allow it; Kerf: {self.message}"
        if self.direction == UNMADE:
            return f"d: {where}: the plugins allow it; Kerf: {self.message}"
        if self.direction == BLAMED:
            return f"{self.direction}: {where}: the plugins allow it: {self.message}"
        return f"{self.direction}: {where}: {self.plugin} refuses: {self.message}"
