"""When a Node was last seen to change in a way that may let pods in: its taints, its labels, its allocatable resources.

Kubernetes notes no time of such a change. After a restart each new node counts as changed when it is first seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from reconciler.model.objects import Node
from reconciler.scheduling.evidence import WATCHED

#: The table says nothing of a node so long after its last change.
KEPT: Final = WATCHED


class NodeChanges:
    """One thread uses it."""

    def __init__(self) -> None:
        self._at: dict[str, datetime] = {}

    def noticed(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """Take in a Node that came, changed or went."""
        if new is None:
            if old is not None:
                self._at.pop(old.name, None)
        elif old is None or _terms(old) != _terms(new):
            self._at[new.name] = now

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: changes stay as long ago as they were."""
        self._at = {name: at - by for name, at in self._at.items()}

    def at(self, now: datetime) -> Mapping[str, datetime]:
        """The latest change of each node that changed lately, by the node's name."""
        for name in [name for name, at in self._at.items() if not now - KEPT < at <= now]:
            del self._at[name]
        return MappingProxyType(self._at)


def _terms(node: Node) -> tuple[object, ...]:
    return node.spec.taints, node.metadata.labels, node.status.allocatable
