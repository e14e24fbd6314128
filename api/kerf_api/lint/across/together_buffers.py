"""What CapacityBuffers have to do with the workloads and PodTemplates beside them: are they there, do the limits fit?

How many pods a buffer has room for depends on what one of them asks for, which only the workload says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from kerf_api.lint import nearest
from kerf_api.lint.problem import Found, Problem, Steps, at, shown, some
from kerf_api.lint.reading.reading import amount, entries, is_kind, mapping, part
from kerf_api.lint.reading.workloads import pod_spec

_TEMPLATE, _WORKLOAD = "podTemplateRef", "scalableRef"
_LIMITS: Final = ("spec", "limits")


def check(manifests: Sequence[Mapping[str, Any]]) -> Found:
    """The problems of buffers beside what their pods are made from."""
    for index, buffer in enumerate(manifests):
        if not is_kind(buffer, "CapacityBuffer"):
            continue
        field = _WORKLOAD if mapping(buffer, "spec", _WORKLOAD) else _TEMPLATE
        kind = part(buffer, "spec", _WORKLOAD, "kind") if field == _WORKLOAD else "PodTemplate"
        name = part(buffer, "spec", field, "name")
        beside = [m for m in manifests if m.get("kind") == kind and _near(buffer, m)]
        if not (beside and isinstance(name, str)):
            continue
        named = {str(part(m, "metadata", "name")): m for m in beside}
        if name in named:
            yield from ((index, problem) for problem in _limits(buffer, named[name]))
        else:
            close = nearest.name(name, named)
            message = f"no {kind} {shown(name)} is among these files; without it the buffer is never ready"
            hint = f"did you mean {close}?" if close else f"there are {some([*named])}"
            yield index, at(("spec", field, "name"), "KERF-SET-311", "warning", message, hint, name)


def _near(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether two objects may be in one namespace: many manifests leave it to the command that applies them."""
    here, there = (part(manifest, "metadata", "namespace") for manifest in (one, two))
    return not here or not there or bool(here == there)


def _limits(buffer: Mapping[str, Any], workload: Mapping[str, Any]) -> Iterator[Problem]:
    """Limits below one pod, and limits of what no pod asks for."""
    limits = {name: found for name, value in mapping(buffer, *_LIMITS).items() if (found := amount(value)) is not None}
    place = pod_spec(workload)
    if not limits or place is None:
        return
    asked = _requests(workload, place)
    for name in [name for name in limits if name in asked and 0 < limits[name] < asked[name]]:
        value = mapping(buffer, *_LIMITS)[name]
        limit = shown(value, quotes=False)
        message = f"one pod requests more {name} than the limit of {limit}, so the buffer reserves no capacity"
        yield at((*_LIMITS, name), "KERF-SET-312", "warning", message, "raise the limit", value)
    if not any(asked.get(name) for name in limits):
        message = f"the pods ask for no {some([*limits])}, so the limits limit nothing"
        hint = f"limit what they ask for: {some([*asked])}" if asked else "add requests to the pods"
        yield at(_LIMITS, "KERF-SET-313", "warning", message, hint)


def _requests(workload: Mapping[str, Any], place: Steps) -> dict[str, Fraction]:
    """What one pod asks for at least: its containers together, or the one that starts first, or the pod as a whole."""
    spec = mapping(workload, *map(str, place))
    asked: dict[str, Fraction] = {}
    for _, container in entries(spec, "containers"):
        for name, value in _asked(container):
            asked[name] = asked.get(name, Fraction(0)) + value
    for part_of_pod in (*(container for _, container in entries(spec, "initContainers")), spec):
        for name, value in _asked(part_of_pod):
            asked[name] = max(asked.get(name, value), value)
    return asked


def _asked(part_of_pod: Mapping[str, Any]) -> Iterator[tuple[str, Fraction]]:
    """Requests, and where there are none of a resource, its limit stands for them."""
    resources = mapping(part_of_pod, "resources")
    for name, value in {**mapping(resources, "limits"), **mapping(resources, "requests")}.items():
        yield name, max(amount(value) or Fraction(0), Fraction(0))
