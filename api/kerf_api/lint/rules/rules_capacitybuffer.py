"""What the API server lets through in a CapacityBuffer and then never becomes ready, or is read otherwise than it says.

The controller looks for a buffer's pods every half a minute and only reports when it finds none, so nearly all of this
is a warning. What no client of the API could read is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import crds
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import is_dns_name, mapping, negative_quantities, unreadable_quantities

#: The workloads that a buffer can follow, all of them in one group.
WORKLOADS: Final = ("Deployment", "ReplicaSet", "StatefulSet")
_GROUP: Final = "apps"
_LIMITS: Final = ("spec", "limits")
_SIZES: Final = ("replicas", "percentage", "limits")
_CONSEQUENCE: Final = "the buffer never becomes ready"


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every run-time fault of a CapacityBuffer whose defaults are filled in."""
    spec = mapping(manifest, "spec")
    yield from _subject(spec)
    yield from _workload(mapping(spec, "scalableRef"))
    yield from _size(spec)
    yield from _strategy(spec.get("provisioningStrategy"))
    for field in ("podTemplateRef", "scalableRef"):
        yield from _name(("spec", field, "name"), mapping(spec, field).get("name"))
    yield from unreadable_quantities(manifest, "KERF-CB-101", _LIMITS)
    yield from negative_quantities(manifest, "KERF-CB-208", _LIMITS)


def _subject(spec: Mapping[str, Any]) -> Iterator[Problem]:
    if spec and "podTemplateRef" not in spec and "scalableRef" not in spec:
        message = f"no field names the pods of the buffer; {_CONSEQUENCE}"
        yield at(("spec",), "KERF-CB-201", "warning", message, "add podTemplateRef or scalableRef")


def _workload(reference: Mapping[str, Any]) -> Iterator[Problem]:
    group, kind = reference.get("apiGroup"), reference.get("kind")
    if isinstance(group, str) and group not in ("", _GROUP):
        message = f"workloads of the group {shown(group)} cannot be followed; {_CONSEQUENCE}"
        hint = f"write {_GROUP}, without a version, or leave it out"
        yield at(("spec", "scalableRef", "apiGroup"), "KERF-CB-202", "warning", message, hint, group)
    if isinstance(kind, str) and kind and kind not in WORKLOADS:
        close = nearest.name(kind, WORKLOADS)
        message = f"{shown(kind)} cannot be followed, only Deployments, ReplicaSets and StatefulSets; {_CONSEQUENCE}"
        hint = f"did you mean {close}?" if close else "use podTemplateRef"
        yield at(("spec", "scalableRef", "kind"), "KERF-CB-203", "warning", message, hint, kind)


def _size(spec: Mapping[str, Any]) -> Iterator[Problem]:
    if "podTemplateRef" in spec and "percentage" in spec:
        message = "percentage is ignored: it is a share of the replicas of a workload, and a PodTemplate has none"
        yield at(("spec", "percentage"), "KERF-CB-204", "warning", message, "use replicas", spec["percentage"])
    if "scalableRef" in spec and not any(field in spec for field in _SIZES):
        message = "no field gives the size of the buffer, so its size is 0"
        yield at(("spec",), "KERF-CB-205", "warning", message, "add percentage or replicas")


def _strategy(strategy: Any) -> Iterator[Problem]:
    known = crds.schema("CapacityBuffer")["properties"]["spec"]["properties"]["provisioningStrategy"]["default"]
    if isinstance(strategy, str) and strategy != known:
        message = f"{shown(strategy)} is an unknown strategy; Kerf treats the buffer like {known}"
        yield at(
            ("spec", "provisioningStrategy"), "KERF-CB-206", "warning", message, f"did you mean {known}?", strategy
        )


def _name(steps: Steps, name: Any) -> Iterator[Problem]:
    if isinstance(name, str) and name and not is_dns_name(name):
        close = nearest.label_value(name.lower().replace("_", "-"))
        message = f"no object can have the name {shown(name)}; {_CONSEQUENCE}"
        hint = f"did you mean {close}?" if close and is_dns_name(close) else ""
        yield at(steps, "KERF-CB-207", "warning", message, hint, name)
