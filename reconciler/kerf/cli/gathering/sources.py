"""Which files a command line means: files, folders, patterns, and `-` for what comes through a pipe."""

from __future__ import annotations

import errno
import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kerf.manifests import regular
from kerf.manifests.documents import LARGEST

if TYPE_CHECKING:
    from kerf.manifests.checking import Content

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
#: Open files of Kerf's own process, such as those that a shell's <(…) gives.
_DESCRIPTORS: Final = ("/dev/fd/", "/dev/stdin")
OUTPUTS: Final = (*_DESCRIPTORS, "/dev/stdout", "/dev/stderr", "/dev/null")
_STANDARD: Final = ("/dev/stdout", "/dev/fd/1")
#: What makes a folder one that can be rendered.
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART: Final = "Chart.yaml"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, by the name under which it is shown; standard input is `<stdin>`.

    A link must not lead out of the folder `within`, a real path; "" is no folder.
    """

    name: str
    within: str = ""

    def read(self) -> bytes:
        """The bytes, and of a file that is too large one more than is allowed.

        Raises OSError, also for a link out of the folder, a named pipe, a device and a socket.
        """
        if self.name == "<stdin>":
            return sys.stdin.buffer.read(LARGEST + 1)
        if self.name.startswith(_DESCRIPTORS):
            with open(self.name, "rb") as file:
                return file.read(LARGEST + 1)
        self.require_inside()
        return regular.read(self.name, LARGEST + 1)

    def write(self, data: bytes) -> None:
        """Write the file. Raises OSError, also for a link out of the folder, a named pipe, a device and a socket."""
        if self.name.startswith(OUTPUTS):
            # Descriptor 1 is not where Kerf prints: sys.stdout has a descriptor of its own.
            name = f"/dev/fd/{sys.stdout.fileno()}" if self.name in _STANDARD else self.name
            with open(name, "wb") as file:
                file.write(data)
            return
        self.require_inside()
        regular.write(self.name, data)

    def require_inside(self) -> None:
        """Raise OSError for a link out of the folder."""
        if self.within and not is_inside(os.path.realpath(self.name), self.within):
            raise OSError(errno.EXDEV, f"this is a link out of {self.within}; give what it leads to", self.name)


class ToolMissing(Exception):
    """What should be rendered and cannot, and what that needs, in words."""


class NotFound(Exception):
    """Nothing is there that could be read: a usage error, in words."""


def find(paths: Sequence[str]) -> list[Source]:
    """The files that are meant, each once, folders in the order of their names. Raises NotFound."""
    found: dict[str, Source] = {}
    for path in paths:
        for name in _names(path):
            found.setdefault(os.path.realpath(name.name) if name.name != "<stdin>" else name.name, name)
    return list(found.values())


def named(path: str) -> Source:
    """The file that a command line names.

    A pull request can make any name of its repository a link, so a link must stay in the current folder; that of a file
    which is elsewhere, in the file's folder.
    """
    if path == STDIN:
        return Source("<stdin>")
    return Source(path, _boundary(path))


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both are absolute."""
    return os.path.commonpath([path, folder]) == folder


def _boundary(path: str) -> str:
    absolute, here = os.path.abspath(path), os.getcwd()
    if is_inside(absolute, here):
        return os.path.realpath(here)
    return os.path.realpath(os.path.dirname(absolute)) if os.path.islink(path) else ""


def is_rendered(names: Iterable[str]) -> bool:
    """Whether there is a kustomization or a chart among files."""
    return any(os.path.basename(name) in (*KUSTOMIZATIONS, CHART) for name in names)


def contents(found: Sequence[Source]) -> Iterator[Content]:
    """What is in the files, or why it cannot be read."""
    from kerf.manifests.checking import Content

    for source in found:
        try:
            yield Content(source.name, source.read())
        except OSError as error:
            yield Content(source.name, b"", error.strerror or str(error))


def _names(path: str) -> list[Source]:
    if path == STDIN:
        return [named(path)]
    if os.path.isdir(path):
        names = _within(path)
        if not names:
            raise NotFound(f"{path}: no {', '.join('*' + suffix for suffix in SUFFIXES)} in this folder or below it")
        return names
    if os.path.exists(path) or os.path.islink(path):
        return [named(path)]
    if not glob.has_magic(path):
        raise NotFound(f"{path}: no such file or folder")
    names = [name for match in sorted(glob.glob(path, recursive=True)) for name in _matched(match)]
    if not names:
        raise NotFound(f"{path}: no file matches")
    return names


def _matched(path: str) -> list[Source]:
    """A match of a pattern: the file itself, or what a folder holds."""
    return _within(path) if os.path.isdir(path) else [named(path)]


def _within(folder: str) -> list[Source]:
    """The files of a folder, as Sources in the order of their names. Raises NotFound for a link out of its place."""
    try:
        named(folder).require_inside()
    except OSError as error:
        raise NotFound(f"{folder}: {error.strerror}") from error
    real = os.path.realpath(folder)
    return [Source(name, real) for name in sorted(_files(folder))]


def _files(folder: str) -> Iterator[str]:
    """The files of a folder and those below it; what is hidden, such as .git, is left out, links are not followed."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield str(Path(path) / name)
