"""What a build of the image sees of the repository: the files that .dockerignore leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_READ: Final = re.compile(r"(!|\*\*/)?[\w.*-]+")


def files(root: Path) -> Iterator[Path]:
    """The files of the build's context, relative to `root`, in the order of their names."""
    rules = patterns((root / ".dockerignore").read_text())
    for folder, folders, names in os.walk(root):
        # A folder that is left out has nothing in it that is let in again: our patterns name top-level entries alone.
        folders[:] = sorted(name for name in folders if seen(Path(folder, name).relative_to(root), rules))
        yield from (path for name in sorted(names) if seen(path := Path(folder, name).relative_to(root), rules))


def patterns(text: str) -> tuple[str, ...]:
    """The patterns of a .dockerignore. Raises ValueError for those that `seen` does not read."""
    found = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    for pattern in found:
        if not _READ.fullmatch(pattern):
            raise ValueError(f".dockerignore: {pattern}: only names, *, **/name and !name are read")
    return found


def seen(path: Path, rules: Sequence[str]) -> bool:
    """Whether the build sees a file or folder: of the patterns that match it, or a folder above it, the last counts."""
    left_out = False
    for rule in rules:
        pattern = rule.removeprefix("!")
        if any(_matches(part, pattern) for part in (path, *path.parents)):
            left_out = not rule.startswith("!")
    return not left_out


def _matches(path: Path, pattern: str) -> bool:
    if not path.parts:
        return False
    anywhere = pattern.startswith("**/")
    if not anywhere and len(path.parts) != 1:
        return False
    return Path(path.name).match(pattern.removeprefix("**/"))
