"""The fields of manifests as the API server checks them: names, types, amounts.

Kinds of Karpenter are checked by the rules of `kerf validate`, built-in kinds by the types of the Kubernetes client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubernetes.client import models

from kerf.model import kinds
from kerf.sandbox.api.kinds import CUSTOM, PRIORITY_CLASS
from kerf.simulating.reading import missing
from kerf_api import lint
from kerf_api.defaulting import default
from kerf_api.lint.problem import shown
from kerf_api.lint.reading.reading import label_value_fault, qualified_name_fault
from kerf_api.quantity import amount

Steps = tuple[str | int, ...]
Fault = tuple[Steps, str]

POD_SPEC: Final = "V1PodSpec"
BUDGET_SPEC: Final = "V1PodDisruptionBudgetSpec"
#: The kinds that a simulation uses, by name.
USED: Final[Mapping[str, str]] = {
    kind.name: kind.api_version
    for kind in (
        *(kinds.NODE_POOL, kinds.NODE_CLASS, kinds.NODE_OVERLAY, kinds.CAPACITY_BUFFER, kinds.PDB, kinds.DAEMON_SET),
        *(kinds.DEPLOYMENT, kinds.STATEFUL_SET, kinds.REPLICA_SET, kinds.POD, kinds.NAMESPACE, PRIORITY_CLASS),
        *(kinds.STORAGE_CLASS, kinds.PV, kinds.PVC),
    )
}
#: Groups of which Kerf knows all kinds.
_GROUPS: Final = frozenset(version.rpartition("/")[0] for name, version in USED.items() if name in CUSTOM)
_LIST: Final = re.compile(r"[Ll]ist\[(?P<item>.+)\]")
_MAP: Final = re.compile(r"[Dd]ict[\[(]str, (?P<item>.+)[\])]")
#: Python types of the client's scalars, and their names in messages.
_SCALARS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "str": ((str,), "a text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "datetime": ((str,), "a time"),
}
#: Fields with amounts of resources by name.
_AMOUNTS: Final = frozenset({"requests", "limits", "overhead", "capacity"})
_SHARE: Final = re.compile(r"[0-9]{1,3}%")
_SHARES: Final = frozenset({"minAvailable", "maxUnavailable", "maxSurge"})
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
#: The values of fields, by type and field. Source: the Kubernetes API reference.
_VALUES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("V1TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    ("V1TopologySpreadConstraint", "nodeAffinityPolicy"): ("Honor", "Ignore"),
    ("V1TopologySpreadConstraint", "nodeTaintsPolicy"): ("Honor", "Ignore"),
    ("V1Toleration", "operator"): ("Equal", "Exists", "Lt", "Gt"),
    ("V1Toleration", "effect"): _EFFECTS,
    ("V1LabelSelectorRequirement", "operator"): _OPERATORS,
    ("V1NodeSelectorRequirement", "operator"): (*_OPERATORS, "Gt", "Lt"),
    (BUDGET_SPEC, "unhealthyPodEvictionPolicy"): ("IfHealthyBudget", "AlwaysAllow"),
    (POD_SPEC, "restartPolicy"): ("Always", "OnFailure", "Never"),
    (POD_SPEC, "preemptionPolicy"): ("PreemptLowerPriority", "Never"),
}


def faults(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of an object of a kind in `USED`, each with its place in the object."""
    kind = manifest["kind"]
    version, meta = manifest.get("apiVersion"), manifest.get("metadata")
    if version != USED[kind]:
        hint = "; `kerf convert` does it" if kind in CUSTOM else ""
        yield ("apiVersion",), f"{shown(version)} of {kind} is not served here; write {USED[kind]}{hint}"
        return
    name = meta.get("name", meta.get("generateName")) if isinstance(meta, Mapping) else None
    if not isinstance(name, str) or not name:
        yield ("metadata", "name"), f"{kind}: metadata.name is missing; add it"
    if kind in CUSTOM:
        found = lint.validate(default(dict(manifest)))
        yield from ((one.steps, str(one)) for one in found if one.severity == "error")
    else:
        yield from of(f"V1{kind}", manifest)


