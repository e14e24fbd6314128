"""Whether `spec.kubelet` is a kubelet configuration that we can hand on: shape, sense, and what the family can carry.

The API server takes any map there, so a mistake would otherwise show on the first node that does not join. Source: API
reference §5.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.ec2 import families, kubelet
from reconciler.ec2.kubelet_schema import SCHEMA

_INT_RANGE = {"int32": 2**31, "int64": 2**63}
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+)")
_EVICTION = ("evictionHard", "evictionSoft", "evictionMinimumReclaim")
_SIGNALS = frozenset(
    {"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"}
    | {"pid.available"}
)
_RESERVABLE = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
#: The fields that families with a command line or settings of their own can carry.
_MAPPED = frozenset(
    {"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft"}
    | {"evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent"}
    | {"imageGCLowThresholdPercent", "cpuCFSQuota"}
)


def problem(map_: Mapping[str, Any] | None, family: families.Family) -> tuple[str, str] | None:
    """Reason and message of what is wrong with a kubelet map; None when it can be used."""
    if not map_:
        return None
    faults = [fault for key in sorted(map_) for fault in _shape(key, map_[key], SCHEMA.get(key))][:1] or [*_sense(map_)]
    if faults:
        return "InvalidKubeletConfiguration", "; ".join(faults)
    expressions = list(_expressions(map_))
    if expressions:
        return "KubeletExpressionsDisabled", f"expressions are not enabled: {', '.join(expressions)}"
    unsupported = [] if family.any_kubelet_field else list(_unsupported(map_, family))
    return ("UnsupportedKubeletConfiguration", "; ".join(unsupported)) if unsupported else None


def _shape(path: str, value: Any, shape: Any) -> Iterator[str]:
    """Unknown fields and values of a wrong type."""
    if shape is None:
        yield f"unknown field {path}"
    elif isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield f"{path} must be an object"
        elif "*" in shape:
            for key in sorted(value):
                yield from _shape(f"{path}.{key}", value[key], shape["*"])
        else:
            for key in sorted(value):
                yield from _shape(f"{path}.{key}", value[key], shape.get(key))
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            yield f"{path} must be a list"
        else:
            for index, item in enumerate(value):
                yield from _shape(f"{path}[{index}]", item, shape[0])
    elif not _is(value, shape) and not (path == "maxPods" and isinstance(value, str)):
        yield f"{path} must be a {shape}"


def _is(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "duration":
        return isinstance(value, str) and _DURATION.fullmatch(value) is not None
    if kind == "duration or nanoseconds":
        return _is(value, "duration") or _is(value, "int64")
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    limit = _INT_RANGE[kind]
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _sense(map_: Mapping[str, Any]) -> Iterator[str]:
    """Values of the right type that make no sense."""
    if "registerWithTaints" in map_:
        yield "registerWithTaints may not be set"
    for field in _EVICTION:
        for signal, text in kubelet.texts(map_, field).items():
            if not _is_threshold(text):
                yield f"{field}.{signal}: {text!r} is neither a percentage from 0% to 100% nor a quantity"
    for signal, text in kubelet.texts(map_, "evictionSoftGracePeriod").items():
        if not _DURATION.fullmatch(text) or text.startswith("-"):
            yield f"evictionSoftGracePeriod.{signal}: {text!r} is no duration"
    for field in (*_EVICTION, "evictionSoftGracePeriod"):
        for signal in kubelet.texts(map_, field):
            if signal not in _SIGNALS:
                yield f"{field}: unknown signal {signal}"
    soft, grace = kubelet.texts(map_, "evictionSoft"), kubelet.texts(map_, "evictionSoftGracePeriod")
    if soft.keys() != grace.keys():
        yield "evictionSoft and evictionSoftGracePeriod must have the same keys"
    for field in ("kubeReserved", "systemReserved"):
        for name, text in kubelet.texts(map_, field).items():
            if name not in _RESERVABLE:
                yield f"{field}: unknown resource {name}"
            if text.startswith("-"):
                yield f"{field}.{name} must not be negative"
    yield from _numbers(map_)


def _numbers(map_: Mapping[str, Any]) -> Iterator[str]:
    high, low = map_.get("imageGCHighThresholdPercent"), map_.get("imageGCLowThresholdPercent")
    for field, value in (("imageGCHighThresholdPercent", high), ("imageGCLowThresholdPercent", low)):
        if value is not None and not 0 <= value <= 100:
            yield f"{field} must be from 0 to 100"
    if high is not None and low is not None and high <= low:
        yield "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent"
    for field in ("podsPerCore", "evictionMaxPodGracePeriod", "maxPods"):
        value = map_.get(field)
        if isinstance(value, int) and value < 0:
            yield f"{field} must not be negative"


def _is_threshold(text: str) -> bool:
    if text.endswith("%"):
        return kubelet.percentage(text) is not None
    return kubelet.is_quantity(text) and not text.startswith("-")


def _expressions(map_: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(map_.get("maxPods"), str):
        yield "maxPods"
    for field in ("kubeReserved", "systemReserved"):
        for name, text in kubelet.texts(map_, field).items():
            if not kubelet.is_quantity(text):
                yield f"{field}.{name}"


def _unsupported(map_: Mapping[str, Any], family: families.Family) -> Iterator[str]:
    for key in sorted(map_):
        if key not in _MAPPED or (key == "podsPerCore" and not family.pods_per_core):
            yield f"{family.name} nodes cannot take the kubelet field {key}"
    if len(map_.get("clusterDNS") or ()) > 1:
        yield f"{family.name} nodes can take only one clusterDNS entry"
