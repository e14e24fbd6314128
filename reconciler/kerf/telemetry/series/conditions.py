"""The conditions of all objects as gauges, base of the alerts on Ready: kept as objects change, written when scraped.

Of 5,000 node claims all conditions, with their ages, are 60,000 series, nearly all of which say that nothing is wrong.
So unless everything is asked for, of kinds of which there are thousands each object has only Ready (of nodes not
even that), and the rest, with ages, of those that are not as they end up: of the 500 that have been so for longest.
Each object's lines are kept as text, and a scrape writes only those that changed. Source: operations reference §2.10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import compress, islice
from typing import Any

from kerf.telemetry.catalogue.listed_libraries import MANY, WITH_CONDITIONS
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, at_once, in_steps
from kerf.telemetry.series.exposition import head, line
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta

#: So many objects of a kind are reported in full; the others are not as they end up either, but no longer than these.
MOST = 500
_COMMON = ("namespace", "name", "type", "status", "reason")
_READY = "Ready"
#: Of a node claim that has all its steps behind it; whether it may be consolidated comes and goes.
_SETTLED = frozenset({_READY, "Launched", "Registered", "Initialized", "ConsistentStateFound"})
_COMES_AND_GOES = "Consolidatable"
#: Objects whose lines are written in one step: about a millisecond.
_STEP = 20
_Row = tuple[str, ...]
_Address = tuple[str, str]


class _Lines:
    """One object's rows, since when each is so, which of them are reported without details, since when it is on
    its way out; and the text of its lines, and of the one of Ready, once they were asked for."""

    __slots__ = ("address", "deleting", "deviant", "own", "ready", "rows", "since", "text")

    def __init__(self, kind: str, meta: ObjectMeta, value: Any) -> None:
        conditions, self.own = value.status.conditions, _own_labels(kind, value)
        self.address = (meta.namespace, meta.name)
        self.rows = tuple((*self.address, c.type, c.status, c.reason, *self.own) for c in conditions)
        self.since: tuple[datetime | None, ...] = tuple(c.last_transition_time for c in conditions)
        self.deviant = tuple(not _as_it_ends_up(kind, c.type, c.status) for c in conditions)
        self.deleting = meta.deletion_timestamp
        self.text = self.ready = ""

    @property
    def sound(self) -> bool:
        return self.deleting is None and not any(self.deviant)

    def same(self, other: _Lines) -> bool:
        return (self.rows, self.since, self.deleting) == (other.rows, other.since, other.deleting)


class ConditionGauges:
    """`see` belongs to the loop's thread, `text` to any. With `everything` no condition of any object is left out."""

    def __init__(self, *, everything: bool = False) -> None:
        self._everything = everything
        self._lines: dict[str, dict[_Address, _Lines]] = {kind: {} for kind in WITH_CONDITIONS}
        #: Those that are not sound, the longest first.
        self._unsound: dict[str, dict[_Address, _Lines]] = {kind: {} for kind in WITH_CONDITIONS}

    def see(self, kind: str, meta: ObjectMeta, value: Any | None) -> None:
        """The object of these metadata is as it is now, or (None) there no more. `kind` as metrics spell it."""
        address = (meta.namespace, meta.name)
        if value is None:
            self._lines[kind].pop(address, None)
            self._unsound[kind].pop(address, None)
            return
        fresh, known = _Lines(kind, meta, value), self._lines[kind].get(address)
        if known is not None and known.same(fresh):
            return
        self._lines[kind][address] = fresh
        if fresh.sound:
            self._unsound[kind].pop(address, None)
        else:
            self._unsound[kind][address] = fresh

    def text(self, now: datetime, give_way: GiveWay = at_once) -> bytes:
        """All of them in Prometheus' text format."""
        return "".join(part for kind in WITH_CONDITIONS for part in self._written(kind, now, give_way)).encode()

    def _written(self, kind: str, now: datetime, give_way: GiveWay) -> Iterator[str]:
        all_, unsound = list(self._lines[kind].values()), list(islice(list(self._unsound[kind].values()), MOST))
        whole = self._everything or kind not in MANY
        yield from self._counts(kind, all_, frozenset(map(id, unsound)), whole, give_way)
        told = all_ if whole else unsound
        yield from _ages(kind, told, whole, now, give_way)
        yield from _ends(kind, told, now, give_way)

    def _counts(
        self, kind: str, all_: Iterable[_Lines], unsound: frozenset[int], whole: bool, give_way: GiveWay
    ) -> Iterator[str]:
        name, names = f"operator_{kind}_status_condition_count", _names(kind)
        yield head(name, METRICS[name].about)
        for lines in in_steps(all_, give_way, _STEP):
            if whole or id(lines) in unsound:
                if not lines.text:
                    told = (
                        whole or deviant or row[2] == _READY
                        for row, deviant in zip(lines.rows, lines.deviant, strict=True)
                    )
                    lines.text = _ones(name, names, compress(lines.rows, told))
                yield lines.text
            elif kind == "nodeclaim":
                lines.ready = lines.ready or _ones(name, names, (row for row in lines.rows if row[2] == _READY))
                yield lines.ready


def _ones(name: str, names: tuple[str, ...], rows: Iterable[_Row]) -> str:
    return "".join(line(name, zip(names, row, strict=True), 1) for row in rows)


def _ages(kind: str, told: Iterable[_Lines], whole: bool, now: datetime, give_way: GiveWay) -> Iterator[str]:
    name, names = f"operator_{kind}_status_condition_current_status_seconds", _names(kind)
    yield head(name, METRICS[name].about)
    for lines in in_steps(told, give_way, _STEP):
        for row, since, deviant in zip(lines.rows, lines.since, lines.deviant, strict=True):
            if since is not None and (whole or deviant):
                yield line(name, zip(names, row, strict=True), _seconds(since, now))


def _ends(kind: str, told: Iterable[_Lines], now: datetime, give_way: GiveWay) -> Iterator[str]:
    name = f"operator_{kind}_termination_current_time_seconds"
    names = METRICS[name].labels
    yield head(name, METRICS[name].about)
    for lines in in_steps(told, give_way, _STEP):
        if lines.deleting is not None:
            yield line(name, zip(names, (*lines.address, *lines.own), strict=True), _seconds(lines.deleting, now))


def _names(kind: str) -> tuple[str, ...]:
    return (*_COMMON, *WITH_CONDITIONS[kind].split())


def _seconds(since: datetime, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)


def _as_it_ends_up(kind: str, type_: str, status: str) -> bool:
    """Whether a condition says nothing of interest, of kinds of which there are thousands."""
    if kind == "node":  # Ready, KernelReady, …; MemoryPressure, NetworkUnavailable, …
        return status == ("True" if type_.endswith(_READY) else "False")
    return type_ == _COMES_AND_GOES or (type_ in _SETTLED and status == "True")


def _own_labels(kind: str, value: Any) -> _Row:
    own = value.metadata.labels
    if kind == "nodeclaim":
        return own.get(labels.NODEPOOL, ""), value.spec.node_class_ref.name
    if kind == "node":
        return own.get(labels.NODEPOOL, ""), own.get(labels.NODECLASS, ""), own.get(labels.INITIALIZED, "")
    return ()
