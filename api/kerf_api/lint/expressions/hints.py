"""Advice for the CEL rules.

The CustomResourceDefinition can only state a rule. The fix of this one manifest depends on its values, and is added
here, by the rule's ID. Rules without an entry explain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kerf_api import labels
from kerf_api.lint import nearest
from kerf_api.v1.ec2nodeclass import ALIAS_FAMILIES

Advice = Callable[[Any], str]


def advice(rule: str, value: Any) -> str:
    """How to fix a violation of a rule, given the value it complained about; empty when there is nothing to add."""
    found = _ADVICE.get(rule, "")
    return found if isinstance(found, str) else found(value)


def _key(value: Any) -> str:
    return nearest.label_hint(value) if isinstance(value, str) else ""


def _overlay_key(value: Any) -> str:
    return nearest.label_hint(value, labels.OVERLAY_LABELS) if isinstance(value, str) else ""


def _number(value: Any) -> str:
    values = value.get("values") if isinstance(value, dict) else None
    count = len(values) if isinstance(values, list) else 0
    return "keep one of the values" if count > 1 else 'write it like values: ["4"]'


def _values(value: Any) -> str:
    return "list the values that are wanted, or use Exists to allow any"


def _distinct(value: Any) -> str:
    values = value.get("values") if isinstance(value, dict) else None
    count = len(values) if isinstance(values, list) else 0
    return f"use minValues {count} or less, or list more values" if count else ""


def _budget(value: Any) -> str:
    missing = "duration" if isinstance(value, dict) and "schedule" in value else "schedule"
    example = "8h" if missing == "duration" else '"0 9 * * mon-fri"'
    return f"{missing} is missing; add one such as {example}"


def _alias(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    family, _, version = value.partition("@")
    close = nearest.name(family, ALIAS_FAMILIES)
    return f"did you mean {close}@{version or 'latest'}?" if close else "the simplest is al2023@latest"


def _windows(value: Any) -> str:
    return f"did you mean {value.partition('@')[0]}@latest?" if isinstance(value, str) else ""


_ADVICE: Final[Mapping[str, Advice | str]] = {
    "KERF-NP-001": "create a NodePool of another name and delete this one",
    "KERF-NP-002": "keep only nodes in limits",
    "KERF-NP-003": "remove one of the two",
    "KERF-NP-004": _budget,
    **dict.fromkeys(("KERF-NP-005", "KERF-NP-008", "KERF-NP-017", "KERF-NP-020", "KERF-NC-008", "KERF-NC-010"), _key),
    **dict.fromkeys(("KERF-NO-006", "KERF-NO-008"), _overlay_key),
    **dict.fromkeys(("KERF-NP-006", "KERF-NP-007", "KERF-NP-018", "KERF-NO-002"), "remove it"),
    **dict.fromkeys(("KERF-NP-019", "KERF-NC-009", "KERF-NO-007"), f"use {labels.ZONE} or {labels.INSTANCE_TYPE}"),
    **dict.fromkeys(("KERF-NP-009", "KERF-NC-002"), "write karpenter.k8s.aws"),
    **dict.fromkeys(("KERF-NP-010", "KERF-NC-003"), "write EC2NodeClass"),
    **dict.fromkeys(("KERF-NP-014", "KERF-NC-005", "KERF-NO-003"), _values),
    **dict.fromkeys(("KERF-NP-015", "KERF-NC-006", "KERF-NO-004"), _number),
    **dict.fromkeys(("KERF-NP-016", "KERF-NC-007"), _distinct),
    **dict.fromkeys(("KERF-NO-001", "KERF-CB-002"), "remove one of the two"),
    "KERF-NO-005": "list the values that are not wanted, or use Exists to allow any",
    "KERF-CB-001": "add replicas, 1 for example",
    "KERF-EC2-001": "role is the simpler one: Kerf then makes the instance profile",
    "KERF-EC2-002": "add amiFamily, AL2023 for example, or use an alias such as al2023@latest",
    "KERF-EC2-007": _alias,
    "KERF-EC2-008": _alias,
    "KERF-EC2-009": _windows,
    "KERF-EC2-010": "keep rootVolume true on the disk with the kubelet's data",
    "KERF-EC2-011": "add volumeSize, 100Gi for example",
}
