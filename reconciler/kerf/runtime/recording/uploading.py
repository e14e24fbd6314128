"""Copies of the record's files in a bucket, by a thread of their own.

The folder of the record is the queue, and has bounds. A complete part is uploaded at once, the current one once a
minute. An upload that fails is repeated with a growing pause; no decision waits for it. Each object is a whole part,
readable without the others. Its name has the time of its first decision and the process that wrote it, so leaders in
turn do not overwrite each other's parts. The bounds of bytes and age apply to all parts under the prefix. Only objects
with such a name are counted and deleted.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

from kerf.records.reading import Part
from kerf.runtime.recording.ring import SUFFIX, parts
from kerf.snapshots import files
from kerf.snapshots.reading import Unreadable

#: The name of an object: its first decision's time in UTC, its process, its number.
NAME: Final = re.compile(rf"([0-9]{{8}}T[0-9]{{12}})Z-[0-9A-Za-z]{{1,16}}-[0-9]{{1,12}}{re.escape(SUFFIX)}")
_TIME: Final = "%Y%m%dT%H%M%S%f"
#: Seconds: between two visits of the folder, two copies of the part that is being written, and after an error.
VISIT_SECONDS, OPEN_SECONDS = 5.0, 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
_CLOSE_SECONDS: Final = 5.0
_PIECE: Final = 64 * 1024


class Store(Protocol):
    """The objects under an address, by name; `kerf.aws.buckets.Bucket` is one. All methods raise PortError."""

    def put(self, name: str, data: bytes) -> None:
        """Create or replace an object."""

    def objects(self) -> Mapping[str, tuple[int, datetime]]:
        """The bytes of each object, and the store's time of its upload."""

    def delete(self, name: str) -> None:
        """Delete an object."""


def kept(
    stored: Mapping[str, tuple[int, datetime]], new: Mapping[str, int], most_bytes: int, longest: timedelta
) -> set[str]:
    """The names within the bounds: new ones, then stored ones, the latest upload first. The first is always kept.

    The store's times of uploads decide, not those of the names: the clock of a controller can be wrong.
    """
    old = {name: one for name, one in stored.items() if NAME.fullmatch(name) and name not in new}
    latest = max((at for _, at in old.values()), default=None)
    young = [name for name, (_, at) in old.items() if latest is None or latest - at <= longest]
    names = [*reversed([*new]), *sorted(young, key=lambda name: (old[name][1], name), reverse=True)]
    found: set[str] = set()
    total = 0
    for name in names:
        total += new[name] if name in new else old[name][0]
        if found and total > most_bytes:
            break
        found.add(name)
    return found


class Uploader:
    """See the module. `on_error` gets each error; the thread of the uploader calls it."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        most_bytes: int,
        longest: timedelta,
        on_error: Callable[[Exception], None],
        visit: float = VISIT_SECONDS,
    ) -> None:
        """`most_bytes` and `longest` are the bounds of all parts in the store; `visit`: seconds between two visits."""
        self._folder, self._store, self._on_error, self._visit = folder, store, on_error, visit
        self._bounds = most_bytes, longest
        #: The bytes of each file that the store has, or does not need; the time of the last copy of the newest file.
        self._done: dict[Path, int] = {}
        self._copied = 0.0
        #: Whether old objects are still to be deleted, after an error.
        self._overdue = False
        #: The latest error, as long as it lasts. Other threads read it.
        self.error: Exception | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="uploader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Upload the rest, but for a few seconds at most."""
        self._ending.set()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        ending = False
        while not ending:
            ending = self._ending.wait(self._visit if self.error is None else pause)
            pause = min(2 * pause, _LONGEST_PAUSE) if self.error is not None else _FIRST_PAUSE
            try:
                if self._round(whole=ending):
                    self.error = None
            except Exception as error:
                self.error = error
                self._on_error(error)

    def _round(self, *, whole: bool) -> bool:
        """Upload the files that changed, and apply the bounds; `whole`: the newest file, too.

        Returns whether there was anything to do. Raises PortError, OSError.
        """
        found = {name: (path, size) for path, size in self._changed(whole=whole) if (name := _name(path))}
        if not found and not self._overdue:
            return False
        stored = self._store.objects()
        new = {name: size for name, (_, size) in found.items() if name not in stored or stored[name][0] != size}
        keep = kept(stored, new, *self._bounds)
        for name, (path, size) in found.items():
            with suppress(FileNotFoundError):  # the ring has deleted the oldest file meanwhile
                if name in keep and name in new:
                    self._store.put(name, path.read_bytes())
            self._done[path] = size
        if found:
            self._copied = monotonic()
        self._overdue = True
        for name in sorted(stored):
            if NAME.fullmatch(name) and name not in keep:
                self._store.delete(name)
        self._overdue = False
        return True

    def _changed(self, *, whole: bool) -> Iterator[tuple[Path, int]]:
        """Files with their bytes that the store may not have yet. Raises OSError."""
        found = parts(self._folder) if self._folder.is_dir() else []
        self._done = {path: size for path, size in self._done.items() if path in found}
        for path in found:
            with suppress(FileNotFoundError):
                size = path.stat().st_size
                waits = path == found[-1] and not whole and monotonic() - self._copied < OPEN_SECONDS
                if self._done.get(path) != size and not waits:
                    yield path, size


def _name(path: Path) -> str:
    """The name of a part's object; empty when its header is not complete, or it is deleted, or cannot be read."""
    part = Part()
    try:
        with path.open("rb") as file:
            began = part.head(files.lines(iter(partial(file.read, _PIECE), b""), lambda: None))
    except (Unreadable, OSError):  # one file of another user must not keep the others from the bucket
        return ""
    run = part.start.run if part.start is not None else ""
    name = f"{began.astimezone(UTC).strftime(_TIME)}Z-{run}-{path.stem}{SUFFIX}"
    return name if NAME.fullmatch(name) else ""
