"""What the API server lets through in a NodeOverlay and the controller then refuses, or what does nothing.

An overlay that breaks one of the rules with an error gets the condition ValidationSucceeded False with the reason
RuntimeValidation, and none of it is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import labels
from kerf_api.lint.problem import Problem, at, shown
from kerf_api.lint.reading.reading import entries, mapping, negative_quantities, part, unreadable_quantities
from kerf_api.lint.rules import requirement_rules
from kerf_api.lint.rules.requirement_rules import KindRules

#: Resources whose amounts the cloud itself reports, so an overlay may not speak about them.
TOLD_RESOURCES: Final = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "pods",
        "vpc.amazonaws.com/pod-eni",
        "vpc.amazonaws.com/efa",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "habana.ai/gaudi",
    }
)
_CAPACITY: Final = ("spec", "capacity")
_DIGITS: Final = {*"123456789"}
_REQUIREMENTS: Final = KindRules(
    usable=labels.OVERLAY_LABELS,
    bad_key="KERF-NO-101",
    reserved_key="KERF-NO-102",
    bad_value="KERF-NO-103",
    none_known="KERF-NO-104",
    few_known=None,
    some_unknown="KERF-NO-202",
    ignored_values="KERF-NO-201",
)


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every run-time fault of a NodeOverlay whose defaults are filled in."""
    for steps, entry in entries(manifest, "spec", "requirements"):
        yield from requirement_rules.check(steps, entry, _REQUIREMENTS)
    for name in mapping(manifest, *_CAPACITY):
        if name in TOLD_RESOURCES:
            message = f"the amount of {shown(name)} is defined by the instance type and cannot be overlaid"
            yield at((*_CAPACITY, name), "KERF-NO-105", "error", message, "remove it", name)
    yield from unreadable_quantities(manifest, "KERF-NO-106", _CAPACITY)
    yield from negative_quantities(manifest, "KERF-NO-204", _CAPACITY)
    yield from _effect(part(manifest, "spec"))


def _effect(spec: Any) -> Iterator[Problem]:
    if not isinstance(spec, dict) or any(spec.get(field) for field in ("price", "capacity")):
        return
    adjustment = spec.get("priceAdjustment")
    if not adjustment:
        message = "the overlay changes nothing: it has no price, no priceAdjustment and no capacity"
        yield at(("spec",), "KERF-NO-203", "warning", message, "add one of them, or delete the overlay")
    elif isinstance(adjustment, str) and not _DIGITS & {*adjustment} and not spec.get("weight"):
        message = f"the overlay changes nothing: {adjustment} leaves every price as it is"
        hint = "with a weight it would at least override overlays of less weight"
        yield at(("spec", "priceAdjustment"), "KERF-NO-203", "warning", message, hint, adjustment)
