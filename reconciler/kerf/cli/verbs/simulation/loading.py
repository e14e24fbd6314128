"""Read a scenario and the files that it names. Errors state file, line and column, the path in the file and the fix."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kerf.cli.answering import captures
from kerf.cli.arguments import Mistake
from kerf.cli.gathering import sources
from kerf.cli.gathering.sources import Source
from kerf.cli.verbs.simulation import objects, shapes
from kerf.simulating import checking, reading, targets
from kerf.simulating.objects import unused
from kerf.simulating.reading import BadScenario, Path, missing
from kerf.simulating.scenario import Replicas, Scenario, Setup, Step
from kerf.simulating.world import Case, Given
from kerf.snapshots.captured import Captured
from kerf_api.lint.reading.stored import stored

#: Kinds that `--nodepools` replaces.
_OVERLAY: Final = "NodeOverlay"
_NODE_POOLS: Final = ("NodePool", "EC2NodeClass", _OVERLAY)


class File:
    """A scenario file: its text, its document and the places of its values."""

    def __init__(self, name: str) -> None:
        """Raises Mistake."""
        self.name, self._folder = name, os.path.dirname(name)
        data = _data(name)
        self._unused = list[str]()
        self._node, self.text = objects.only_document(name, data), data.decode(errors="replace")

    def case(self, node_pools: str = "") -> Case:
        """The scenario with the content of its files. `node_pools` names files whose NodePools, EC2NodeClasses and
        NodeOverlays are used instead of the scenario's. Raises Mistake.
        """
        self._unused.clear()
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
            return replace(whole, unused=(*dict.fromkeys(self._unused), *unused.budgets(whole)))
        except BadScenario as error:
            raise self.mistake(error) from error

    def mistake(self, error: BadScenario) -> Mistake:
        """The error with its place in the file."""
        place = objects.place(self._node, error.path)
        steps = reading.steps(error.path)
        return Mistake(f"{self.name}:{place.line}:{place.column}: {steps or 'the file'}: {error}")

    def _with(self, found: Case, node_pools: str) -> Case:
        """The case with these objects. A kind that they lack stays the scenario's, but for NodeOverlays."""
        try:
            every = [Given(("world",), one, place) for place, one in objects.of(node_pools)]
        except Mistake as error:
            raise Mistake(f"--nodepools {node_pools}: {error}") from error
        own = tuple(one for one in every if one.kind in _NODE_POOLS)
        if not own:
            raise Mistake(f"--nodepools {node_pools}: there is no NodePool or EC2NodeClass in it")
        if found.captured is not None:
            words = "the world is a snapshot, whose NodePools would stay; use a scenario with world.manifests"
            raise Mistake(f"--nodepools {node_pools}: {words}")
        replaced = {one.kind for one in own} | {_OVERLAY}
        rest = tuple(one for one in found.manifests if one.kind not in replaced)
        return replace(found, manifests=(*rest, *own))

    def _captured(self, scenario: Scenario) -> Captured | None:
        if not scenario.world.snapshot:
            return None
        try:
            return captures.of_file(self._path(scenario.world.snapshot))
        except Mistake as error:
            raise BadScenario(("world", "snapshot"), str(error)) from error

    def _step(self, number: int, scenario: Scenario) -> Iterator[Given]:
        yield from self._manifests(("timeline", number), "apply", scenario.timeline[number])

    def _manifests(self, path: Path, field: str, part: Setup | Step) -> Iterator[Given]:
        """The objects of the files and folders of a field, and those in place."""
        for number, name in enumerate(getattr(part, field)):
            own: Path = (*path, field, number)
            note = partial(self._note, own)
            try:
                yield from (Given(own, one, where) for where, one in objects.of(self._path(name), note))
            except Mistake as error:
                raise BadScenario(own, str(error)) from error
        for number, one in enumerate(map(stored, part.objects)):
            place: Path = (*path, "objects", number)
            if one.get("kind") not in shapes.USED:
                kind = str(one.get("kind", ""))
                raise BadScenario((*place, "kind"), unused.not_run(kind) or missing("kind", kind, shapes.USED))
            for steps, words in shapes.faults(one):
                raise BadScenario((*place, *steps), f"{shapes.refused(steps, objects.named(one))}: {words}")
            yield Given(place, one)

    def _note(self, path: Path, where: str, manifest: Mapping[str, Any]) -> None:
        """Note the warning for an object that has no effect."""
        if words := unused.warning(Given(path, manifest, where)):
            self._unused.append(words)

    def _replicas(self, scenario: Scenario) -> Iterator[tuple[str, tuple[Replicas, ...]]]:
        for number, workload in enumerate(scenario.workloads):
            if workload.replicas_file:
                path: Path = ("workloads", number, "replicasFile")
                try:
                    data = Source(self._path(workload.replicas_file)).read()
                    yield workload.replicas_file, reading.replicas(data.decode(), scenario.duration.value)
                except UnicodeDecodeError as error:
                    raise BadScenario(path, f"{workload.replicas_file}: no text in UTF-8; save it as UTF-8") from error
                except (OSError, ValueError) as error:
                    words = getattr(error, "strerror", "") or str(error)
                    raise BadScenario(path, f"{workload.replicas_file}: {words}") from error

    def _path(self, name: str) -> str:
        """A file that the scenario names, relative to its folder."""
        return name if name == sources.STDIN else os.path.join(self._folder, name)


def _data(name: str) -> bytes:
    """The bytes of a file. Raises Mistake."""
    try:
        return sources.named(name).read()
    except OSError as error:
        raise Mistake(f"{name}: {error.strerror or error}") from error


def _require_workloads(scenario: Scenario) -> None:
    """Refuse fields of pods and of PodDisruptionBudgets that no API server knows. Raises BadScenario."""
    for number, one in enumerate(scenario.workloads):
        for steps, words in shapes.workload_faults(one):
            raise BadScenario(("workloads", number, *steps), words)
