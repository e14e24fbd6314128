"""The launch marks of the NodeClaims that are there, checked when a NodeClaim or the keys change.

A NodeClaim may bear a launch group that no mark covers: an earlier version of Kerf wrote it, the key is lost, or it is
not Kerf's. Each is doubted from when it was first seen, or from when this process last stood by: until then a process
of an earlier version may have launched for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from kerf.model.aws.launch_marks import LaunchMark
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

_COVERED = (labels.LAUNCH_GROUP, labels.LAUNCH_REQUEST, labels.LAUNCH_MARK)


class Marks:
    """One thread uses it; any thread may ask `earlier_key_in_use`."""

    def __init__(self, keys: LaunchKeys) -> None:
        self._keys, self._version = keys, keys.version
        self._table: dict[str, LaunchMark] = {}
        self._by_earlier_key: set[str] = set()
        #: The version of the keys by which all NodeClaims have been checked; None before all are known.
        self._all_checked: int | None = None
        #: A copy of the table for snapshots; None when it has changed since.
        self._shown: dict[str, LaunchMark] | None = None
        self._stood_by: datetime | None = None

    @property
    def earlier_key_in_use(self) -> bool:
        """Whether a NodeClaim bears a mark by an earlier key, or may: not all have been checked by the present keys."""
        return self._all_checked != self._keys.version or bool(self._by_earlier_key)

    def noticed(self, old: NodeClaim | None, new: NodeClaim | None, now: datetime) -> None:
        """Take in a NodeClaim that came, changed or went."""
        if new is None:
            if old is not None:
                self._put(old.name, None, False)
        elif old is None or _covered(old) != _covered(new):
            self._check(old, new, now)

    def _check(self, old: NodeClaim | None, claim: NodeClaim, now: datetime) -> None:
        notes = claim.metadata.annotations
        if not notes.get(labels.LAUNCH_GROUP):
            self._put(claim.name, None, False)
            return
        found, known = self._keys.check(claim.metadata.uid, notes), self._table.get(claim.name)
        since = None if found.group else now
        if since is not None and known is not None and old is not None and _group(old) == _group(claim):
            since = known.doubted_since or now
        self._put(claim.name, LaunchMark(found.group, found.request, since), found.earlier_key)

    def _put(self, name: str, mark: LaunchMark | None, earlier_key: bool) -> None:
        if mark is None:
            self._table.pop(name, None)
        else:
            self._table[name] = mark
        (self._by_earlier_key.add if earlier_key else self._by_earlier_key.discard)(name)
        self._shown = None

    def stand_by(self, now: datetime) -> None:
        """Another process acts, or may: it may launch until now for a group that is doubted here."""
        self._stood_by = now

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: doubts are as old as they were."""
        self._stood_by = None if self._stood_by is None else self._stood_by - by
        for name, mark in self._table.items():
            if mark.doubted_since is not None:
                self._table[name] = replace(mark, doubted_since=mark.doubted_since - by)
        self._shown = None

    def at(self, claims: Mapping[str, NodeClaim], now: datetime) -> Mapping[str, LaunchMark]:
        """By name of the NodeClaims that bear a launch group. `claims` are all that are there."""
        if self._version != self._keys.version:
            self._version = self._keys.version
            for claim in claims.values():
                self._check(claim, claim, now)
        self._all_checked = self._version
        if self._stood_by is not None:
            self._doubt_from(self._stood_by)
            self._stood_by = None
        if self._shown is None:
            self._shown = dict(self._table)
        return self._shown

    def _doubt_from(self, instant: datetime) -> None:
        for name, mark in self._table.items():
            if mark.doubted_since is not None and mark.doubted_since < instant:
                self._table[name] = replace(mark, doubted_since=instant)
                self._shown = None


def _covered(claim: NodeClaim) -> tuple[str | None, ...]:
    return (claim.metadata.uid, *(claim.metadata.annotations.get(key) for key in _COVERED))


def _group(claim: NodeClaim) -> tuple[str, str]:
    return claim.metadata.uid, claim.metadata.annotations.get(labels.LAUNCH_GROUP, "")
