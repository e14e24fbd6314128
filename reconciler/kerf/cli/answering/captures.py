"""The source of the Snapshot of a verb that only reads: a cluster, manifests, a file of `kerf snapshot`, a record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from kerf.cli.answering import cluster_files, records, saved
from kerf.cli.arguments import Mistake, taken
from kerf.cli.gathering import sources
from kerf.cli.reports import escaping
from kerf.cli.terminal import say
from kerf.kube.client import KubeClient
from kerf.model.kinds import Kind
from kerf.model.snapshot import Snapshot
from kerf.ports import PortError
from kerf.runtime.leadership.leases import USUAL, LeaseName
from kerf.runtime.observe import looking, reported
from kerf.runtime.observe.answer_times import AnswerTimes
from kerf.runtime.process import connecting
from kerf.runtime.process.clock import SystemClock
from kerf.runtime.settings import settings
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError
from kerf.snapshots import files, reading
from kerf.snapshots.captured import Captured

#: Slow answers are reported when there are at least so many: such a command needs few.
_FEWEST_ANSWERS: Final = 3


#: The variable with the key of the digests in place of user data.
_DIGEST_KEY: Final = "KERF_DIGEST_KEY"


def options(arguments: Sequence[str], *, offline: bool) -> Options:
    """The settings. Files need no cluster's name. Raises Mistake."""
    given = dict(os.environ)
    if offline:
        given.setdefault("CLUSTER_NAME", "files")
    try:
        return settings.parse(arguments, given)
    except SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error


def digest_key() -> bytes:
    """The key by which user data of snapshots can be compared; empty when none is set."""
    return os.environ.get(_DIGEST_KEY, "").encode()


def live(verb: str, options: Options, kubeconfig: str, kube_context: str) -> Captured:
    """The cluster as it is. What cannot be read is reported for `kerf <verb>`. Raises Mistake, PortError."""

    def poisoned(kind: Kind, problem: str) -> None:
        say(f"kerf {verb}: a {kind.name} cannot be read: {problem}", err=True)

    clock, times = SystemClock(), AnswerTimes()
    where = connecting.Where(kubeconfig, kube_context)
    kube = connecting.client(options, where, poisoned, watched=times, patience=connecting.PATIENCE)
    try:
        cloud = connecting.cloud(options, kube, clock)
    except SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error
    spaces = {options.leader_election_namespace, options.system_namespace, "kerf"} - {""}
    places = {LeaseName(space, options.leader_election_name) for space in spaces} | {*USUAL, *options.karpenter_leases}
    found = looking.capture(kube, cloud, options.settings, clock)
    since, now = looking.stored_since(kube, sorted(places)), found.snapshot.now
    leading, known = None if since is None else min(since, now), _reported(verb, kube, now)
    if slow := times.slow(_FEWEST_ANSWERS):
        say(f"kerf {verb}: the API server answers slowly: {slow}", err=True)
    seen = replace(found.snapshot, failures=known.failures, launch_failures=known.launches)
    return replace(found, snapshot=replace(seen, leading_since=leading))


def _reported(verb: str, kube: KubeClient, now: datetime) -> reported.OfEvents:
    """The failing actions and refused launches, as far as events may be read."""
    try:
        return reported.read(kube, now)
    except PortError as error:
        words = "not checked: actions and launches that fail: needs permission to list events in all namespaces"
        say(f"kerf {verb}: {words} ({error})", err=True)
        return reported.OfEvents()


def of_manifests(paths: Sequence[str], options: Options) -> tuple[Captured, str]:
    """A cluster of these files, and what its instance types are, in words. Raises Mistake."""
    try:
        found = cluster_files.without_bundle(cluster_files.read(sources.find(list(paths))))
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    types = cluster_files.ShippedTypes.beside(found.objects)
    count = len(types.region().types)
    words = f"{count} instance types that are part of Kerf, in {', '.join(types.zones)}; AWS was not queried."
    return looking.capture(found, types, options.settings, SystemClock()), words


@dataclass(frozen=True, slots=True)
class Origin:
    """Where snapshots come from: `name` is for a person, `words` describe it; `live` ones change.

    `capture` reads all that a plan needs. `connect` makes a client of a live cluster.
    """

    name: str
    read: Callable[[], Snapshot]
    live: bool = False
    words: str = ""
    capture: Callable[[], Captured] | None = None
    connect: Callable[[], KubeClient] | None = None


def origin(verb: str, arguments: list[str], paths: Sequence[str], where: tuple[str, str]) -> Origin:
    """The origin that options ask for: a file of `kerf snapshot`, a record, manifests, or a cluster by kubeconfig.

    Raises Mistake; reading may raise Mistake and PortError.
    """
    file, arguments = taken(arguments, "--snapshot")
    record, arguments = taken(arguments, "--record")
    at, arguments = taken(arguments, "--at")
    not_empty({"--snapshot": file, "--record": record})
    given = {"--snapshot": file, "--record": record, "-f": paths}
    if len(both := [name for name, value in given.items() if value]) > 1:
        raise Mistake(f"{both[0]} and {both[1]} exclude each other")
    if (file or record) and arguments:
        raise Mistake(f"{arguments[0]}: the settings are those of the {'snapshot' if file else 'record'}")
    if found := _saved(verb, file, record, at):
        words = records.of_decision(found.snapshot.now) if record else ""
        return Origin(file or record or "", lambda: found.snapshot, words=words, capture=lambda: found)
    own = options(arguments, offline=bool(paths))
    if not paths:
        read = partial(live, verb, own, *where)
        place = connecting.Where(*where)
        connect = partial(connecting.client, own, place, lambda *_: None, patience=connecting.PATIENCE)
        name = f"cluster {own.cluster_name}"
        return Origin(name, lambda: read().snapshot, live=True, capture=read, connect=connect)
    captured, words = of_manifests(paths, own)
    return Origin(", ".join(paths), lambda: captured.snapshot, words=words, capture=lambda: captured)


def not_empty(paths: Mapping[str, str | None]) -> None:
    """Refuse an option with an empty path, as of a variable that is not set: another source would be read. Raises
    Mistake."""
    for name, path in paths.items():
        if path == "":
            raise Mistake(f"{name}: the path is empty; name a file or a folder, or leave the option out")


def _saved(verb: str, file: str | None, record: str | None, at: str | None) -> Captured | None:
    if record is not None or at is not None:
        return recorded(verb, record, at)
    return None if file is None else of_file(file)


def recorded(verb: str, path: str | None, at: str | None) -> Captured:
    """The cluster of the latest decision of a record, up to the time `at` if one is given. Raises Mistake."""
    if not path:
        raise Mistake("--at and --record belong together: --record names the folder of a record")
    until = records.instant("--at", at)
    note = partial(_noted, verb)
    return records.captured(records.Record(records.found(path), note, until=until))


def _noted(verb: str, words: str) -> None:
    escaping.complain(f"kerf {verb}: {words}")


def of_file(path: str) -> Captured:
    """What `kerf snapshot` saved. Raises Mistake."""
    try:
        return reading.read(files.lines(saved.pieces(Path(path))))
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror or error}") from error
    except reading.Unreadable as error:
        raise Mistake(f"{path}: {error}") from error


def compressed(found: Captured, *, hash_names: bool = False) -> bytes:
    """The content of a file of `kerf snapshot`; with `hash_names` it has pseudonyms in place of names."""
    from kerf.runtime.process import saving
    from kerf.snapshots import naming, writing

    lines = writing.lines(found, digest_key() or saving.new_key())
    return files.compressed(naming.renamed(lines) if hash_names else lines)
