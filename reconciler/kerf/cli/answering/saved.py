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
    """To a file that only its owner may read, whole or not at all. Raises OSError."""
    if output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = Path(output)
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
    say(f"{output}: {len(data):,} bytes", err=True)
