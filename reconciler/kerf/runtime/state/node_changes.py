"""When a Node was last seen to change in a way that may let pods in: its taints, its labels, its allocatable resources.

Kubernetes notes no time of such a change. After a restart each new node counts as changed when it is first seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from kerf.model.kubernetes.objects import Node
from kerf.scheduling.mismatch.watching import WATCHED

#: The table says nothing of a node so long after its last change.
KEPT: Final = WATCHED


class NodeChanges:
    """One thread uses it."""

    def __init__(self) -> None:
        #: The earliest change first.
        self._at: dict[str, datetime] = {}
        #: A copy of the table for snapshots; None when it has changed since.
        self._shown: dict[str, datetime] | None = None

    def noticed(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """Take in a Node that came, changed or went."""
        if new is None:
            if old is not None:
                self._drop(old.name)
        elif old is None or _terms(old) != _terms(new):
            self._drop(new.name)
            self._at[new.name] = now

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: changes stay as long ago as they were."""
        self._at = {name: at - by for name, at in self._at.items()}
        self._shown = None

    def at(self, now: datetime) -> Mapping[str, datetime]:
        """The latest change of each node that changed lately, by the node's name: the same table until one changes."""
        while self._at and self._at[first := next(iter(self._at))] <= now - KEPT:
            self._drop(first)
        while self._at and self._at[last := next(reversed(self._at))] > now:
            self._drop(last)
        if self._shown is None:
            self._shown = dict(self._at)
        return self._shown

    def _drop(self, name: str) -> None:
        self._at.pop(name, None)
        self._shown = None


def _terms(node: Node) -> tuple[object, ...]:
    return node.spec.taints, node.metadata.labels, node.status.allocatable
