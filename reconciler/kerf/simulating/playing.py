"""Run a scenario: the controller at work in its world, with workloads, weather and an observer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from kerf.model import kinds
from kerf.model.plan import Plan
from kerf.ports import AlreadyGone, PortError
from kerf.runtime.controller import Controller
from kerf.sandbox.api.admission import Refused
from kerf.sandbox.calm import Calm
from kerf.sandbox.world import World
from kerf.simulating import asserting, misses
from kerf.simulating.autoscalers import models
from kerf.simulating.observed import Observed
from kerf.simulating.observing import Observer
from kerf.simulating.reading import BadScenario, Path
from kerf.simulating.results import Figures, Point, Result, Verdict
from kerf.simulating.scenario import Assertion, Scenario
from kerf.simulating.weather import Happenings
from kerf.simulating.workloads import manifests, rows
from kerf.simulating.world import Case, Given, ordered, staged

_MICRO: Final = 1_000_000
#: Errors of the simulated cluster with an object that it cannot use.
BROKEN: Final = (PortError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


class Play:
    """One run of a case. Raises BadScenario."""

    def __init__(self, case: Case, seed: int) -> None:
        stage = staged(case, seed)
        self._case, self._seed, self._world = case, seed, stage.world
        parts = models.parts(case.autoscaler, stage.parts, stage.world)
        self._controller = Controller(stage.ports, parts, settings=stage.settings, inline=True)
        self._calm = Calm(stage.world)
        self._later: datetime | None = None
        self._observer = Observer(stage.world)
        self._happenings = Happenings(stage, self._observer)
        self._refusals: dict[str, str] = {}

    def run(self) -> Result:
        """Run the whole scenario."""
        scenario, seen = self._case.scenario, self._observer.observed
        seen.measured = seen.began + scenario.warmed
        self._prepare(scenario)
        self._world.run(self, seen.began + scenario.duration.value)
        self._observer.end(self._refusals)
        self._happenings.end()
        verdicts = tuple(_verdict(number, one, seen) for number, one in enumerate(scenario.assertions))
        series = tuple(Point(one.at - seen.began, one.nodes, one.price / _MICRO) for one in seen.levels)
        warnings = (*self._case.unused, *self._happenings.misses, *misses.of_assertions(scenario, seen))
        return Result(scenario.name, self._seed, scenario.duration.value, _figures(seen), verdicts, series, warnings)

    # --- as the world's loop calls it -----------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        return self._later or self._controller.next_due

    def tick(self) -> Plan:
        diary = self._observer.diary
        diary.acting = True
        try:
            plan = self._controller.tick()
        finally:
            diary.acting = False
        now = {one.subject: str(one.reason) for one in plan.refusals}
        kept = {key: why for key, why in self._refusals.items() if key.startswith("pod/")}
        self._refusals = {**kept, **now}
        self._observer.refused(self._refusals)
        self._later = self._calm.until(plan, self._controller.next_due)
        return plan

    # --- the agenda -----------------------------------------------------------------------------------------------
    def _prepare(self, scenario: Scenario) -> None:
        """Apply the first objects, and note all else for its time."""
        for given in ordered(self._case.manifests):
            self._apply(given)
        for number, workload in enumerate(scenario.workloads):
            for manifest in manifests(workload):
                self._apply(Given(("workloads", number), manifest))
            name = f"{workload.namespace}/{workload.name}"
            for row in rows(workload, self._case.replicas):
                self._at(row.at.value, ("workloads", number), partial(self._scale, name, row.replicas))
        for number, step in enumerate(scenario.timeline):
            path: Path = ("timeline", number)
            for given in ordered(self._case.applied.get(number, ())):
                self._at(step.at.value, given.path, partial(self._apply, given))
            for name, replicas in step.scale.items():
                self._at(step.at.value, (*path, "scale", name), partial(self._scale, name, replicas))
            for index, name in enumerate(step.delete):
                self._at(step.at.value, (*path, "delete", index), partial(self._delete, name))
        for number, event in enumerate(scenario.weather):
            self._at(event.at.value, ("weather", number), partial(self._happenings.happen, number, event))

    def _at(self, time: timedelta, path: Path, act: Callable[[], None]) -> None:
        self._world.agenda.at(self._observer.observed.began + time, partial(_with_path, path, act))

    def _apply(self, given: Given) -> None:
        _with_path(given.path, partial(self._world.apply, given.manifest), _where(given))

    def _scale(self, name: str, replicas: int) -> None:
        space, _, own = name.rpartition("/")
        try:
            scale(self._world, space or "default", own, replicas)
        except AlreadyGone as error:
            raise Impossible(f"there is no Deployment {name} to scale; check its name and namespace") from error

    def _delete(self, name: str) -> None:
        kind, _, rest = name.partition("/")
        space, _, own = rest.rpartition("/")
        try:
            self._world.delete(kind, own, space)
        except (PortError, Refused) as error:
            raise Impossible(f"there is no {name} to delete; write KIND/NAME or KIND/NAMESPACE/NAME") from error


class Impossible(ValueError):
    """An entry that the simulated cluster cannot carry out; the text states the problem and the fix."""


def broken(error: Exception) -> str:
    """The message for an error of the simulated cluster, one of BROKEN."""
    words = f"{type(error).__name__}: {error}; check the fields of the manifests that this scenario names"
    return f"the simulated cluster cannot use an object: {words}"


def _with_path(path: Path, act: Callable[[], object], where: str = "") -> None:
    """Do what an entry of the scenario says. Raises BadScenario with the path of the entry."""
    try:
        act()
    except Impossible as error:
        raise BadScenario(path, str(error)) from error
    except Refused as error:
        raise BadScenario(path, f"{where}: {error}; change the object" if where else str(error)) from error
    except BROKEN as error:
        raise BadScenario(path, broken(error)) from error


def _verdict(number: int, assertion: Assertion, seen: Observed) -> Verdict:
    try:
        return asserting.judged(assertion, seen)
    except BROKEN as error:
        raise BadScenario(("assertions", number), broken(error)) from error


def _where(given: Given) -> str:
    place = f"{given.place}: " if given.place else ""
    return f"{place}the API server refuses {_object(given.manifest)}"


def scale(world: World, namespace: str, deployment: str, replicas: int) -> None:
    """Scale a Deployment; of a snapshot's, which is paused or unknown, its ReplicaSet. Raises AlreadyGone."""
    record = world.server.find(kinds.DEPLOYMENT, namespace, deployment)
    if record is not None and not record.manifest["spec"].get("paused"):
        world.scale(namespace, deployment, replicas)
        return
    sets = [one for one in world.server.records(kinds.REPLICA_SET, namespace) if _set_of(one.key[1], deployment)]
    newest = max(sets, key=lambda one: (int(one.manifest["spec"].get("replicas", 0)), one.key), default=None)
    if newest is None:
        raise AlreadyGone(f"no ReplicaSet of Deployment {deployment}")
    world.server.patch(kinds.REPLICA_SET, *newest.key, {"spec": {"replicas": replicas}})


