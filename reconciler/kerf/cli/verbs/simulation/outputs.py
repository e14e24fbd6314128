"""Files that `kerf simulate` writes. They are checked before the runs, which may take long."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kerf.cli.arguments import Mistake
from kerf.cli.gathering.sources import OUTPUTS, STDIN, Source
from kerf.cli.reports import escaping
from kerf.manifests import regular

#: A device that is always full.
_FULL: Final = "/dev/full"


def require_writable(files: Mapping[str, str], read: Iterable[str]) -> None:
    """Raise Mistake for a file that cannot be written, without a change to it.

    `files` has the names of files by their options; `read` are those of scenarios.
    """
    scenarios, seen = {os.path.realpath(name) for name in read}, dict[str, str]()
    for option, name in files.items():
        if not name or name.startswith(OUTPUTS):
            continue
        real = os.path.realpath(name)
        if real in scenarios:
            raise Mistake(f"{option} {name}: SCENARIO reads the same file; give another")
        if real in seen:
            raise Mistake(f"{option} {name}: {seen[real]} writes the same file; give each its own")
        seen[real] = option
        try:
            _require(name, real)
        except OSError as error:
            raise Mistake(f"{option} {name}: {error.strerror or error}") from error


def _require(name: str, real: str) -> None:
    folder = os.path.dirname(real)
    if name == STDIN:
        raise OSError("standard output is not possible here; give a file")
    if os.path.isdir(real):
        raise OSError("it is a folder; give a file")
    if os.path.exists(real):
        regular.require(name, os.stat(real).st_mode)
    elif not os.path.isdir(folder):
        raise OSError(f"No such file or directory; create the folder {folder}")
    if not os.access(real if os.path.exists(real) else folder, os.W_OK):
        raise OSError("Permission denied; give a file that can be written")
    if not os.statvfs(folder).f_bavail:
        raise OSError("No space left on device; give a file on another one")


def require_output() -> None:
    """Raise Mistake if standard output has no space left."""
    try:
        number = sys.stdout.fileno()
        mode, full = os.fstat(number), os.stat(_FULL)
        left = mode.st_rdev != full.st_rdev and (not stat.S_ISREG(mode.st_mode) or os.fstatvfs(number).f_bavail)
    except OSError:  # of a stream without a file, and where there is no such device
        return
    if not left:
        raise Mistake("the output cannot be written: No space left on device; give another file")


def write(option: str, name: str, text: Callable[[], str]) -> bool:
    """Write the file of an option, if it is given. False after an error, which is printed: the runs are done."""
    if not name:
        return True
    try:
        Source(name).write(text().encode())
    except OSError as error:
        escaping.complain(
            f"kerf simulate: {option} {name}: {error.strerror or error}; the results are not in this file"
        )
        return False
    return True
