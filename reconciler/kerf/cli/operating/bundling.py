"""The files of a support bundle, and the archive with them."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from kerf.cli.operating import debug_port
from kerf.runtime.recording.software import software
from kerf.runtime.settings.settings import SettingsError, effective
from kerf.snapshots import files, reading
from kerf_api.texts import without_credentials

CONTENTS: Final = "contents.txt"
_OWNER_ONLY: Final = 0o600
#: Of gzip: the large files are compressed already.
_LEVEL: Final = 1

#: So many parts of the record are open at once, the oldest first: a deleted file remains readable while it is open.
MOST_OPEN: Final = 64
Listed = Callable[[str], Sequence[Path]]


@dataclass(slots=True)
class Bundle:
    """Files by name. `missing` are those that could not be had, with the reason; it is complete after `archive`.

    The files of the record are opened, not read: a command in the controller's pod must not need memory for all of it.
    A record may have more files than a process may open, so that later ones are opened when earlier ones are written.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    record: deque[Path] = field(default_factory=deque)
    _opened: deque[tuple[Path, int, BinaryIO]] = field(default_factory=deque)
    _written: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, make: Callable[[], bytes]) -> None:
        """Add a file, or the reason why there is none."""
        try:
            self.files[name] = make()
        except (debug_port.Silent, OSError, ValueError, reading.Unreadable) as error:
            self.missing[name] = (str(error).splitlines() or [type(error).__name__])[0]

    def open(self) -> None:
        """Open files of the record, as many as may be open."""
        while self.record and len(self._opened) < MOST_OPEN:
            path = self.record.popleft()
            try:
                self._opened.append((path, *_opened(path)))
            except FileNotFoundError:  # the controller has deleted it meanwhile, as its bounds ask for
                continue
            except OSError as error:
                self.missing[_name(path)] = error.strerror or str(error)

    def contents(self) -> str:
        """A line for each file, and for each that is missing. The record's are known after `archive`."""
        sizes = {name: len(data) for name, data in self.files.items()} | self._written
        rows = [f"{name}  {size:,} bytes" for name, size in sizes.items()]
        return "\n".join([*rows, *(f"{name}  missing: {reason}" for name, reason in self.missing.items())]) + "\n"

    def archive(self) -> Iterator[bytes]:
        """The archive (tar, gzip), a file at a time. Its files are for their owner alone. Raises OSError."""
        found = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=found, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            for name, data in self.files.items():
                tar.addfile(_member(name, len(data)), io.BytesIO(data))
                yield _taken(found)
            while self._opened:
                path, size, file = self._opened.popleft()
                with file:
                    tar.addfile(_member(_name(path), size), file)
                self._written[_name(path)] = size
                self.open()
                yield _taken(found)
            contents = self.contents().encode()
            tar.addfile(_member(CONTENTS, len(contents)), io.BytesIO(contents))
        yield _taken(found)


def _name(path: Path) -> str:
    return f"record/{path.name}"


def _member(name: str, size: int) -> tarfile.TarInfo:
    one = tarfile.TarInfo(f"kerf-bundle/{name}")
    one.size, one.mode = size, _OWNER_ONLY
    return one


def _taken(found: io.BytesIO) -> bytes:
    """The bytes so far, which leave the buffer."""
    data = found.getvalue()
    found.seek(0)
    found.truncate()
    return data


def gathered(url: str, folder: str, environment: Mapping[str, str], listed: Listed) -> Bundle:
    """What this pod, or the debug port at `url`, has. `folder` is that of the record; empty: there is none. `listed`
    returns its files, and raises OSError."""
    bundle = Bundle()
    bundle.add("versions.json", lambda: _json(software()))
    bundle.add("settings.json", lambda: _settings(environment))
    bundle.add("status.json", lambda: _json(json.loads(debug_port.ask(url, "/status"))))
    bundle.add("cluster.snapshot", lambda: _snapshot(url))
    _record(folder, bundle, listed)
    return bundle


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _settings(environment: Mapping[str, str]) -> bytes:
    """Raises ValueError."""
    try:
        rows = [asdict(row) for row in effective([], environment)]
    except SettingsError as error:
        raise ValueError(f"no settings of a controller are here: {error.problems[0]}") from error
    return _json([{name: without_credentials(str(text)) for name, text in row.items()} for row in rows])


def _snapshot(url: str) -> bytes:
    """Raises Silent, Unreadable."""
    data = debug_port.ask(url, "/debug/snapshot", seconds=60)
    reading.read(files.lines(data))  # another program may listen there
    return data


def _record(folder: str, bundle: Bundle, listed: Listed) -> None:
    """Add the record's files. The controller may delete the oldest one meanwhile, and writes the newest one."""
    if not folder:
        bundle.missing["record"] = "RECORD_FOLDER names no folder: the recorder is off"
        return
    try:
        found = listed(folder)
    except OSError as error:
        bundle.missing["record"] = f"{folder}: {error.strerror or error}"
        return
    bundle.record.extend(found)
    bundle.open()


def _opened(path: Path) -> tuple[int, BinaryIO]:
    """The bytes of a file, and the open file. A link could lead to any file of the pod. Raises OSError."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise OSError("this is not a file of a record")
    return found.st_size, file
