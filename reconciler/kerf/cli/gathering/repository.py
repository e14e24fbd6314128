"""The Git repository of a folder, read without its configuration.

Git runs programs that a repository's configuration and attributes name: a file-system monitor, filters, hooks,
textconv, external diffs, transports that fetch missing objects. A pull request can bring such a configuration, for
example in a bare repository within a folder, and an unpacked archive can bring a whole `.git`. So Git never reads one:
Kerf finds the top level by itself, and runs Git in a temporary repository that only links to the objects, the
references and the index. Its configuration is Kerf's own.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kerf.manifests import bounded, regular

_MOST_OUTPUT: Final = 1 << 29
#: HEAD, a `.git` file and a `commondir` file hold one line.
_LONGEST_LINE: Final = 1 << 13
_LARGEST_CONFIG: Final = 1 << 20
#: Links of the temporary repository, by the folder that they lead to: shared by all worktrees, or of this worktree.
_SHARED: Final = ("objects", "refs", "packed-refs", "shallow", "reftable")
_OWN: Final = ("index", "logs", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD")
#: Extensions of the format that decide how objects and references are read, with their supported values.
_FORMATS: Final = {"objectformat": ("sha1", "sha256"), "refstorage": ("files", "reftable")}


class Refused(Exception):
    """Git cannot report the changes: the message has the cause and the fix."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The top level of a repository, its Git folder, and the Git folder that all its worktrees share: real paths."""

    top: str
    own: str
    shared: str


def find(path: str) -> Layout:
    """Return the repository that a path lies in. Raises Refused."""
    folder = Path(os.path.realpath(path))
    while not folder.is_dir():
        folder = folder.parent
    for top in (folder, *folder.parents):
        marker = top / ".git"
        if os.path.lexists(marker):
            return _layout(top, marker)
    raise Refused(f"{folder}: not a git repository, and none of the folders above it is")


def _layout(top: Path, marker: Path) -> Layout:
    mode = marker.lstat().st_mode
    if stat.S_ISDIR(mode):
        own = marker
    elif stat.S_ISREG(mode):
        word, _, target = _line(marker).partition(": ")
        if word != "gitdir":
            raise Refused(f"{marker}: this is no Git folder and no link to one; check out the repository again")
        own = top / target
    else:
        raise Refused(f"{marker}: this is no folder and no regular file; check out the repository with git itself")
    shared = own / _line(own / "commondir") if (own / "commondir").exists() else own
    layout = Layout(str(top), os.path.realpath(own), os.path.realpath(shared))
    if not all(os.path.isdir(os.path.join(layout.shared, name)) for name in ("objects", "refs")):
        raise Refused(f"{marker}: not a git repository: it has no objects and references; check it out again")
    return layout


def _line(path: Path) -> str:
    try:
        return os.fsdecode(regular.read(str(path), _LONGEST_LINE)).strip()
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from error


def run(layout: Layout, *arguments: str, given: bytes = b"") -> bounded.Done:
    """Run Git without the configuration of the repository, of the user and of the system. Raises Refused."""
    with _view(layout) as view:
        return _run(view, arguments, given)


def _run(folder: str, arguments: Sequence[str], given: bytes) -> bounded.Done:
    program = shutil.which("git")
    if program is None or not os.path.isabs(program):
        raise Refused("git is not installed, or not on the PATH")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {
        "HOME": folder,
        "XDG_CONFIG_HOME": folder,
        "GIT_DIR": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone must not fetch: an empty list allows no transport.
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    try:
        return bounded.run([program, *arguments], folder, inherited | own, bounded.Bounds(_MOST_OUTPUT), given=given)
    except (bounded.Exceeded, bounded.Missing) as error:
        raise Refused(str(error)) from error


@contextmanager
def _view(layout: Layout) -> Iterator[str]:
    """A temporary repository that has all of a repository but its configuration, attributes and hooks."""
    with TemporaryDirectory(prefix="kerf-git-") as folder:
        for names, source in ((_SHARED, layout.shared), (_OWN, layout.own)):
            for name in names:
                place = os.path.join(source, name)
                if os.path.exists(place):
                    _require_plain(place)
                    os.symlink(place, os.path.join(folder, name))
        for name in os.listdir(layout.own):
            if name.startswith("sharedindex."):
                os.symlink(os.path.join(layout.own, name), os.path.join(folder, name))
        # Git takes a link for a reference of old times, so HEAD is a copy.
        Path(folder, "HEAD").write_bytes(os.fsencode(_line(Path(layout.own, "HEAD"))) + b"\n")
        formats = _formats(layout)
        version = int(bool(formats))
        lines = ["[core]", f"repositoryformatversion = {version}", "bare = true", "[extensions]" * version, *formats]
        Path(folder, "config").write_text("\n".join([*lines, ""]), encoding="utf-8")
        yield folder


def _require_plain(place: str) -> None:
    mode = os.stat(place).st_mode
    if not stat.S_ISDIR(mode):
        try:
            regular.require(place, mode)
        except OSError as error:
            raise Refused(f"{place}: cannot be read: {error.strerror}") from error


def _formats(layout: Layout) -> list[str]:
    """The extensions of the repository's format, as lines of a configuration. Raises Refused for unknown values."""
    path = os.path.join(layout.shared, "config")
    data = b""
    with suppress(FileNotFoundError):
        try:
            data = regular.read(path, _LARGEST_CONFIG)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Refused(f"{path}: cannot be read: {error.strerror}") from error
    if b"extensions" not in data.lower():
        return []
    with TemporaryDirectory(prefix="kerf-git-") as empty:
        # Git parses its own syntax; includes are off, and the text comes through a pipe, so that it opens no file.
        command = ["config", "--file", "-", "--no-includes", "--null", "--get-regexp", r"^extensions\."]
        done = _run(empty, command, data)
    found = {}
    for row in done.out.decode("utf-8", "replace").split("\0")[:-1]:
        name, _, value = row.partition("\n")
        found[name.partition(".")[2].lower()] = value.lower()
    for name, values in _FORMATS.items():
        if found.get(name, values[0]) not in values:
            raise Refused(f"{path}: extensions.{name} is {found[name]!r}; supported are {' and '.join(values)}")
    return [f"{name} = {found[name]}" for name in _FORMATS if found.get(name, _FORMATS[name][0]) != _FORMATS[name][0]]
