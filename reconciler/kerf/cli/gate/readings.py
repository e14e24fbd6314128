"""The objects of a cluster, listed again and again, and the views of them by the namespaces that a person may see.

AWS is not asked: instance types and prices are those that come with Kerf.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from kerf.cli.answering import cluster_files
from kerf.model import kinds
from kerf.model.settings import Settings
from kerf.runtime.observe import looking
from kerf.sandbox.clock import VirtualClock
from kerf.views.board import Board, board
from kerf.views.redaction import redacted

#: Views of different sets of namespaces that are kept of one reading.
MOST_VIEWS: Final = 16


class _Once:
    """Views that are made when they are first asked for."""

    def __init__(self, make: Callable[[], Board]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._made: Board | None = None

    def board(self) -> Board:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


@dataclass(slots=True)
class Reading:
    """The objects by kind as of a time, and the views that were made of them. Belongs to any thread."""

    objects: Mapping[str, Sequence[Any]]
    now: datetime
    settings: Settings
    #: Those that have pods.
    namespaces: frozenset[str] = field(init=False)
    _views: OrderedDict[frozenset[str] | None, _Once] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.namespaces = frozenset(one.metadata.namespace for one in self.objects.get(kinds.POD.name, ()))

    def seen(self, namespaces: frozenset[str] | None) -> Board:
        """The views with the pods of these namespaces (None: of all), made once; no request waits for other views."""
        with self._lock:
            found = self._views.get(namespaces)
            if found is None:
                found = self._views[namespaces] = _Once(partial(self._made, namespaces))
            self._views.move_to_end(namespaces)
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        return found.board()

    def _made(self, namespaces: frozenset[str] | None) -> Board:
        shown = self.objects if namespaces is None else redacted(self.objects, namespaces)
        files = cluster_files.without_bundle(cluster_files.ClusterFiles(shown))
        types = cluster_files.ShippedTypes.beside(self.objects)
        return board(looking.capture(files, types, self.settings, VirtualClock(self.now)).snapshot)


class Readings:
    """The latest reading; a thread replaces it. `report` receives the text of an error when it begins."""

    def __init__(
        self, kube: looking.Lists, settings: Settings, now: Callable[[], datetime], report: Callable[[str], None]
    ) -> None:
        self._kube, self._settings, self._now, self._report = kube, settings, now, report
        self._latest: Reading | None = None
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
        """End the thread after its current reading."""
        self._stopped.set()

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
        self._latest, self._error = Reading(found, now, self._settings), ""

    def _follow(self, every: float) -> None:
        self.read()
        while not self._stopped.wait(every):
            self.read()
