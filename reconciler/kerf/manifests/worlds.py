"""Which files describe one cluster.

A repository often has a folder for each cluster, and in each of them a NodePool of the same name. Files of such folders
are not applied together, so they are not judged side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate


def of_folders(written: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """Return a function that names the world of a file.

    Args:
        written: the path of the file of each object, and the object's kind and name.
    """
    folders: dict[str, set[str]] = {}
    for path, name in written:
        folders.setdefault(name, set()).add(os.path.dirname(path))
    roots = {root for having in folders.values() if len(having) > 1 for root in _roots(having)}
    return lambda path: next((folder for folder in _upwards(os.path.dirname(path)) if folder in roots), "")


def _roots(folders: set[str]) -> Iterator[str]:
    """Of folders that each have an object of one name the outermost that are apart; none for those within others."""
    above = {folder: list(_upwards(folder)) for folder in folders}
    outer = [folder for folder in folders if folders.isdisjoint(above[folder][1:])]
    shared = Counter(place for folder in outer for place in above[folder])
    for folder in outer if len(outer) > 1 else ():
        yield next(place for place in reversed(above[folder]) if shared[place] == 1)


def _upwards(folder: str) -> Iterator[str]:
    """A folder and all above it."""
    parts = folder.split(os.sep)
    yield from reversed([*accumulate(parts, lambda above, part: f"{above}{os.sep}{part}")])
