"""Files that `kerf simulate` writes. They are checked before the runs, which may take long."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kerf.cli.arguments import Mistake
from kerf.cli.gathering.sources import STDIN, Source
from kerf.cli.manifests import regular

#: Open files of the process, such as /dev/stdout.
_STREAMS: Final = "/dev/"


def require_writable(files: Mapping[str, str], read: Iterable[str]) -> None:
    """Raise Mistake for a file that cannot be written, without a change to it.

    `files` has the names of files by their options; `read` are those of scenarios.
    """
    scenarios, seen = {os.path.realpath(name) for name in read}, dict[str, str]()
    for option, name in files.items():
        if not name or name.startswith(_STREAMS):
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


def write(option: str, name: str, text: Callable[[], str]) -> None:
    """Write the file of an option, if it is given. Raises Mistake."""
    if not name:
        return
    try:
        Source(name).write(text().encode())
    except OSError as error:
        raise Mistake(f"{option} {name}: {error.strerror or error}") from error
