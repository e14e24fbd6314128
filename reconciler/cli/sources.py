"""Which files a command line means: files, folders, patterns, and `-` for what comes through a pipe."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli.documents import LARGEST

if TYPE_CHECKING:
    from reconciler.cli.checking import Content

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
#: What makes a folder one that can be rendered.
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART: Final = "Chart.yaml"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, by the name under which it is shown; standard input is `<stdin>`."""

    name: str

    def read(self) -> bytes:
        """The bytes, and of a file that is too large one more than is allowed. Raises OSError."""
        if self.name == "<stdin>":
            return sys.stdin.buffer.read(LARGEST + 1)
        with open(self.name, "rb") as file:
            return file.read(LARGEST + 1)


class ToolMissing(Exception):
    """What should be rendered and cannot, and what that needs, in words."""


class NotFound(Exception):
    """Nothing is there that could be read: a usage error, in words."""


def find(paths: Sequence[str]) -> list[Source]:
    """The files that are meant, each once, folders in the order of their names. Raises NotFound."""
    found: dict[str, Source] = {}
    for path in paths:
        for name in _names(path):
            found.setdefault(os.path.realpath(name) if name != "<stdin>" else name, Source(name))
    return list(found.values())


def is_rendered(names: Iterable[str]) -> bool:
    """Whether there is a kustomization or a chart among files."""
    return any(os.path.basename(name) in (*KUSTOMIZATIONS, CHART) for name in names)


def contents(found: Sequence[Source]) -> Iterator[Content]:
    """What is in the files, or why it cannot be read."""
    from reconciler.cli.checking import Content

    for source in found:
        try:
            yield Content(source.name, source.read())
        except OSError as error:
            yield Content(source.name, b"", error.strerror or str(error))


def _names(path: str) -> list[str]:
    if path == STDIN:
        return ["<stdin>"]
    if os.path.isdir(path):
        names = sorted(_within(path))
        if not names:
            raise NotFound(f"{path}: no {', '.join('*' + suffix for suffix in SUFFIXES)} in this folder or below it")
        return names
    if os.path.exists(path) or os.path.islink(path):
        return [path]
    if not glob.has_magic(path):
        raise NotFound(f"{path}: no such file or folder")
    names = [name for match in sorted(glob.glob(path, recursive=True)) for name in _matched(match)]
    if not names:
        raise NotFound(f"{path}: no file matches")
    return names


def _matched(path: str) -> list[str]:
    """A match of a pattern: the file itself, or what a folder holds."""
    return sorted(_within(path)) if os.path.isdir(path) else [path]


def _within(folder: str) -> Iterator[str]:
    """The files of a folder and those below it; what is hidden, such as .git, is left out, links are not followed."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield str(Path(path) / name)
