"""The changes of a snapshot since the one before, in time that depends on their number.

A Snapshot's maps are views that later events change. So the loop's thread takes the changed objects, which are frozen,
by the cluster's journal, and copies of the facts whose maps change in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from kerf.model.aws.cloud import Region
from kerf.model.changes.journal import Journal
from kerf.model.cluster import FACTS, FIELDS
from kerf.model.snapshot import Snapshot
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

_KIND_OF: Final = {name: kind for kind, name in FIELDS.items()}
_FACTS: Final = tuple(name for name in FACTS if name != "now")
#: Types of maps that may change in place; an InstanceIndex does not.
_MAPS: Final = (dict, MappingProxyType)
_FOREIGN: Final = "foreign_by_provider"
#: Facts whose maps the state replaces with every change; maps of others are copied.
_REPLACED: Final = frozenset(
    {
        *("class_facts", "resolved_at", "catalogues", "launch_marks", "shifted", "inventories", "node_changed_at"),
        *("not_before", "failures", "kept", "buffer_pods", "unread_since"),
    }
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from the changes before.

    Attributes:
        at: the time of the snapshot.
        objects: by kind and key; None for a deleted one.
        foreign: NodeClaims of other controllers by provider ID; empty where there are none any more.
        facts: those that may differ, by name.
        region: instance types, zones and prices.
        whole: the snapshot itself, detached, when earlier changes are not known; then `objects` is empty.
    """

    at: datetime
    objects: Mapping[tuple[str, str], Any | None]
    foreign: Mapping[str, tuple[NodeClaim, ...]]
    facts: Mapping[str, Any]
    region: Region | None
    whole: Snapshot | None = None


@dataclass(slots=True)
class Follower:
    """Notes the changes of one series of snapshots. One thread uses it."""

    _journal: Journal | None = None
    _position: int = 0
    _facts: dict[str, Any] = field(default_factory=dict)
    _pools: Mapping[str, NodePool] = field(default_factory=dict)

    def changes(self, snapshot: Snapshot, region: Region | None) -> Changes:
        """Since the latest `accepted` ones; all there is if there are none, or too many."""
        journal = snapshot.journal
        rows = journal.since(self._position) if journal is not None and journal is self._journal else None
        facts = self._changed(snapshot)
        if rows is None:
            return Changes(snapshot.now, {}, {}, facts, region, snapshot.detached())
        objects, foreign = dict[tuple[str, str], Any | None](), dict[str, tuple[NodeClaim, ...]]()
        for table, key in rows:
            if table in _KIND_OF:
                objects[_KIND_OF[table], key] = getattr(snapshot, table).get(key)
            elif table == _FOREIGN:
                foreign[key] = snapshot.foreign_by_provider.get(key, ())
        for name, pool in snapshot.node_pools.items():  # the journal leaves out their counts
            if self._pools.get(name) is not pool:
                objects["NodePool", name] = pool
        return Changes(snapshot.now, objects, foreign, facts, region)

    def accepted(self, snapshot: Snapshot, changes: Changes) -> None:
        """The recorder has these changes: the next ones are relative to them."""
        self._journal = snapshot.journal
        self._position = snapshot.journal.position if snapshot.journal is not None else 0
        self._facts.update(changes.facts)
        self._pools = dict(snapshot.node_pools)

    def _changed(self, snapshot: Snapshot) -> dict[str, Any]:
        found = dict[str, Any]()
        known, missing = self._facts, object()
        for name in _FACTS:
            value = getattr(snapshot, name)
            if value is known.get(name, missing):
                continue
            found[name] = dict(value) if type(value) in _MAPS and name not in _REPLACED else value
        return found
