"""Whether `spec.kubelet` is a kubelet configuration that can be handed on: shape, sense, and what the family can carry.

The API server accepts any map there, so a mistake would otherwise show on the first node that does not join. The linter
reports every fault at its place; the controller sums them up in a condition. Source: API reference §5.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import expressions, reading, starting
from .schema import SCHEMA

INVALID, DISABLED, UNREADABLE, UNSUPPORTED = (
    "InvalidKubeletConfiguration",
    "KubeletExpressionsDisabled",
    "KubeletExpressionInvalid",
    "UnsupportedKubeletConfiguration",
)
Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the condition's reason, the place in the map, and what is wrong, the place included."""

    reason: str
    steps: Steps
    words: str


_INT_RANGE = {"int32": 2**31, "int64": 2**63}
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms?|s|h))+)")
_EVICTION = ("evictionHard", "evictionSoft", "evictionMinimumReclaim")
_SIGNALS = frozenset(
    {"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"}
    | {"pid.available"}
)
_RESERVABLE = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
CUSTOM: Final = "Custom"
#: Families whose bootstrap takes a whole kubelet configuration, and those that do not know podsPerCore.
ANY_FIELD: Final = frozenset({"AL2023", CUSTOM})
WITHOUT_PODS_PER_CORE: Final = frozenset({"Bottlerocket"})
#: The fields that the other families can carry, by a command line or settings of their own.
_MAPPED = frozenset(
    {"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft"}
    | {"evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent"}
    | {"imageGCLowThresholdPercent", "cpuCFSQuota"}
)


def faults(map_: Mapping[str, Any], family: str, *, allowed: bool = True) -> list[Fault]:
    """What is wrong with a kubelet map for nodes of an AMI family, in the order of the controller's checks.

    A wrong type is reported alone, since nothing else can be judged then; so are expressions while they are not
    `allowed`, those that cannot be read, and what the family cannot carry.
    """
    map_ = reading.without_nulls(map_) or {}
    undecodable = unknown(map_)
    if undecodable is not None:
        return [undecodable]
    senseless = [Fault(INVALID, *found) for found in _sense(map_)]
    if family != CUSTOM:  # there the user starts the kubelet, and the map is for the planning of pods
        senseless += [Fault(INVALID, *found) for found in starting.check(map_)]
    if senseless:
        return senseless
    if not allowed and (found := formulas(map_)):
        return [Fault(DISABLED, steps, f"{written(steps)} is an expression") for steps, _ in found]
    unreadable = [*_unreadable(map_)]
    if unreadable or family in ANY_FIELD:
        return unreadable
    return [Fault(UNSUPPORTED, *found) for found in _unsupported(map_, family)]


def unknown(map_: Mapping[str, Any]) -> Fault | None:
    """The first field that is unknown, or of a wrong type; None when the map can be decoded."""
    fields = reading.without_nulls(map_) or {}
    found = (fault for key in sorted(fields) for fault in _shape((key,), fields[key], SCHEMA.get(key)))
    return next((Fault(INVALID, *one) for one in found), None)


def formulas(map_: Mapping[str, Any] | None) -> list[tuple[tuple[str, ...], str]]:
    """Where there are expressions, and their texts: maxPods before what may ask for it. Unknown resources have none."""
    most = (map_ or {}).get("maxPods")
    found: list[tuple[tuple[str, ...], str]] = [(("maxPods",), most)] if isinstance(most, str) else []
    for field in ("kubeReserved", "systemReserved"):
        amounts = reading.texts(map_, field).items()
        found += [((field, n), text) for n, text in amounts if n in _RESERVABLE and not reading.is_quantity(text)]
    return found


def problem(map_: Mapping[str, Any] | None, family: str, *, allowed: bool = False) -> tuple[str, str] | None:
    """Reason and message of a condition about a kubelet map; None when it can be used."""
    found = faults(map_, family, allowed=allowed) if map_ else []
    if not found:
        return None
    if found[0].reason == DISABLED:
        return DISABLED, f"expressions are not enabled: {', '.join(written(fault.steps) for fault in found)}"
    return found[0].reason, "; ".join(fault.words for fault in found)


