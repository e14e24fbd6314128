"""The objects of a cluster, listed again and again.

AWS is not asked: instance types and prices are those that are part of Kerf.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kerf.cli.answering import cluster_files
from kerf.cli.gate.kept_views import KeptViews
from kerf.model import kinds
from kerf.model.settings import Settings
from kerf.runtime.observe import looking
from kerf.sandbox.clock import VirtualClock
from kerf.scheduling.facts.nodes import Needs
from kerf.views.board import Board, board
from kerf.views.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Reading:
    """The objects by kind as of a time. `namespaces` are those that have pods.

    `redaction` and `needs` are shared by all views of the reading.
    """

    objects: Mapping[str, Sequence[Any]]
    now: datetime
    settings: Settings
    namespaces: frozenset[str]
    redaction: Redaction
    needs: Needs

    @classmethod
    def of(cls, objects: Mapping[str, Sequence[Any]], now: datetime, settings: Settings) -> Reading:
        """With the namespaces of its pods."""
        spaces = frozenset(one.metadata.namespace for one in objects.get(kinds.POD.name, ()))
        objects = cluster_files.without_bundle(cluster_files.ClusterFiles(objects)).objects
        return cls(objects, now, settings, spaces, Redaction(objects), Needs())

    def board(self, namespaces: frozenset[str] | None) -> Board:
        """The views with the names of pods of these namespaces; None: of all."""
        files = cluster_files.ClusterFiles(self.objects if namespaces is None else self.redaction.shown(namespaces))
        types = cluster_files.ShippedTypes.beside(self.objects)
        snapshot = looking.capture(files, types, self.settings, VirtualClock(self.now)).snapshot
        return board(snapshot, needs=self.needs)


#: The background work of the page, by which its failures are counted.
READING, VIEWS = "reading", "views"


@dataclass(frozen=True, slots=True)
class Watch:
    """Receivers of the background work: the text of a failure when it begins, the work of each failure (READING or
    VIEWS), and the seconds that the views of one set of namespaces took."""

    report: Callable[[str], None]
    failed: Callable[[str], None] = lambda work: None
    timed: Callable[[float], None] = lambda seconds: None


class Readings:
    """The latest reading; a thread replaces it."""

    def __init__(
        self,
        kube: looking.Lists,
        settings: Settings,
        now: Callable[[], datetime],
        watch: Watch,
    ) -> None:
        self._kube, self._settings, self._now, self._watch = kube, settings, now, watch
        self._latest: Reading | None = None
        #: The views of each person's namespaces.
        self.views: Final = KeptViews(timed=watch.timed, failed=self._views_failed)
        self._error = ""
        self._stopped = threading.Event()

    @property
    def latest(self) -> Reading | None:
        """None before the first reading."""
        return self._latest

    @property
    def failing(self) -> bool:
        """Whether the latest attempt has failed."""
        return bool(self._error)

    def start(self, every: float) -> None:
        """Read now and every so many seconds, in a thread."""
        threading.Thread(target=self._follow, args=(every,), name="readings", daemon=True).start()

    def stop(self) -> None:
        """End the thread after its current reading, and begin no more views."""
        self._stopped.set()
        self.views.stop()

    def read(self) -> None:
        """List every kind once. After an error the earlier reading stays."""
        try:
            now = self._now()
            found = {kind.name: self._kube.list(kind).items for kind in kinds.watched(self._settings)}
            reading = Reading.of(found, now, self._settings)
            self.views.follow(reading, len(found.get(kinds.POD.name, ())))
            self._latest, self._error = reading, ""
        except Exception as error:  # the thread must not end, or the page would stay old without a word
            known, self._error = self._error, str(error) or type(error).__name__
            self._failed(READING, "" if known else f"the cluster cannot be read: {self._error}")

    def _views_failed(self, error: BaseException, known: bool) -> None:
        text = f"the views cannot be made: {type(error).__name__}: {error}; this is a bug of Kerf"
        self._failed(VIEWS, "" if known else text)

    def _failed(self, work: str, text: str) -> None:
        """Count a failure, and report its text if there is one."""
        with suppress(Exception):  # a closed standard error ends no thread
            self._watch.failed(work)
            if text:
                self._watch.report(text)

    def _follow(self, every: float) -> None:
        self.read()
        while not self._stopped.wait(every):
            self.read()
