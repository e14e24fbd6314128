"""The files of a record: a folder with bounds on bytes and age. One thread uses a Ring.

Each file is one part of the record (`kerf.records`), compressed, and readable without the others. When a bound is
exceeded, the oldest file is deleted. Only the owner may read a file (mode 0600).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from kerf.snapshots.files import packer

SUFFIX: Final = ".record"
_OWNER_ONLY: Final = 0o600
#: A part is closed when it has this share of the bytes, or of the age, of the whole record.
_SHARE: Final = 8


class TooLarge(Exception):
    """One part alone exceeds the bound."""


def parts(folder: Path) -> list[Path]:
    """The files of a record in their order. Raises OSError."""
    return sorted(one for one in folder.iterdir() if one.suffix == SUFFIX)


@dataclass(slots=True)
class Ring:
    """See the module. `most_bytes` and `longest` are the bounds; the fields with defaults are its own."""

    folder: Path
    most_bytes: int
    longest: timedelta
    _file: BinaryIO | None = None
    _path: Path | None = None
    _packer: zlib._Compress = field(default_factory=packer)
    _written: int = 0
    _began: datetime | None = None

    def due(self, now: datetime) -> bool:
        """Whether the current part, if there is one, is to be followed by another one."""
        if self._file is None or self._began is None:
            return True
        return self._written * _SHARE >= self.most_bytes or not self._young(now, self._began)

    def _young(self, now: datetime, began: datetime) -> bool:
        return timedelta(0) <= now - began < self.longest / _SHARE

    def begin(self, lines: Iterable[bytes], now: datetime) -> None:
        """Begin a part with these lines. Raises OSError, TooLarge."""
        self.close()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = self._next()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        self._file, self._packer, self._written, self._began = os.fdopen(descriptor, "wb"), packer(), 0, now
        self.write(lines)
        self.flush(now)

    def write(self, lines: Iterable[bytes]) -> None:
        """Add lines to the current part. Raises OSError, TooLarge."""
        for line in lines:
            self._put(self._packer.compress(line))

    def flush(self, now: datetime) -> None:
        """Bring all lines so far into the file, and keep the bounds. Raises OSError, TooLarge."""
        if self._file is not None:
            self._put(self._packer.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()
            self._trim(now)

    def close(self) -> None:
        """End the current part. Raises OSError."""
        if self._file is not None:
            file, self._file = self._file, None  # after an error as well: the next part has another file
            with file:
                file.write(self._packer.flush())

    def abandon(self) -> None:
        """Leave the current part as it is, after an error of the disk: its lines so far are readable."""
        with suppress(OSError):
            self.close()

    def _put(self, data: bytes) -> None:
        if self._file is None or not data:
            return
        self._file.write(data)
        self._written += len(data)
        if self._written > self.most_bytes:
            self._discard()
            raise TooLarge(f"one part of the record has more than {self.most_bytes:,} bytes")

    def _discard(self) -> None:
        """A part that nothing can follow is deleted: the bound applies to it too."""
        self.abandon()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _next(self) -> Path:
        numbers = [int(one.stem) for one in parts(self.folder) if one.stem.isdecimal()]
        return self.folder / f"{max(numbers, default=0) + 1:08d}{SUFFIX}"

    def _trim(self, now: datetime) -> None:
        total = 0
        for path, size, changed in self._newest_first():
            total += size
            if path != self._path and (total > self.most_bytes or now - changed > self.longest):
                path.unlink(missing_ok=True)

    def _newest_first(self) -> Iterator[tuple[Path, int, datetime]]:
        for path in reversed(parts(self.folder)):
            with suppress(FileNotFoundError):
                found = path.stat()
                yield path, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)
