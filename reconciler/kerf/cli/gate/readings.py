"""The objects of a cluster, listed again and again.

AWS is not asked: instance types and prices are those that come with Kerf.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kerf.cli.answering import cluster_files
from kerf.cli.gate.kept_views import KeptViews
from kerf.model import kinds
from kerf.model.settings import Settings
from kerf.runtime.observe import looking
from kerf.sandbox.clock import VirtualClock
from kerf.views.board import Board, board
from kerf.views.redaction import redacted


@dataclass(frozen=True, slots=True)
class Reading:
    """The objects by kind as of a time. `namespaces` are those that have pods."""

    objects: Mapping[str, Sequence[Any]]
    now: datetime
    settings: Settings
    namespaces: frozenset[str]

    @classmethod
    def of(cls, objects: Mapping[str, Sequence[Any]], now: datetime, settings: Settings) -> Reading:
        """With the namespaces of its pods."""
        spaces = frozenset(one.metadata.namespace for one in objects.get(kinds.POD.name, ()))
        return cls(objects, now, settings, spaces)

    def board(self, namespaces: frozenset[str] | None) -> Board:
        """The views with the names of pods of these namespaces; None: of all."""
        shown = self.objects if namespaces is None else redacted(self.objects, namespaces)
        files = cluster_files.without_bundle(cluster_files.ClusterFiles(shown))
        types = cluster_files.ShippedTypes.beside(self.objects)
        return board(looking.capture(files, types, self.settings, VirtualClock(self.now)).snapshot)


class Readings:
    """The latest reading; a thread replaces it. `report` receives the text of an error when it begins."""

    def __init__(
        self,
        kube: looking.Lists,
        settings: Settings,
        now: Callable[[], datetime],
        report: Callable[[str], None],
        timed: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._kube, self._settings, self._now, self._report = kube, settings, now, report
        self._latest: Reading | None = None
        #: The views of each person's namespaces.
        self.views: Final = KeptViews(timed=timed)
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
        now = self._now()
        try:
            found = {kind.name: self._kube.list(kind).items for kind in kinds.watched(self._settings)}
        except Exception as error:  # the thread must not end, or the page would stay old without a word
            if not self._error:
                self._report(f"the cluster cannot be read: {error}")
            self._error = str(error) or type(error).__name__
            return
        self._latest, self._error = Reading.of(found, now, self._settings), ""
        self.views.follow(self._latest)

    def _follow(self, every: float) -> None:
        self.read()
        while not self._stopped.wait(every):
            self.read()
