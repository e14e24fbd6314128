"""The change that a command line means: manifests as they are, or what differs from a commit of Git."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kerf.cli.answering import cluster_files
from kerf.cli.arguments import Mistake
from kerf.cli.gathering import gathering, sources
from kerf.planning import changes
from kerf.planning.changes import Change, Comparison, Key
from kerf.snapshots.sanitizing import digest, fingerprint
from kerf_api.texts import shortened

if TYPE_CHECKING:
    from kerf.manifests.checking import Content
    from kerf.model.snapshot import Snapshot
    from kerf.snapshots.captured import Captured

#: Kinds whose pods a plan takes from the cluster, and the most of them that it names.
_WORKLOADS, _NAMES = ("Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod"), 3

#: A manifest with its place, `file:line`.
Row = tuple[str, Mapping[str, Any]]
#: Finds the faults of a manifest that an API server would refuse: the steps to each, and words.
Faults = Callable[[Mapping[str, Any]], Iterable[tuple[tuple[str | int, ...], str]]]


def _no_faults(_: Mapping[str, Any]) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Changed:
    """A change, and its objects as they were before; without a commit nothing is known of that."""

    change: Change
    before: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


def of_files(paths: Sequence[str], faults: Faults = _no_faults) -> Changed:
    """All objects in these files that change a plan. Raises Mistake."""
    try:
        found = [row for source in sources.find(list(paths)) for row in cluster_files.manifests(source)]
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    applied = _once(((place, one) for place, one in found if changes.relevant(one)), faults)
    if paths and not applied:
        kinds = ", ".join(sorted(changes.KINDS))
        raise Mistake(f"{' '.join(paths)}: no object of a kind that changes a plan ({kinds})")
    return Changed(Change(applied), assumed=_left_out(one for _, one in found))


def since(paths: Sequence[str], ref: str, note: gathering.Note, faults: Faults = _no_faults) -> Changed:
    """The objects below these paths that differ from a commit, and those that are gone. Kustomizations and charts are
    rendered where the tools are there. Raises Mistake."""
    from kerf.cli.gathering import git, repository

    try:
        history = git.read(list(paths), ref)
        found = history.find(list(paths))
        today = gathering.now(paths, found, "auto", note)
        with gathering.then(history, paths, found, today, "auto") as earlier:
            old = _by_key(_rows(earlier.contents))
            new = list(_rows(content for content in today if content.name in earlier.changed))
            others = _by_key(_rows(content for content in today if content.name not in earlier.changed))
    except repository.Refused as error:
        raise Mistake(f"--changed-since {ref}: {error}") from error
    except (sources.NotFound, sources.ToolMissing, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    applied = _once(((place, one) for place, one in new if old.get(changes.key(one)) != one), faults)
    here = {*_by_key(new), *others}
    return Changed(Change(applied, tuple(key for key in old if key not in here)), old)


def comparable(
    found: Changed, captured: Captured, key: bytes | None, deleted: Iterable[Key] = ()
) -> tuple[Change, list[str]]:
    """The change of a plan for a snapshot, with more deleted objects, and what had to be assumed. `key` is that of the
    digests in place of user data: empty when it is not given, None for a record. Raises Mistake."""
    change = Change(found.change.applied, tuple(dict.fromkeys((*found.change.deleted, *deleted))))
    if change and captured.names != "plain":
        raise Mistake("the snapshot has pseudonyms in place of names: no object of a change is found in it")
    if not captured.of_file:
        return change, [*found.assumed]
    comparison = of_record(captured.snapshot, found.before) if key is None else _of_file(captured, key, found)
    return comparison.comparable(change), [*found.assumed, *comparison.assumed]


def _of_file(captured: Captured, key: bytes, found: Changed) -> Comparison:
    """The comparison with a snapshot file. Under another key all user data would differ."""
    if key and captured.key and captured.key != fingerprint(key):
        return Comparison(captured.snapshot, None, found.before, "KERF_DIGEST_KEY is not the key of the snapshot")
    return Comparison(captured.snapshot, partial(digest, key) if key else None, found.before)


def of_record(snapshot: Snapshot, before: Mapping[Key, Mapping[str, Any]]) -> Comparison:
    """The comparison with a snapshot of a record. Its digests have a random key, which no variable can have."""
    return Comparison(snapshot, None, before, "a record does not keep the key of its digests")


def _left_out(manifests: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The workloads among the files, which a plan does not apply."""
    found = (one for one in manifests if one.get("kind") in _WORKLOADS)
    names = [f"{one['kind']} {'/'.join(filter(None, changes.key(one)[1:]))}" for one in found]
    if not names:
        return ()
    text = "workloads of the files are not applied, and pods stay those of the cluster"
    return (f"{text}: {shortened(names, _NAMES)}",)


def _once(rows: Iterable[Row], faults: Faults) -> tuple[Mapping[str, Any], ...]:
    """The manifests, of which no two are of one object, and none has a fault. Raises Mistake."""
    places: dict[Key, str] = {}
    found = []
    for place, one in rows:
        key = changes.key(one)
        name = "/".join(filter(None, key[1:]))
        for steps, words in faults(one):
            where = ".".join(map(str, steps))
            raise Mistake(f"{place}: the API server refuses {one['kind']} {name}: {where}: {words}")
        if key in places:
            both = f"two manifests in one change: {places[key]} and {place}"
            raise Mistake(f"{key[0]} {name}: {both}; give the files of one cluster, with one manifest of each object")
        places[key] = place
        found.append(one)
    return tuple(found)


def _by_key(rows: Iterable[Row]) -> dict[Key, Mapping[str, Any]]:
    return {changes.key(one): one for _, one in rows}


def _rows(contents: Iterable[Content]) -> Iterator[Row]:
    """The objects that change a plan, with their places. Raises BadFile."""
    for content in contents:
        if content.fault and content.severity == "error":
            raise cluster_files.BadFile(f"{content.name}: {content.fault}")
        rows = cluster_files.objects(content.name, content.data)
        yield from ((place, one) for place, one in rows if changes.relevant(one))
