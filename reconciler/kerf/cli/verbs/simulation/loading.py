"""Read a scenario and the files that it names. Errors state file, line and column, the path in the file and the fix."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kerf.cli.answering import captures, cluster_files
from kerf.cli.arguments import Mistake
from kerf.cli.gathering import sources
from kerf.cli.gathering.sources import Source
from kerf.cli.manifests import documents
from kerf.cli.manifests.nodes import Node, Place, Unreadable
from kerf.cli.verbs.simulation import shapes
from kerf.simulating import checking, reading, targets
from kerf.simulating.reading import BadScenario, Path, missing
from kerf.simulating.scenario import Replicas, Scenario, Setup, Step
from kerf.simulating.world import Case
from kerf.snapshots.captured import Captured

#: Kinds that `--nodepools` replaces.
_OVERLAY: Final = "NodeOverlay"
_NODE_POOLS: Final = ("NodePool", "EC2NodeClass", _OVERLAY)


class File:
    """A scenario file: its text, its document and the places of its values."""

    def __init__(self, name: str) -> None:
        """Raises Mistake."""
        self.name, self._folder = name, os.path.dirname(name)
        data = _data(name)
        self._node, self.text = _document(name, data), data.decode(errors="replace")

    def case(self, node_pools: str = "") -> Case:
        """The scenario with the content of its files. `node_pools` names files whose NodePools, EC2NodeClasses and
        NodeOverlays are used instead of the scenario's. Raises Mistake.
        """
        try:
            scenario = reading.read(self._node.value)
            checking.check(scenario)
            _require_workloads(scenario)
            found = Case(
                scenario,
                self._captured(scenario),
                tuple(self._manifests(("world",), "manifests", scenario.world)),
                {number: tuple(self._step(number, scenario)) for number in range(len(scenario.timeline))},
                dict(self._replicas(scenario)),
            )
            whole = self._with(found, node_pools) if node_pools else found
            targets.require(whole)
            return whole
        except BadScenario as error:
            raise self.mistake(error) from error

    def mistake(self, error: BadScenario) -> Mistake:
        """The error with its place in the file."""
        place = _place(self._node, error.path)
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path).removeprefix(".")
        return Mistake(f"{self.name}:{place.line}:{place.column}: {steps or 'the file'}: {error}")

    def _with(self, found: Case, node_pools: str) -> Case:
        """The case with these objects. A kind that they lack stays the scenario's, but for NodeOverlays."""
        own = tuple(one for one in _objects([node_pools]) if one["kind"] in _NODE_POOLS)
        if not own:
            raise Mistake(f"--nodepools {node_pools}: there is no NodePool or EC2NodeClass in it")
        if found.captured is not None:
            words = "the world is a snapshot, whose NodePools would stay; use a scenario with world.manifests"
            raise Mistake(f"--nodepools {node_pools}: {words}")
        replaced = {one["kind"] for one in own} | {_OVERLAY}
        rest = tuple(one for one in found.manifests if one.get("kind") not in replaced)
        return replace(found, manifests=(*rest, *own))

    def _captured(self, scenario: Scenario) -> Captured | None:
        if not scenario.world.snapshot:
            return None
        try:
            return captures.of_file(self._path(scenario.world.snapshot))
        except Mistake as error:
            raise BadScenario(("world", "snapshot"), str(error)) from error

    def _step(self, number: int, scenario: Scenario) -> Iterator[Mapping[str, Any]]:
        yield from self._manifests(("timeline", number), "apply", scenario.timeline[number])

    def _manifests(self, path: Path, field: str, part: Setup | Step) -> Iterator[Mapping[str, Any]]:
        """The objects of the files and folders of a field, and those in place."""
        for number, name in enumerate(getattr(part, field)):
            try:
                yield from _objects([self._path(name)])
            except Mistake as error:
                raise BadScenario((*path, field, number), str(error)) from error
        for number, one in enumerate(part.objects):
            place: Path = (*path, "objects", number)
            if one.get("kind") not in shapes.USED:
                raise BadScenario((*place, "kind"), missing("kind", str(one.get("kind", "")), shapes.USED))
            for steps, words in shapes.faults(one):
                raise BadScenario((*place, *steps), f"the API server refuses {_named(one)}: {words}")
            yield one

    def _replicas(self, scenario: Scenario) -> Iterator[tuple[str, tuple[Replicas, ...]]]:
        for number, workload in enumerate(scenario.workloads):
            if workload.replicas_file:
                path: Path = ("workloads", number, "replicasFile")
                try:
                    data = Source(self._path(workload.replicas_file)).read()
                    yield workload.replicas_file, reading.replicas(data.decode(), scenario.duration.value)
                except (OSError, ValueError) as error:
                    words = getattr(error, "strerror", "") or str(error)
                    raise BadScenario(path, f"{workload.replicas_file}: {words}") from error

    def _path(self, name: str) -> str:
        """A file that the scenario names, relative to its folder."""
        return os.path.join(self._folder, name)


def _data(name: str) -> bytes:
    """The bytes of a file. Raises Mistake."""
    try:
        return sources.named(name).read()
    except OSError as error:
        raise Mistake(f"{name}: {error.strerror or error}") from error


def _document(name: str, data: bytes) -> Node:
    """The only document of a file. Raises Mistake."""
    found = list(documents.read(data))
    if len(found) != 1:
        raise Mistake(f"{name}: {len(found)} YAML documents; a scenario is one")
    if isinstance(found[0], Unreadable):
        place = found[0].place
        raise Mistake(f"{name}:{place.line}:{place.column}: {found[0].message}")
    return found[0].node


def _objects(paths: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The objects in files and folders, of the kinds that a simulation uses. Raises Mistake."""
    try:
        for source in sources.find(list(paths)):
            for place, one in cluster_files.manifests(source):
                if shapes.is_unknown(one):
                    raise Mistake(f"{place}: {missing('kind', str(one.get('kind', '')), shapes.USED)}")
                if one.get("kind") not in shapes.USED:
                    continue
                for steps, words in shapes.faults(one):
                    where = ".".join(map(str, steps))
                    raise Mistake(f"{place}: the API server refuses {_named(one)}: {where}: {words}")
                yield one
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error


def _named(manifest: Mapping[str, Any]) -> str:
    meta = manifest.get("metadata")
    return f"{manifest['kind']} {meta.get('name', '') if isinstance(meta, Mapping) else ''}".rstrip()


def _require_workloads(scenario: Scenario) -> None:
    """Refuse fields of pods and of PodDisruptionBudgets that no API server knows. Raises BadScenario."""
    for number, one in enumerate(scenario.workloads):
        for steps, words in shapes.workload_faults(one):
            raise BadScenario(("workloads", number, *steps), words)


def _place(node: Node, path: Path) -> Place:
    """The place of the value at a path, or of the last part of the path that exists: of a field its name."""
    found = node.start
    for step in path:
        below, key = node.below.get(step), node.keys.get(str(step))
        if below is None:
            return found
        node, found = below, key.start if key is not None else below.start
    return found
