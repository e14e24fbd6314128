"""The loads: what pods come and go when. Both sides get the same, of the same seed.

Sizes are for 1,000 pods in the load (a); other sizes are in proportion (`Size`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from benchmarks.clusters import pod_sizes
from benchmarks.race.days import day
from benchmarks.race.sizes import Size
from benchmarks.race.stage import Stage, Step
from benchmarks.scale_down.load import DEPLOYMENTS
from kerf_api import labels
from tests.cluster.stages import COMPLETES_AFTER
from tests.worlds import deployment, stateful_set, storage_class

Json = dict[str, Any]
BOTH_MARKETS: Final = (labels.ON_DEMAND, labels.SPOT)


def _nothing(stage: Stage, size: Size) -> None:
    """Nothing is there before the load."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that takes so many `seconds`. `before` makes what is there at its beginning; with `rests` all of that runs
    first, and nothing has changed for a minute. With `volumes` a provisioner makes them."""

    title: str
    seconds: float
    steps: Callable[[Size, Random], Iterator[Step]]
    before: Callable[[Stage, Size], None] = _nothing
    rests: bool = False
    volumes: bool = False
    markets: tuple[str, ...] = (labels.ON_DEMAND,)


def _services(replicas: int, dice: Random) -> list[Json]:
    """As many Deployments of different sizes as a scale-down has."""
    sizes = enumerate(pod_sizes(DEPLOYMENTS, dice))
    return [
        deployment(f"d{number}", {"replicas": replicas, "cpu": f"{cpu}m", "memory": f"{memory}Mi"})
        for number, (cpu, memory) in sizes
    ]


# --- at once, by and by, scaled down ----------------------------------------------------------------------------------
def at_once(size: Size, dice: Random) -> Iterator[Step]:
    """All pods in one second."""
    yield 0.0, lambda stage: stage.apply(_services(size(50), dice))


def empty_services(stage: Stage, size: Size) -> None:
    """Deployments without pods."""
    stage.apply(_services(0, stage.dice))


def by_and_by(size: Size, dice: Random) -> Iterator[Step]:
    """Ten pods a second for a minute: in each second another Deployment grows by ten."""
    for second in range(60):
        replicas = size(10) * (second // DEPLOYMENTS + 1)
        yield float(second), partial(Stage.scale, name=f"d{second % DEPLOYMENTS}", replicas=replicas)


def full_services(stage: Stage, size: Size) -> None:
    """Deployments with all of their pods."""
    stage.apply(_services(size(75), stage.dice))


def scaled_down(size: Size, dice: Random) -> Iterator[Step]:
    """All Deployments shrink at once, to two fifths of their pods."""

    def shrink(stage: Stage) -> None:
        stage.cluster.kubectl("scale", "deployment", "--all", f"--replicas={size(30)}")

    yield 0.0, shrink


# --- bursts of Jobs ---------------------------------------------------------------------------------------------------
BURSTS, BURST_SECONDS, JOB_SECONDS = 4, 120.0, 45


def bursts(size: Size, dice: Random) -> Iterator[Step]:
    """Five Jobs of forty pods every two minutes, each of which runs for 45 seconds."""
    sizes = pod_sizes(5, dice)
    for number in range(BURSTS):
        jobs = [_job(f"j{number}-{which}", size(40), *one) for which, one in enumerate(sizes)]
        yield BURST_SECONDS * number, partial(Stage.apply, manifests=jobs)


def _job(name: str, pods: int, cpu_millis: int, memory_mib: int) -> Json:
    requests = {"cpu": f"{cpu_millis}m", "memory": f"{memory_mib}Mi"}
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    metadata = {"labels": {"app": name}, "annotations": {COMPLETES_AFTER: str(JOB_SECONDS)}}
    template = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
    # An eviction counts as a failure of the Job's pod; it must not end the Job.
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 10 * pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


# --- volumes and spreads ----------------------------------------------------------------------------------------------
def volume_class(stage: Stage, size: Size) -> None:
    """The StorageClass of the volumes."""
    stage.apply([storage_class()])


def spreads(size: Size, dice: Random) -> Iterator[Step]:
    """A StatefulSet with volumes and spread over zones; beside it services with a hard spread over zones, a soft one
    over zones, a soft one over hosts, or none."""
    rules: tuple[Mapping[str, Any], ...] = (
        _spread(labels.ZONE, "DoNotSchedule"),
        _spread(labels.ZONE, "ScheduleAnyway"),
        _spread(labels.HOSTNAME, "ScheduleAnyway"),
        {},
    )
    data = {"replicas": size(24), "cpu": "1", "memory": "4Gi", **_named(rules[0], "data")}
    manifests = [stateful_set("data", data)]
    manifests[0]["spec"]["podManagementPolicy"] = "Parallel"
    (claim,) = manifests[0]["spec"]["volumeClaimTemplates"]
    claim["spec"]["resources"] = {"requests": {"storage": "10Gi"}}
    for number, (cpu, memory) in enumerate(pod_sizes(12, dice)):
        name = f"s{number}"
        given = {"replicas": size(25), "cpu": f"{cpu}m", "memory": f"{memory}Mi", **_named(rules[number % 4], name)}
        manifests.append(deployment(name, given))
    yield 0.0, partial(Stage.apply, manifests=manifests)


def _spread(key: str, otherwise: str) -> Json:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": otherwise}


def _named(rule: Mapping[str, Any], name: str) -> Json:
    """The part of a pod's spec that spreads the pods of this name; nothing without a rule."""
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": name}}}]} if rule else {}


LOADS: Final[dict[str, Load]] = {
    "a": Load("1,000 pods of 20 Deployments at once", 180.0, at_once),
    "b": Load("600 pods, ten a second", 240.0, by_and_by, empty_services),
    "c": Load("200 pods of Jobs every two minutes", 540.0, bursts),
    "d": Load("volumes, hard and soft spreads, spot", 240.0, spreads, volume_class, volumes=True, markets=BOTH_MARKETS),
    "e": Load("a day in 40 minutes, reclaims and a stock-out", 2400.0, day, markets=BOTH_MARKETS),
    "f": Load("1,500 pods scaled down to 600", 300.0, scaled_down, full_services, rests=True),
}
