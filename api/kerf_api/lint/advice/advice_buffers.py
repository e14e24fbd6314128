"""Advice about how much room a CapacityBuffer keeps: none, or not as much as two of its fields seem to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf_api.lint.advice.requirement_advice import Known
from kerf_api.lint.problem import Problem, at, shown
from kerf_api.lint.reading.reading import amount, mapping


def check(known: Known) -> Iterator[Problem]:
    """Advice about the size of a CapacityBuffer."""
    spec = mapping(known.manifest, "spec")
    for name, limit in mapping(spec, "limits").items():
        if amount(limit) == 0:
            message = f"a limit of 0 leaves no capacity for any pod that requests {shown(name, quotes=False)}"
            hint = "raise or remove it; replicas: 0 switches a buffer off"
            yield at(("spec", "limits", name), "KERF-CB-301", "warning", message, hint, limit)
    yield from _sizes(spec)


def _sizes(spec: Mapping[str, Any]) -> Iterator[Problem]:
    replicas, percentage = spec.get("replicas"), spec.get("percentage") if "scalableRef" in spec else None
    sizes = {"replicas": replicas, "percentage": percentage}
    written = {field: size for field, size in sizes.items() if isinstance(size, int)}
    if written and not any(written.values()):
        field = next(iter(written))
        message = f"{field} is 0: the buffer is switched off and reserves no capacity"
        yield at(("spec", field), "KERF-CB-302", "info", message, value=written[field])
    elif all(written.get(field) for field in sizes):
        message = f"both replicas and percentage are there: the buffer has the greater of {replicas} and {percentage} %"
        hint = "keep one of the two, unless the larger is meant"
        yield at(("spec", "percentage"), "KERF-CB-303", "info", message, hint, percentage)