def _set_of(name: str, deployment: str) -> bool:
    """Whether a ReplicaSet has the name of one of a Deployment: its name and a hash without a dash."""
    return name.rpartition("-")[0] == deployment


def _object(manifest: Mapping[str, Any]) -> str:
    meta = manifest.get("metadata")
    name = meta.get("name", "") if isinstance(meta, Mapping) else ""
    return f"{manifest.get('kind', 'an object without a kind')} {name}".rstrip()


def _figures(seen: Observed) -> Figures:
    pods = [one for one in seen.pods if one.created >= seen.measured]
    launched = [one for one in seen.nodes if one.instance_type]  # others found no capacity
    return Figures(
        cost=round(asserting.cost(seen), 4),
        nodes_most=max(one.nodes for one in seen.measured_levels),
        nodes_at_end=seen.levels[-1].nodes,
        launched=sum(one.created >= seen.measured for one in launched),
        evictions=sum(one.at >= seen.measured for one in seen.evictions),
        disruptions=sum(one.ending is not None and one.ending >= seen.measured for one in launched),
        pods_started=sum(one.started is not None for one in pods),
        unscheduled=sum(one.started is None and one.stopped is None for one in seen.pods),
        slowest=max((asserting.wait(one, seen) for one in pods if one.started), default=timedelta(0)),
    )
