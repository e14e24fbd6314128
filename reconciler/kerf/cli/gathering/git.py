"""What Git knows of the files of a command line: which differ from a commit, and what was in them then.

Only plumbing is asked, and nothing is written. A commit is compared with the files as they are on the disk, so what is
staged, what is not, and what Git does not know yet all count. Where branches have parted, the commit that counts is the
one where they did: what others have done since is no change of this branch.

Kerf compares files itself, by the IDs that Git would give them: `git diff` runs filters and monitors, and programs of
submodules.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from kerf.cli.gathering import repository
from kerf.cli.gathering.repository import Layout, Refused
from kerf.cli.gathering.sources import STDIN, SUFFIXES, NotFound, Source, find
from kerf.manifests import bounded
from kerf.manifests.checking import Content
from kerf.manifests.documents import LARGEST

_LINK: Final = "120000"
#: Bytes of all files that are read from a commit at once.
_MOST_CONTENT: Final = 4 * LARGEST


@dataclass(frozen=True, slots=True)
class Earlier:
    """The files that differ, by the names under which they are shown: as they were, those that are gone too. `changed`
    names all of them, those that are new too."""

    contents: tuple[Content, ...]
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class History:
    """A repository and a commit of it: its files with the IDs of their contents, and those that a sparse checkout
    leaves out.

    Files go by their paths from the top level, with slashes.
    """

    layout: Layout
    commit: str
    blobs: Mapping[str, str]
    sparse: frozenset[str]

    @property
    def root(self) -> str:
        """The real path of the top level."""
        return self.layout.top

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
        changed = {path: name for path, name in names.items() if not self._is_same(path)}
        kept = [path for path in changed if path in self.blobs]
        contents = _contents(self.layout, [self.blobs[path] for path in kept])
        earlier = (Content(changed[path], data) for path, data in zip(kept, contents, strict=True))
        return Earlier(tuple(earlier), frozenset(changed.values()))

    def check_out(self, folder: str) -> None:
        """Write all files of the commit to a folder. Raises Refused."""
        for name, data in zip(self.blobs, _contents(self.layout, list(self.blobs.values())), strict=True):
            place = Path(folder) / name
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            except OSError as error:
                raise Refused(f"{name} of {self.commit} cannot be written to {folder}: {error.strerror}") from error

    def _is_same(self, path: str) -> bool:
        """Whether a file has the content that it had, line breaks aside: a checkout may have changed those."""
        blob = self.blobs.get(path)
        if blob is None:
            return False
        try:
            data = Source(os.path.join(self.root, path)).read()
        except OSError:
            return False
        return blob in (_blob(data, len(blob)), _blob(data.replace(b"\r\n", b"\n"), len(blob)))

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
            if name in self.sparse or os.path.lexists(os.path.join(self.root, name)):
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
        raise Refused("standard input has no history; name the files")
    layout = repository.find(paths[0])
    commit = _commit(layout, ref)
    blobs = {}
    for row in _listed(_git(layout, "ls-tree", "-r", "-z", commit)):
        about, _, path = row.partition("\t")
        mode, kind, blob = about.split()
        if any(part in ("", ".", "..") or part.lower() == ".git" for part in path.split("/")):
            raise Refused(f"{commit} has a file with the path {path!r}, which Git never writes; check the repository")
        if kind == "blob" and mode != _LINK:
            blobs[path] = blob
    rows = _listed(_git(layout, "ls-files", "-v", "-z"))
    return History(layout, commit, blobs, frozenset(row[2:] for row in rows if row[0] in "Ss"))


def _commit(layout: Layout, ref: str) -> str:
    found = repository.run(layout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    shallow = _git(layout, "rev-parse", "--is-shallow-repository").strip() == b"true"
    more = "the clone is shallow; fetch more of it, with git fetch --unshallow, or fetch-depth: 0 in a workflow"
    if found.code:
        remote = repository.run(
            layout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"origin/{ref}^{{commit}}"
        )
        hint = more if shallow else "" if remote.code else f"did you mean origin/{ref}?"
        raise Refused(f"{ref} is no commit of {layout.top}" + (f"; {hint}" if hint else ""))
    commit = found.out.decode().strip()
    base = repository.run(layout, "merge-base", commit, "HEAD")
    if base.code:
        hint = more if shallow else "name a branch that this one was made from"
        raise Refused(f"{ref} and HEAD have no commit in common; {hint}")
    return base.out.decode().split()[0]


def _blob(data: bytes, length: int) -> str:
    """The ID that Git gives a file's content, in a repository whose IDs have so many letters."""
    digest = hashlib.sha1(usedforsecurity=False) if length == 40 else hashlib.sha256()
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def _contents(layout: Layout, blobs: Sequence[str]) -> list[bytes]:
    """The contents of blobs, in their order. Raises Refused."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    sizes = []
    for blob, row in zip(blobs, _git(layout, "cat-file", "--batch-check", given=asked).splitlines(), strict=True):
        head = row.split()
        if len(head) != 3:
            hint = "fetch it, or clone without --filter: Kerf does not fetch"
            raise Refused(f"the content {blob} of a file is not in this clone; {hint}")
        sizes.append(int(head[2]))
    if sum(sizes) > _MOST_CONTENT:
        raise Refused(
            f"the files of the commit have {sum(sizes)} bytes; {_MOST_CONTENT} are the most; give fewer paths"
        )
    output = _git(layout, "cat-file", "--batch", given=asked)
    contents, begin = [], 0
    for size in sizes:
        begin = output.index(b"\n", begin) + 1
        contents.append(output[begin : begin + size])
        begin += size + 1
    return contents


def _listed(output: bytes) -> list[str]:
    return [os.fsdecode(row) for row in output.split(b"\0") if row]


def _git(layout: Layout, *arguments: str, given: bytes = b"") -> bytes:
    """The output of Git. Raises Refused with Git's own words when it fails."""
    done: bounded.Done = repository.run(layout, *arguments, given=given)
    if done.code:
        words = done.err.decode("utf-8", "replace").strip().splitlines()
        raise Refused(f"{layout.top}: {words[0].removeprefix('fatal: ') if words else 'git failed'}")
    return done.out
