"""Files that a verb saves for their owner alone, and those that it reads."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from kerf.cli.terminal import say

_OWNER_ONLY: Final = 0o600
_PIECE: Final = 256 * 1024


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, a few at a time: a part of a record, and a device, may be of any length. Raises OSError."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def write(output: str, data: Iterable[bytes]) -> None:
    """To standard output, a device, a pipe or a file, in pieces. Raises OSError, whose text names the file."""
    if output == "-":
        sys.stdout.buffer.writelines(data)
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder; name a file in it")
        if path.exists() and not path.is_file():  # a file must not take the place of a device
            with path.open("wb") as file:
                size = _written(file, data)
        else:
            size = _write_file(path, data)
    except OSError as error:
        raise OSError(f"{output}: {error.strerror or error}") from error
    say(f"{output}: {size:,} bytes", err=True)


def _written(file: BinaryIO, data: Iterable[bytes]) -> int:
    return sum(map(file.write, data))


def _write_file(path: Path, data: Iterable[bytes]) -> int:
    """To a file that only its owner may read, whole or not at all; the bytes. A link is replaced. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            size = _written(file, data)
            os.fchmod(file.fileno(), _OWNER_ONLY)
        Path(name).replace(path)
        return size
    except OSError:
        with suppress(OSError):
            Path(name).unlink()
        raise
