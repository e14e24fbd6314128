"""What Git knows of the files of a command line: which differ from a commit, and what was in them then.

Only plumbing is asked, and nothing is written. A commit is compared with the files as they are on the disk, so what is
staged, what is not, and what Git does not know yet all count. Where branches have parted, the commit that counts is the
one where they did: what others have done since is no change of this branch.
"""

from __future__ import annotations

import glob
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from reconciler.cli.checking import Content
from reconciler.cli.sources import STDIN, SUFFIXES, NotFound, Source, find

#: Hooks run with these set for the commit that is being made; relative ones would be misread in another folder.
_OF_HOOKS: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
_LINK: Final = "120000"


class Refused(Exception):
    """Git cannot say what has changed: why, and what would help, in words."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The files that differ, by the names under which they are shown: as they were, those that are gone too. `changed`
    names all of them, those that are new too."""

    contents: tuple[Content, ...]
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class History:
    """A repository and a commit of it: its files with the IDs of their contents, and those that differ from it now.

    Files go by their paths from `root`, with slashes.
    """

    root: str
    commit: str
    blobs: Mapping[str, str]
    changed: frozenset[str]

    def find(self, paths: Sequence[str]) -> list[Source]:
        """The files that are meant, as `sources.find` gives them; a path may also be one that the commit had. Raises
        NotFound, and Refused for a path of elsewhere."""
        there = []
        for path in paths:
            self.within(path)
            try:
                find([path])
            except NotFound:
                if not any(self._gone(path)):
                    raise
            else:
                there.append(path)
        return find(there)

    def earlier(self, paths: Sequence[str], found: Sequence[Source]) -> Earlier:
        """What differs among the files that were found, and those that are gone. Raises Refused."""
        names = {self.within(source.name): source.name for source in found}
        for path in paths:
            for gone, name in self._gone(path):
                names.setdefault(gone, name)
        changed = {path: name for path, name in names.items() if path in self.changed or path not in self.blobs}
        kept = [path for path in changed if path in self.blobs]
        contents = _contents(self.root, [self.blobs[path] for path in kept])
        earlier = (Content(changed[path], data) for path, data in zip(kept, contents, strict=True))
        return Earlier(tuple(earlier), frozenset(changed.values()))

    def check_out(self, folder: str) -> None:
        """Write all files of the commit to a folder. Raises Refused."""
        for name, data in zip(self.blobs, _contents(self.root, list(self.blobs.values())), strict=True):
            place = Path(folder) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    def within(self, path: str) -> str:
        """The path from the root. Raises Refused for one of elsewhere."""
        real = os.path.realpath(path)
        if os.path.commonpath([real, self.root]) != self.root:
            raise Refused(f"{path} is not in the repository {self.root}; check each repository by itself")
        return os.path.relpath(real, self.root).replace(os.sep, "/")

    def _gone(self, path: str) -> Iterator[tuple[str, str]]:
        """Files that the commit had where a path points to and that are gone: from the root, and as they are shown."""
        place = self.within(path)
        for name in sorted(self.blobs):
            if name not in self.changed or os.path.lexists(os.path.join(self.root, name)):
                continue
            if name == place:
                yield name, path
            elif place == "." or name.startswith(f"{place}/"):
                below = name if place == "." else name[len(place) + 1 :]
                if _is_meant(below):
                    yield name, str(Path(path) / below)
            elif glob.has_magic(path) and fnmatch(name, place) and _is_meant(name):
                yield name, os.path.relpath(os.path.join(self.root, name))


def _is_meant(name: str) -> bool:
    """Whether a folder's file is one that is looked at."""
    return name.lower().endswith(SUFFIXES) and not any(part.startswith(".") for part in name.split("/"))


def read(paths: Sequence[str], ref: str) -> History:
    """The repository of the paths and the commit where HEAD and `ref` parted. Raises Refused."""
    if STDIN in paths:
        raise Refused("standard input has no history; give the files themselves")
    root = os.path.realpath(_git(_folder(paths[0]), "rev-parse", "--show-toplevel").decode().removesuffix("\n"))
    commit = _commit(root, ref)
    blobs = {}
    for row in _listed(_git(root, "ls-tree", "-r", "-z", commit)):
        about, _, path = row.partition("\t")
        mode, kind, blob = about.split()
        if kind == "blob" and mode != _LINK:
            blobs[path] = blob
    changed = _listed(_git(root, "diff", "--name-only", "--no-renames", "-z", commit, "--"))
    return History(root, commit, blobs, frozenset(changed))


def _folder(path: str) -> str:
    """The nearest folder that is there."""
    place = Path(os.path.realpath(path))
    while not place.is_dir():
        place = place.parent
    return str(place)


def _commit(root: str, ref: str) -> str:
    found = _asked(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    shallow = _git(root, "rev-parse", "--is-shallow-repository").strip() == b"true"
    more = "the clone is shallow; fetch more of it, with git fetch --unshallow, or fetch-depth: 0 in a workflow"
    if found.returncode:
        remote = _asked(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"origin/{ref}^{{commit}}")
        hint = more if shallow else "" if remote.returncode else f"did you mean origin/{ref}?"
        raise Refused(f"{ref} is no commit of {root}" + (f"; {hint}" if hint else ""))
    commit = found.stdout.decode().strip()
    base = _asked(root, "merge-base", commit, "HEAD")
    if base.returncode:
        hint = more if shallow else "name a branch that this one was made from"
        raise Refused(f"{ref} and HEAD have no commit in common; {hint}")
    return base.stdout.decode().split()[0]


def _contents(root: str, blobs: Sequence[str]) -> list[bytes]:
    """What is in blobs, in their order."""
    told = _git(root, "cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs).encode())
    contents, begin = [], 0
    for blob in blobs:
        end = told.index(b"\n", begin)
        head = told[begin:end].split()
        if len(head) != 3:
            raise Refused(f"the content {blob} of a file is not in this clone; fetch it")
        size = int(head[2])
        contents.append(told[end + 1 : end + 1 + size])
        begin = end + size + 2
    return contents


def _listed(told: bytes) -> list[str]:
    return [os.fsdecode(row) for row in told.split(b"\0") if row]


def _git(folder: str, *arguments: str, given: bytes = b"") -> bytes:
    """What Git answers. Raises Refused with its own words when it cannot."""
    done = _asked(folder, *arguments, given=given)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Refused(f"{folder}: {words[0].removeprefix('fatal: ') if words else 'git failed'}")
    return done.stdout


def _asked(folder: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    own = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
    environment = own | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, input=given, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise Refused("git is not installed, or not on the PATH") from error
