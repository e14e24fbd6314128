"""Put a new text in the place of a file: all of it or nothing, with the file's owner, mode, attributes and links.

The text is written to a file without a name where the file system has such files, so that a crash leaves none behind.
The name that a replacement needs exists for the moment between two system calls; a later run removes one that a crash
in that moment left.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from typing import Final

from kerf.manifests import regular

_PREFIX: Final = ".kerf-convert-"


def replace(path: str, before: bytes, after: bytes) -> None:
    """Replace the content of a regular file; a link stays, and its target is replaced.

    Raises:
        OSError: the file is left as it was; `strerror` has the cause and the fix.
    """
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    about = os.stat(real)
    regular.require(real, about.st_mode)
    if about.st_nlink > 1:
        raise _refused(
            f"the file has {about.st_nlink} hard links, which a replacement would part; remove the others", path
        )
    if about.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise _refused("the file has the setuid or setgid bit; remove it with chmod ug-s", path)
    if regular.read(real, len(before) + 1) != before:
        raise _refused("the file has changed since it was read; run the command again", path)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _remove_left(directory)
        _write(directory, name, real, about, after)
        os.fsync(directory)
    finally:
        os.close(directory)


def _refused(words: str, path: str) -> OSError:
    return OSError(errno.EPERM, words, path)


def _write(directory: int, name: str, real: str, about: os.stat_result, text: bytes) -> None:
    new = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    handle, named = _opened(directory, new)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(text)
        _keep(handle, real, about)
        os.fsync(handle)
        if not named:
            os.link(f"/proc/self/fd/{handle}", new, dst_dir_fd=directory, follow_symlinks=True)
            named = True
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        if named:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=directory)
        raise
    finally:
        os.close(handle)


def _opened(directory: int, name: str) -> tuple[int, bool]:
    """A new file to write, and whether it has a name already."""
    if hasattr(os, "O_TMPFILE") and os.path.exists("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=directory), False
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=directory), True


def _keep(handle: int, real: str, about: os.stat_result) -> None:
    """Give a new file the owner, the mode and the attributes of the old one. Raises OSError where it must not."""
    made = os.fstat(handle)
    if (made.st_uid, made.st_gid) != (about.st_uid, about.st_gid):
        try:
            os.fchown(handle, about.st_uid, about.st_gid)
        except PermissionError as error:
            owner = f"{about.st_uid}:{about.st_gid}"
            raise _refused(
                f"the owner {owner} of the file cannot be kept; run the command as that user", real
            ) from error
    os.fchmod(handle, stat.S_IMODE(about.st_mode))
    names = os.listxattr(real) if hasattr(os, "listxattr") else []
    for name in names:
        try:
            os.setxattr(handle, name, os.getxattr(real, name))
        except OSError as error:
            raise _refused(f"the attribute {name} of the file cannot be kept: {error.strerror}", real) from error


def _remove_left(directory: int) -> None:
    """Remove files of earlier runs that a crash ended."""
    for name in os.listdir(directory):
        process = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and process.isdecimal() and not os.path.exists(f"/proc/{int(process)}"):
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)