def written(steps: Steps) -> str:
    """A place in the map, as one writes it."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _shape(steps: Steps, value: Any, shape: Any) -> Iterator[tuple[Steps, str]]:
    """Unknown fields and values of a wrong type."""
    if shape is None:
        yield steps, f"unknown field {written(steps)}"
    elif isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield steps, f"{written(steps)} must be an object"
            return
        for key in sorted(value):
            yield from _shape((*steps, key), value[key], shape["*"] if "*" in shape else shape.get(key))
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            yield steps, f"{written(steps)} must be a list"
            return
        for index, item in enumerate(value):
            yield from _shape((*steps, index), item, shape[0])
    elif not _is(value, shape) and not (steps == ("maxPods",) and isinstance(value, str)):
        yield steps, f"{written(steps)} must be {'an' if shape in _INT_RANGE else 'a'} {shape}"


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


def _sense(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Values of the right type that make no sense."""
    if "registerWithTaints" in map_:
        yield ("registerWithTaints",), "registerWithTaints may not be set"
    yield from _eviction(map_)
    yield from _reserved(map_)
    yield from _numbers(map_)


def _eviction(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    for field in _EVICTION:
        for signal, text in reading.texts(map_, field).items():
            if not _is_threshold(text):
                words = f"{field}.{signal}: {text!r} is neither a percentage from 0% to 100% nor a quantity"
                yield (field, signal), words
    for signal, text in reading.texts(map_, "evictionSoftGracePeriod").items():
        if not _DURATION.fullmatch(text) or text.startswith("-"):
            yield ("evictionSoftGracePeriod", signal), f"evictionSoftGracePeriod.{signal}: {text!r} is no duration"
    for field in (*_EVICTION, "evictionSoftGracePeriod"):
        for signal in reading.texts(map_, field):
            if signal not in _SIGNALS:
                yield (field, signal), f"{field}: unknown signal {signal}"
    soft, grace = reading.texts(map_, "evictionSoft"), reading.texts(map_, "evictionSoftGracePeriod")
    if soft.keys() != grace.keys():
        place = "evictionSoft" if soft else "evictionSoftGracePeriod"
        yield (place,), "evictionSoft and evictionSoftGracePeriod must have the same keys"


def _reserved(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    for field in ("kubeReserved", "systemReserved"):
        for name, text in reading.texts(map_, field).items():
            if name not in _RESERVABLE:
                yield (field, name), f"{field}: unknown resource {name}"
            if text.startswith("-"):
                yield (field, name), f"{field}.{name} must not be negative"


def _numbers(map_: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    high_field, low_field = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"
    high, low = map_.get(high_field), map_.get(low_field)
    for field, value in ((high_field, high), (low_field, low)):
        if value is not None and not 0 <= value <= 100:
            yield (field,), f"{field} must be from 0 to 100"
    if high is not None and low is not None and high <= low:
        yield (high_field,), f"{high_field} must be greater than {low_field}"
    for field in ("podsPerCore", "evictionMaxPodGracePeriod", "maxPods"):
        value = map_.get(field)
        if isinstance(value, int) and value < 0:
            yield (field,), f"{field} must not be negative"


def _is_threshold(text: str) -> bool:
    if text.endswith("%"):
        return reading.percentage(text) is not None
    return reading.is_quantity(text) and not text.startswith("-")


def _unreadable(map_: Mapping[str, Any]) -> Iterator[Fault]:
    for steps, text in formulas(map_):
        trouble = expressions.problem(text)
        if trouble is not None:
            yield Fault(UNREADABLE, steps, f"{written(steps)}: {text[:120]!r} {trouble}")


def _unsupported(map_: Mapping[str, Any], family: str) -> Iterator[tuple[Steps, str]]:
    for key in sorted(map_):
        if key not in _MAPPED or (key == "podsPerCore" and family in WITHOUT_PODS_PER_CORE):
            yield (key,), f"{family} nodes do not accept the kubelet field {key}"
    if len(map_.get("clusterDNS") or ()) > 1:
        yield ("clusterDNS",), f"{family} nodes accept only one clusterDNS entry"
