"""The change that a command line means: manifests as they are, or what differs from a commit of Git."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kerf.cli.answering import cluster_files
from kerf.cli.arguments import Mistake
from kerf.cli.gathering import gathering, sources
from kerf.planning import changes
from kerf.planning.changes import Change, Key

if TYPE_CHECKING:
    from kerf.cli.manifests.checking import Content


@dataclass(frozen=True, slots=True)
class Changed:
    """A change, and its objects as they were before; without a commit nothing is known of that."""

    change: Change
    before: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict)


def of_files(paths: Sequence[str]) -> Changed:
    """All objects in these files that change a plan. Raises Mistake."""
    try:
        found = [one for source in sources.find(list(paths)) for _, one in cluster_files.manifests(source)]
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    applied = changes.relevant(found)
    if paths and not applied:
        kinds = ", ".join(sorted(changes.KINDS))
        raise Mistake(f"{' '.join(paths)}: no object of a kind that changes a plan ({kinds})")
    return Changed(Change(applied))


def since(paths: Sequence[str], ref: str, note: gathering.Note) -> Changed:
    """The objects below these paths that differ from a commit, and those that are gone. Kustomizations and charts are
    rendered where the tools are there. Raises Mistake."""
    from kerf.cli.gathering import git, repository

    try:
        history = git.read(list(paths), ref)
        found = history.find(list(paths))
        today = gathering.now(paths, found, "auto", note)
        with gathering.then(history, paths, found, today, "auto") as earlier:
            old = _objects(earlier.contents)
            new = _objects(content for content in today if content.name in earlier.changed)
            others = _objects(content for content in today if content.name not in earlier.changed)
    except repository.Refused as error:
        raise Mistake(f"--changed-since {ref}: {error}") from error
    except (sources.NotFound, sources.ToolMissing, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    applied = tuple(one for key, one in new.items() if old.get(key) != one)
    gone = tuple(key for key in old if key not in new and key not in others)
    return Changed(Change(applied, gone), old)


def _objects(contents: Iterable[Content]) -> dict[Key, Mapping[str, Any]]:
    """The objects that change a plan, by key. Raises BadFile."""
    return {changes.key(one): one for one in changes.relevant(_manifests(contents))}


def _manifests(contents: Iterable[Content]) -> Iterator[Mapping[str, Any]]:
    for content in contents:
        if content.fault and content.severity == "error":
            raise cluster_files.BadFile(f"{content.name}: {content.fault}")
        yield from (one for _, one in cluster_files.objects(content.name, content.data))
