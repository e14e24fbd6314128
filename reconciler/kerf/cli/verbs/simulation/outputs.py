"""Files that `kerf simulate` writes. They are checked before the runs, which may take long."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from kerf.cli.arguments import Mistake
from kerf.cli.gathering.sources import Source


def require_writable(files: Mapping[str, str]) -> None:
    """Raise Mistake for a file that cannot be written. `files` has the names of files by their options."""
    seen: dict[str, str] = {}
    for option, name in files.items():
        if not name:
            continue
        real = os.path.realpath(name)
        if real in seen:
            raise Mistake(f"{option} {name}: {seen[real]} writes the same file; give each its own")
        seen[real] = option
        folder = os.path.dirname(real)
        if os.path.isdir(real):
            raise Mistake(f"{option} {name}: it is a folder; give a file")
        if not os.path.isdir(folder):
            raise Mistake(f"{option} {name}: No such file or directory; create the folder {folder}")
        if not os.access(real if os.path.exists(real) else folder, os.W_OK):
            raise Mistake(f"{option} {name}: Permission denied; give a file that can be written")


def write(option: str, name: str, text: Callable[[], str]) -> None:
    """Write the file of an option, if it is given. Raises Mistake."""
    if not name:
        return
    try:
        Source(name).write(text().encode())
    except OSError as error:
        raise Mistake(f"{option} {name}: {error.strerror or error}") from error
