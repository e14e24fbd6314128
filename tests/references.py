"""Places that a document names: a file and a definition in it, as in `runtime/controller.py:Controller.tick`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from tests.mutations.edits import Sources
from tests.sources import ROOT

#: The folder from which files are named; others are named from the root.
HOME: Final = "reconciler/kerf"
_NAMED: Final = re.compile(r"`([\w/]+\.py)(?::([\w.]+))?`")


def named(text: str) -> list[tuple[str, str]]:
    """The files that a text names in backticks, each with its definition; "" for a file alone."""
    return _NAMED.findall(text)


def missing(text: str) -> Iterator[str]:
    """Those of a text that are not there."""
    for file, definition in named(text):
        place = f"{file}:{definition}" if definition else file
        if not exists(place):
            yield place


def exists(place: str) -> bool:
    """Whether there is such a file or folder, and in the file such a definition."""
    name, _, definition = place.partition(":")
    found = next((one for one in (f"{HOME}/{name}", name) if (ROOT / one).exists()), None)
    return found is not None and (not definition or _defines(found, definition))


def _defines(file: str, definition: str) -> bool:
    folder = str(PurePosixPath(file).parent)
    return any(found == file for found, _ in Sources(ROOT).definitions(folder, definition))
