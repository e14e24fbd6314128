"""Files that a run writes, checked before it: a mistake must not cost the runs."""

from __future__ import annotations

import os

from kerf.cli.arguments import Mistake
from kerf.cli.gathering.sources import STDIN
from kerf.cli.manifests import regular


def require_writable(option: str, name: str) -> None:
    """Refuse a file that cannot be written, without a change to it. Raises Mistake."""
    try:
        _require(name)
    except OSError as error:
        raise Mistake(f"{option} {name}: {error.strerror or error}") from error


def _require(name: str) -> None:
    if name == STDIN:
        raise OSError("standard output is not possible here; give a file")
    if name.startswith("/dev/"):
        return  # /dev/stdout and the like are written as they are
    folder = os.path.dirname(name) or "."
    if os.path.lexists(name):
        regular.require(name, os.stat(name).st_mode)
        allowed = os.access(name, os.W_OK)
    else:
        os.stat(folder)
        allowed = os.path.isdir(folder) and os.access(folder, os.W_OK)
    if not allowed:
        raise OSError("no permission to write this file; give another")
