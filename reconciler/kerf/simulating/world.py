"""The world of a scenario: the sandbox with its account, settings and first objects, or a snapshot's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, Final

from kerf.model.settings import Settings
from kerf.planning.worlds import Unplannable, restored
from kerf.ports import Ports
from kerf.runtime.parts import Parts
from kerf.runtime.settings import settings as variables
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import ZONES, World
from kerf.simulating.account import SimulatedCloud
from kerf.simulating.catalogues import SHARED
from kerf.simulating.reading import BadScenario, Path, missing
from kerf.simulating.scenario import NodeTimes, Replicas, Scenario
from kerf.simulating.shortages import NotingSnapshotCloud, Shortages
from kerf.simulating.throttling import Throttling
from kerf.snapshots.captured import Captured
from kerf_api.approval import OFF

#: What exists before others refer to it.
_FIRST: Final = ("Namespace", "PriorityClass", "StorageClass", "EC2NodeClass", "NodePool")
_CLUSTER: Final = "sandbox"


@dataclass(frozen=True, slots=True)
class Given:
    """An object of a scenario: its entry, and its place `file:line` if it is in another file."""

    path: Path
    manifest: Mapping[str, Any]
    place: str = ""

    @property
    def kind(self) -> str:
        return str(self.manifest.get("kind"))


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with the content of its files.

    Attributes:
        scenario: the scenario file.
        captured: the snapshot of the world, if it has one.
        manifests: the objects of `world.manifests` and `world.objects`.
        applied: the objects of each step of the timeline, by its index.
        replicas: the rows of the CSV files, by their names in the scenario.
        unused: warnings about objects that have no effect.
        autoscaler: the model that consolidates instead of Kerf (`autoscalers/models.py`); empty for Kerf.
    """

    scenario: Scenario
    captured: Captured | None = None
    manifests: tuple[Given, ...] = ()
    applied: Mapping[int, tuple[Given, ...]] = field(default_factory=dict)
    replicas: Mapping[str, tuple[Replicas, ...]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    autoscaler: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A world that is ready to run, with the ports, parts and settings of its controller."""

    world: World
    ports: Ports
    parts: Parts
    settings: Settings
    throttling: Throttling
    shortages: Shortages


def staged(case: Case, seed: int) -> Stage:
    """The world of a case before its first object of the scenario. Raises BadScenario."""
    if case.captured is not None:
        return _of_snapshot(case.captured, case.scenario, seed)
    setup = case.scenario.world
    zones, types = setup.zones or ZONES, setup.instance_types or None
    throttling = Throttling()
    world = World(
        seed=seed, zones=tuple(zones), types=types, weather=changed(Weather(), setup.nodes), faults=throttling
    )
    throttling.now = world.clock.now
    cloud = SimulatedCloud(world.ec2, world.clock, throttling, _CLUSTER)
    cloud.shortages = Shortages(world.clock.now)
    ports = Ports(world.kube, cloud, world.clock)
    return Stage(world, ports, Parts(build=SHARED), settings_of(setup.settings), throttling, cloud.shortages)


def _of_snapshot(captured: Captured, scenario: Scenario, seed: int) -> Stage:
    throttling = Throttling()
    try:
        found = restored(captured, seed, throttling)
    except Unplannable as error:
        raise BadScenario(("world", "snapshot"), str(error)) from error
    if scenario.world.settings:
        raise BadScenario(("world", "settings"), "the settings are those of the snapshot; remove them")
    throttling.now = found.world.clock.now
    found.world.ec2.weather = changed(found.world.ec2.weather, scenario.world.nodes)
    cloud = NotingSnapshotCloud(found.world.ec2, found.world.clock, captured.snapshot, throttling)
    cloud.shortages = Shortages(found.world.clock.now)
    own = replace(captured.snapshot.settings, plan_first=OFF)
    ports = replace(found.ports, cloud=cloud)
    return Stage(found.world, ports, Parts(keys=found.keys, build=SHARED), own, throttling, cloud.shortages)


def ordered(given: Iterable[Given]) -> list[Given]:
    """Objects that others refer to come first."""
    rank = {kind: number for number, kind in enumerate(_FIRST)}
    return sorted(given, key=lambda one: rank.get(one.kind, len(rank)))


def changed(weather: Weather, times: NodeTimes) -> Weather:
    """The weather with the given times and shares."""
    spans = {"boot_seconds": times.boot, "ready_seconds": times.ready, "pod_start_seconds": times.pod_start}
    rates = {
        "boot_failure_rate": times.unregistered_share,
        "ready_failure_rate": times.unready_share,
        "spot_reclaim_per_hour": times.spot_interruptions_per_hour,
        "stock_out_rate": times.out_of_stock_share,
    }
    seconds: dict[str, Any] = {name: one.value / timedelta(seconds=1) for name, one in spans.items() if one is not None}
    given: dict[str, Any] = {name: rate for name, rate in rates.items() if rate is not None}
    return replace(weather, **seconds, **given)


def settings_of(given: Mapping[str, str]) -> Settings:
    """The settings of a controller with these variables. Raises BadScenario."""
    known = {option.metadata["env"] for option in fields(Options)}
    for name in given:
        if name not in known:
            raise BadScenario(("world", "settings", name), missing("setting", name, known))
    if "CLUSTER_NAME" in given:
        raise BadScenario(("world", "settings", "CLUSTER_NAME"), f"the simulated cluster is {_CLUSTER}; remove it")
    try:
        found = variables.parse((), {"INTERRUPTION_QUEUE": _CLUSTER, **given, "CLUSTER_NAME": _CLUSTER})
    except SettingsError as error:
        raise BadScenario(("world", "settings"), "; ".join(error.problems)) from error
    return found.settings
