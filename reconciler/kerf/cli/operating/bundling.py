"""The files of a support bundle, and the archive with them."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from kerf.cli.operating import debug_port
from kerf.runtime.recording.software import software
from kerf.runtime.settings.settings import SettingsError, effective
from kerf.snapshots import files, reading

CONTENTS: Final = "contents.txt"
_OWNER_ONLY: Final = 0o600
#: Of gzip: the large files are compressed already.
_LEVEL: Final = 1
#: A user and a password in an address.
_CREDENTIALS: Final = re.compile(r"//[^/@\s]*@")


#: A part of the record: the bytes that it had, and the open file, whose space remains until it is closed.
Opened = tuple[int, BinaryIO]
Listed = Callable[[str], Sequence[Path]]


@dataclass(slots=True)
class Bundle:
    """Files by name. `missing` are those that could not be had, with the reason.

    The files of the record are opened, not read: a command in the controller's pod must not need memory for all of it.
    """

    files: dict[str, bytes | Opened] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, make: Callable[[], bytes]) -> None:
        """Add a file, or the reason why there is none."""
        try:
            self.files[name] = make()
        except (debug_port.Silent, OSError, ValueError, reading.Unreadable) as error:
            self.missing[name] = (str(error).splitlines() or [type(error).__name__])[0]

    def contents(self) -> str:
        """A line for each file, and for each that is missing."""
        rows = [f"{name}  {_length(data):,} bytes" for name, data in self.files.items()]
        return "\n".join([*rows, *(f"{name}  missing: {reason}" for name, reason in self.missing.items())]) + "\n"

    def archive(self) -> Iterator[bytes]:
        """The archive (tar, gzip), a file at a time. Its files are for their owner alone. Raises OSError."""
        found = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=found, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            for name, data in {CONTENTS: self.contents().encode(), **self.files}.items():
                one = tarfile.TarInfo(f"kerf-bundle/{name}")
                one.size, one.mode = _length(data), _OWNER_ONLY
                with io.BytesIO(data) if isinstance(data, bytes) else data[1] as file:
                    tar.addfile(one, file)
                yield _taken(found)
        yield _taken(found)


def _length(data: bytes | Opened) -> int:
    return len(data) if isinstance(data, bytes) else data[0]


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
    return _json([{name: _CREDENTIALS.sub("//", str(text)) for name, text in row.items()} for row in rows])


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
    for path in found:
        try:
            bundle.files[f"record/{path.name}"] = _opened(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            bundle.missing[f"record/{path.name}"] = error.strerror or str(error)


def _opened(path: Path) -> Opened:
    """A file, but for a link, which could lead to any file of the pod. Raises OSError."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        file.close()
        raise OSError("it is no file of a record")
    return found.st_size, file
