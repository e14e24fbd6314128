"""Files that a verb saves for their owner alone."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from kerf.cli.terminal import say

_OWNER_ONLY: Final = 0o600


def write(output: str, data: bytes) -> None:
    """To standard output, a device, a pipe or a file. Raises OSError, whose text names the file."""
    if output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder; name a file in it")
        if path.exists() and not path.is_file():  # a file must not take the place of a device
            path.write_bytes(data)
        else:
            _write_file(path, data)
    except OSError as error:
        raise OSError(f"{output}: {error.strerror or error}") from error
    say(f"{output}: {len(data):,} bytes", err=True)


def _write_file(path: Path, data: bytes) -> None:
    """To a file that only its owner may read, whole or not at all. A link is replaced. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), _OWNER_ONLY)
        Path(name).replace(path)
    except OSError:
        with suppress(OSError):
            Path(name).unlink()
        raise
