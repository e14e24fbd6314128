"""What the expressions in a class's kubelet configuration come to on one instance type.

maxPods comes first, for the others may ask for it. One that has no value on a type, or none that a kubelet takes, makes
the types of the whole class unknown: a machine that is planned by another number than it starts with is worse than
none. Source: API reference §5.8, AWS provider reference §4.3, §5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kerf.ec2.instance_types import capacity
from kerf.ec2.instance_types.capacity import Sizing
from kerf.model.aws.cloud import InstanceTypeInfo
from kerf_api.kubelet import expressions, reading, rules
from kerf_api.kubelet.reading import Reserved

EVALUATION_FAILED: Final = "KubeletExpressionEvaluationFailed"
_MOST_PODS: Final = 2**31 - 1
#: By resource, the unit that its expressions count in, and what their values are rounded up to a multiple of.
_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "cpu": ("m", 10),
    "memory": ("Mi", 16),
    "ephemeral-storage": ("Gi", 1),
    "pid": ("", 1),
}


class Unresolvable(ValueError):
    """A kubelet configuration that gives a class no instance types. `reason` is that of the class's condition."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


def decodable(kubelet: Mapping[str, Any] | None) -> None:
    """Raises Unresolvable when a configuration cannot be decoded."""
    fault = rules.unknown(kubelet) if kubelet else None
    if fault is not None:
        raise Unresolvable(fault.reason, fault.words)


def resolved(info: InstanceTypeInfo, sizing: Sizing) -> tuple[Sizing, tuple[Reserved, ...]]:
    """The sizing for this type with a value in the place of each expression, and what these reserve.

    Raises Unresolvable.
    """
    if not sizing.formulas:
        return sizing, ()
    rows: list[Reserved] = []
    known = _machine(info) | {"max_pods": capacity.pods(info, sizing)}
    for steps, text in sizing.formulas:
        found = _value(steps, text, known)
        if len(steps) == 1:
            sizing = replace(sizing, kubelet={**(sizing.kubelet or {}), steps[0]: found})
            known["max_pods"] = capacity.pods(info, sizing)
        else:
            field, name = steps
            unit, step = _UNITS[name]
            rows.append((field, name, f"{-(-found // step) * step}{unit}"))
    return replace(sizing, kubelet=reading.with_reserved(sizing.kubelet, rows)), tuple(rows)


def _machine(info: InstanceTypeInfo) -> dict[str, int | str]:
    return {
        "vcpus": info.vcpus,
        "memory_mib": info.memory_mib,
        "default_enis": info.max_interfaces,
        "ips_per_eni": info.ipv4_per_interface,
        "instance_type": info.name,
    }


def _value(steps: tuple[str, ...], text: str, known: Mapping[str, int | str]) -> int:
    try:
        found = expressions.value(text, known)
    except expressions.ExpressionError as error:
        raise _failed(steps, text, f"{error} (on {known['instance_type']})") from error
    if found < 0 or (len(steps) == 1 and found > _MOST_PODS):
        most = f" to {_MOST_PODS}" if len(steps) == 1 else " or more"
        raise _failed(steps, text, f"is {found} on {known['instance_type']}, and must be 0{most}")
    return found


def _failed(steps: tuple[str, ...], text: str, words: str) -> Unresolvable:
    return Unresolvable(EVALUATION_FAILED, f"{rules.written(steps)}: {text[:120]!r} {words}")
