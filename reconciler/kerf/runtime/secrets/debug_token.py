"""The token of the debug port: only a process that can read its file is answered.

The port listens on the loopback address. On the network of a node (`hostNetwork`) every process of the node reaches
that address, so it is no protection. The controller writes the file at start, readable for its own user only.
`kerf status` and `kerf debug`, run in the same container, read it.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

#: A token is one short line.
_LONGEST: Final = 4096


def path(port: int, given: str = "") -> Path:
    """The file of the token of a port: as given, else in the folder for temporary files."""
    return Path(given) if given else Path(tempfile.gettempdir()) / f"kerf-debug-{port}.token"


def make() -> str:
    return secrets.token_urlsafe(32)


def write(file: Path, token: str) -> None:
    """Replace the file by one with this token, mode 0600. Raises OSError, also when the file is another user's."""
    with suppress(FileNotFoundError):
        file.unlink()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as out:
        out.write(f"{token}\n")


def read(file: Path) -> str:
    """The token of a file. Raises OSError; ValueError when the file is not a regular one, too large, or holds none."""
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as content:
        if not stat.S_ISREG(os.fstat(content.fileno()).st_mode):
            raise ValueError(f"{file}: is not a regular file")
        found = content.read(_LONGEST + 1)
    if len(found) > _LONGEST or not found.strip() or not found.isascii():
        raise ValueError(f"{file}: contains no token: expected is one line of ASCII of at most {_LONGEST} bytes")
    return found.strip().decode()
