"""Rules between the fields of a scenario, and of values beyond their types. Each raises BadScenario with the place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kerf.disruption.forced import interruption
from kerf.simulating.reading import BadScenario, Path, camel, missing
from kerf.simulating.scenario import (
    LONGEST,
    Assertion,
    NodeTimes,
    Part,
    Scenario,
    Span,
    Weather,
    Workload,
    shortest,
)
from kerf.simulating.workloads import requests
from kerf_api.quantity import amount
from kerf_api.v1 import budgets

#: The reasons of a disruption, as Karpenter names them; `Deleted` is a deletion by another client.
REASONS: Final = (
    *budgets.REASONS,
    budgets.EXPIRED,
    *sorted(interruption.CODES),
    *("Unhealthy", "InstanceStatusFailed", "CapacityBlockExpiring", "ScaledDown"),
    *("GarbageCollected", "NodeLost", "Deleted"),
)
_NAME: Final = re.compile(r"[a-z0-9]+(?:-+[a-z0-9]+)*")
_LONGEST_NAME: Final = 63
#: Its last part is a number and a letter, as in `us-west-2a` and `us-west-2-lax-1a`.
_ZONE: Final = re.compile(r"[a-z]{2}(?:-[a-z0-9]+){2,6}")
_END_OF_ZONE: Final = re.compile(r"[0-9]+[a-z]")


def check(found: Scenario) -> None:
    """Raises BadScenario."""
    _check_world(found)
    for number, one in enumerate(found.assertions):
        _check_assertion(("assertions", number), one, found)
    for number, step in enumerate(found.timeline):
        path: Path = ("timeline", number)
        _require_before_end((*path, "at"), step.at, found)
        if not _given(step, "at"):
            raise BadScenario(path, "there is nothing to do; add apply, objects, delete or scale")
    for number, event in enumerate(found.weather):
        path = ("weather", number)
        _require_before_end((*path, "at"), event.at, found)
        _single(path, _given(event, "at"), "event")
        _check_event(path, event)
    for number, workload in enumerate(found.workloads):
        _check_workload(("workloads", number), workload, found)
    _unique(("workloads",), "name", [f"{one.namespace}/{one.name}" for one in found.workloads])


def _check_world(found: Scenario) -> None:
    if not found.warmed < found.duration.value <= LONGEST:
        words = f"{found.duration} must be longer than warmUp ({shortest(found.warmed)}) and at most 744h"
        raise BadScenario(("duration",), words)
    world = found.world
    if world.snapshot and (world.zones or world.instance_types):
        raise BadScenario(("world", "snapshot"), "zones and instanceTypes are those of the snapshot; remove them")
    for number, zone in enumerate(world.zones):
        if not _is_zone(zone) or zone in world.zones[:number]:
            words = "is listed twice; remove one" if zone in world.zones[:number] else "is no zone; write us-west-2a"
            raise BadScenario(("world", "zones", number), f"{zone} {words}")


def _is_zone(text: str) -> bool:
    return bool(_ZONE.fullmatch(text) and _END_OF_ZONE.fullmatch(text.rpartition("-")[2]))


def _check_assertion(path: Path, one: Assertion, found: Scenario) -> None:
    _single(path, _given(one), "assertion")
    within, measured = one.pods_run_within, found.duration.value - found.warmed
    if within is not None and within.duration.value > measured:
        words = (
            f"{within.duration} is longer than the time after the warm-up ({shortest(measured)}): no pod can violate it"
        )
        raise BadScenario((*path, "podsRunWithin", "duration"), f"{words}; write a shorter one")
    given = one.disruptions_per_hour
    for number, reason in enumerate(given.reasons if given is not None else ()):
        if reason not in REASONS:
            words = missing("reason", reason, REASONS)
            raise BadScenario((*path, "disruptionsPerHour", "reasons", number), words)


def _check_event(path: Path, event: Weather) -> None:
    throttle = event.throttle
    if throttle is not None and throttle.api == "kubernetes" and throttle.calls:
        raise BadScenario((*path, "throttle", "calls"), "these are calls of aws; remove calls or write api: aws")
    if event.nodes is not None and event.nodes == NodeTimes():
        raise BadScenario((*path, "nodes"), "there is nothing to change; add a field such as boot")
    price = event.price
    if price is not None and price.zones and price.capacity_types != ("spot",):
        words = "on-demand prices are those of all zones; write capacityTypes: [spot], or remove zones"
        raise BadScenario((*path, "price", "zones"), words)
    for name in event.__struct_fields__:
        span = getattr(getattr(event, name), "for_", None)
        if span is not None and not span.value:
            raise BadScenario((*path, camel(name), "for"), "0s has no effect; write a longer time")


def _check_workload(path: Path, one: Workload, found: Scenario) -> None:
    for field in ("name", "namespace"):
        name = getattr(one, field)
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            words = f"{name!r} is no name of at most {_LONGEST_NAME} characters: write lower case letters, digits and -"
            raise BadScenario((*path, field), words)
    for resource, written in requests(one).items():
        _check_amount((*path, resource), resource, written)
    if one.replicas_file and one.over_time:
        raise BadScenario((*path, "overTime"), "replicasFile gives the replicas already; remove one of both")
    for number, row in enumerate(one.over_time):
        _require_before_end((*path, "overTime", number, "at"), row.at, found)
    _unique((*path, "overTime"), "at", [str(row.at) for row in one.over_time])


def _check_amount(path: Path, resource: str, written: str) -> None:
    try:
        number = amount(resource, written)
    except ValueError as error:
        raise BadScenario(path, str(error)) from error
    if resource == "memory" and written.endswith("m"):
        raise BadScenario(path, f"{written} is less than a byte for each unit; write {written[:-1]}Mi")
    if number < 0:
        raise BadScenario(path, f"{written} is below 0; write a quantity such as 500m or 2Gi")


def _require_before_end(path: Path, at: Span, found: Scenario) -> None:
    if at.value >= found.duration.value:
        words = (
            f"{at} is not before the end of the scenario ({found.duration}); write an earlier time or a longer duration"
        )
        raise BadScenario(path, words)


def _unique(path: Path, field: str, names: Iterable[str]) -> None:
    seen: Counter[str] = Counter()
    for number, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            raise BadScenario((*path, number, field), f"two entries have the {field} {name}; change one")


def _single(path: Path, given: Mapping[str, Any], word: str) -> None:
    if len(given) != 1:
        have = ", ".join(given) or "none"
        raise BadScenario(path, f"exactly one {word} is required, found {have}; write one entry for each")


def _given(part: Part, *without: str) -> dict[str, Any]:
    """The fields of a part that are set, by their names in the file."""
    pairs = zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    found = ((name, getattr(part, own)) for own, name in pairs if name not in without)
    return {name: value for name, value in found if value is not None and value not in ((), {})}