def is_unknown(manifest: Mapping[str, Any]) -> bool:
    """Whether the kind is misspelt: its group is one of Karpenter's or a built-in one, and has no such kind."""
    kind, group = str(manifest.get("kind", "")), str(manifest.get("apiVersion", "")).rpartition("/")[0]
    if kind in USED or kind == kinds.NODE_CLAIM.name:
        return False
    if group in _GROUPS or not kind:
        return True
    built_in = group in ("", "apps", "batch", "policy") or group.endswith(".k8s.io")
    return built_in and missing("kind", kind, USED).endswith("?") and not _is_built_in(kind)


def _is_built_in(kind: str) -> bool:
    return kind == "List" or any(hasattr(models, f"{version}{kind}") for version in ("V1", "V2", "V1beta1", "V1alpha1"))


def of(kind: str, value: Any, steps: Steps = ()) -> Iterator[Fault]:
    """The faults of a value of a type of the Kubernetes client, such as `V1PodSpec` or `list[V1Container]`."""
    if value is None or kind == "object":
        return
    if found := _LIST.fullmatch(kind):
        if not isinstance(value, list):
            yield steps, f"{shown(value)} is not a list"
            return
        for number, one in enumerate(value):
            yield from of(found["item"], one, (*steps, number))
    elif found := _MAP.fullmatch(kind):
        yield from _entries(found["item"], value, steps)
    elif kind in _SCALARS:
        types, words = _SCALARS[kind]
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
            yield steps, f"{shown(value)} is not {words}"
    elif (model := getattr(models, kind, None)) is not None:
        yield from _fields(kind, model, value, steps)


def _entries(kind: str, value: Any, steps: Steps) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield steps, f"{shown(value)} is not a map"
        return
    if steps and steps[-1] in _AMOUNTS:
        yield from amounts(value, steps)
        return
    check = _CHECKS.get(steps[-1] if steps else "")
    for name, one in value.items():
        yield from of(kind, one, (*steps, name))
        if check is not None and isinstance(one, str) and (fault := check(name, one)):
            yield (*steps, name), fault


def amounts(value: Mapping[str, Any], steps: Steps) -> Iterator[Fault]:
    """The faults of amounts by resource."""
    for resource, one in value.items():
        try:
            if amount(resource, one) < 0:
                yield (*steps, resource), f"{shown(one)} is below 0; write a quantity such as 500m or 2Gi"
        except ValueError as error:
            yield (*steps, resource), str(error)


def _fields(kind: str, model: Any, value: Any, steps: Steps) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield steps, f"{shown(value)} is not a map of fields"
        return
    types = {model.attribute_map[own]: of_field for own, of_field in model.openapi_types.items()}
    for name, one in value.items():
        place = (*steps, name)
        if name not in types:
            yield place, missing("field", name, types)
        elif name in _SHARES and types[name] == "object":
            yield from _share(one, place)
        elif (known := _VALUES.get((kind, name))) and isinstance(one, str) and one not in known:
            yield place, missing("value", one, known)
        else:
            yield from of(types[name], one, place)
    if kind == BUDGET_SPEC and "minAvailable" in value and "maxUnavailable" in value:
        yield steps, "minAvailable and maxUnavailable exclude each other; remove one"


def _share(value: Any, place: Steps) -> Iterator[Fault]:
    """The fault of a number of pods or a percentage."""
    number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not number and not (isinstance(value, str) and _SHARE.fullmatch(value)):
        yield place, f"{shown(value)} is neither a number from 0 nor a percentage; write 1 or 25%"


def _label(name: str, value: str) -> str:
    return (qualified_name_fault(name) or label_value_fault(value)) or ""


_CHECKS: Final[Mapping[str | int, Callable[[str, str], str]]] = {
    **dict.fromkeys(("labels", "matchLabels", "nodeSelector"), _label),
    "annotations": lambda name, _: qualified_name_fault(name.lower()) or "",
}
