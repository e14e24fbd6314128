"""Read and write regular files only: a FIFO would block for ever, and a device may never end."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)


def read(path: str, most: int) -> bytes:
    """Return at most `most` bytes of a regular file. Raises OSError, also for a file that is not regular."""
    require(path, os.stat(path).st_mode)
    # Another process may replace the file meanwhile: the open must not block, and the opened file counts.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(handle, "rb") as file:
        require(path, os.fstat(handle).st_mode)
        return file.read(most)


def write(path: str, data: bytes) -> None:
    """Write a regular file, a new one or over an old one. Raises OSError, also for a file that is not regular."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
    with open(handle, "wb") as file:
        require(path, os.fstat(handle).st_mode)
        file.truncate()
        file.write(data)


def require(path: str, mode: int) -> None:
    """Raise OSError for the mode of a file that is not regular."""
    if not stat.S_ISREG(mode):
        kind = next((words for test, words in _KINDS if test(mode)), "a special file")
        raise OSError(errno.EINVAL, f"this is {kind}; give a regular file", path)
