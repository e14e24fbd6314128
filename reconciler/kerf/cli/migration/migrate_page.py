"""What `kerf migrate check` answers: its sections, as a page for people and as JSON for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final

from kerf.cli.migration import migrate_nodes, migrate_objects, migrate_settings
from kerf.cli.migration.migrate_sources import Cluster
from kerf.ports import PortError
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding
from kerf.runtime.settings import settings
from kerf.runtime.settings.options import Options

Sections = Mapping[str, Sequence[Finding]]

_SIGNS: Final = {GOOD: "  ok    ", DOUBTFUL: "  note  ", WRONG: "  WRONG "}
_TITLES: Final = {
    "controller": "The controller that runs now",
    "objects": "Objects",
    "nodes": "Nodes",
    "rights": "Rights of the caller",
}


class Mistake(Exception):
    """The command makes no sense, or what it names cannot be read, in words."""


def sections(cluster: Cluster, arguments: Sequence[str]) -> Sections:
    """All that was found. Raises Mistake, PortError."""
    try:
        options = _options(cluster, arguments)
        found = {
            "controller": list(migrate_settings.look(cluster)),
            "objects": list(migrate_objects.look(cluster)),
            "nodes": list(_nodes(cluster, options)),
            "rights": list(_rights(cluster, options)),
        }
    except settings.SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error
    return {name: rows for name, rows in found.items() if rows}


def _options(cluster: Cluster, arguments: Sequence[str]) -> Options:
    """Those that were given, over those of the controller that runs."""
    given = {**migrate_settings.environment(migrate_settings.controllers(cluster)), **os.environ}
    if not cluster.live:
        given.setdefault("CLUSTER_NAME", "files")
    return settings.parse(arguments, given)


def _nodes(cluster: Cluster, options: Options) -> Iterator[Finding]:
    try:
        snapshot = cluster.snapshot(options)
    except PortError as error:
        yield Finding("Nodes", WRONG, f"cannot be judged: {error}", "kerf preflight reports what is missing")
        return
    yield from migrate_nodes.look(snapshot, live=cluster.live)


def _rights(cluster: Cluster, options: Options) -> Iterator[Finding]:
    """Those that are missing; the others are only counted (`kerf preflight` names them)."""
    asked = list(cluster.rights(options))
    if asked:
        yield Finding("Rights in the cluster and in the account", GOOD, f"{len(asked)} asked for")
    yield from (replace(one, how=DOUBTFUL) if one.how == UNCHECKED else one for one in asked if one.how != GOOD)


def in_the_way(found: Sections) -> bool:
    return any(one.how == WRONG for rows in found.values() for one in rows)


def text(found: Sections) -> str:
    """The page, with a summary at its end."""
    lines: list[str] = []
    for name, rows in found.items():
        lines.append(_TITLES[name])
        for one in rows:
            lines.append(_SIGNS[one.how] + one.what + (f": {one.seen}" if one.seen else ""))
            if one.fix and one.how != GOOD:
                lines.append(f"          {one.fix}")
        lines.append("")
    wrong, notes = _count(found, WRONG), _count(found, DOUBTFUL)
    return "\n".join([*lines, f"{wrong} blocking, {notes} to know", ""])


def as_json(found: Sections) -> str:
    """One JSON object: the findings of each section (`how` is ok, doubtful or wrong), and how many there are."""
    rows = {name: [asdict(one) for one in section] for name, section in found.items()}
    counts = {how: _count(found, how) for how in (WRONG, DOUBTFUL, GOOD)}
    return json.dumps({"version": 1, "sections": rows, **counts}, indent=2) + "\n"


def _count(found: Sections, how: str) -> int:
    return sum(one.how == how for rows in found.values() for one in rows)
