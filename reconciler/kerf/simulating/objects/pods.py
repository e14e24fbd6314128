"""Names in the pods of a scenario that no node and no object of the world can have: labels, PriorityClasses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from kerf.simulating.objects.pools import near_label, refused
from kerf.simulating.reading import BadScenario, Path, missing
from kerf.simulating.scenario import Scenario
from kerf.simulating.workloads import manifests
from kerf.simulating.world import Given
from kerf_api.lint.reading.reading import entries, mapping, part
from kerf_api.lint.reading.workloads import pod_spec

_AFFINITY: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def require(scenario: Scenario, given: Iterable[Given]) -> None:
    """Refuse a label that looks like a well-known one and is none. Raises BadScenario."""
    for number, workload in enumerate(scenario.workloads):
        for place, key in _labels(workload.pod):
            if words := near_label(key):
                raise BadScenario(("workloads", number, "pod", *place), words)
    for one in given:
        steps = pod_spec(one.manifest)
        for place, key in _labels(part(dict(one.manifest), *map(str, steps or ())) if steps else {}):
            if words := near_label(key):
                raise refused(one, (*(steps or ()), *place), words)


def require_priorities(scenario: Scenario, given: Iterable[Given], classes: Collection[str]) -> None:
    """Refuse a PriorityClass that the world does not have. Raises BadScenario."""
    for number, workload in enumerate(scenario.workloads):
        for manifest in manifests(workload):
            name = part(manifest, "spec", "template", "spec", "priorityClassName")
            if isinstance(name, str) and name not in classes:
                place: Path = ("workloads", number, "pod", "priorityClassName")
                raise BadScenario(place, missing("PriorityClass", name, classes))
    for one in given:
        steps = pod_spec(one.manifest)
        name = part(dict(one.manifest), *map(str, steps), "priorityClassName") if steps else None
        if steps and isinstance(name, str) and name and name not in classes:
            raise refused(one, (*steps, "priorityClassName"), missing("PriorityClass", name, classes))


def _labels(spec: Any) -> Iterator[tuple[Path, str]]:
    """The labels of nodes that the spec of a pod names, with their places."""
    for key in mapping(spec, "nodeSelector"):
        yield ("nodeSelector", key), str(key)
    for steps, one in entries(spec, "topologySpreadConstraints"):
        yield (*steps, "topologyKey"), str(one.get("topologyKey"))
    terms = ("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    for steps, term in entries(spec, *terms):
        for place, row in entries(term, "matchExpressions"):
            yield (*steps, *place, "key"), str(row.get("key"))
    for kind in _AFFINITY:
        for steps, one in entries(spec, "affinity", kind, _REQUIRED):
            yield (*steps, "topologyKey"), str(one.get("topologyKey"))
