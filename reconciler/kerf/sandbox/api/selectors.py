"""Selectors as the API server reads them: label selectors (text or structured) and the field selectors it knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerf.model.kubernetes.objects import Expression, LabelSelector
from kerf.ports import Invalid

Test = Callable[[Mapping[str, Any]], bool]

_FIELDS = {
    "Pod": ("spec.nodeName", "spec.schedulerName", "status.phase", "status.nominatedNodeName"),
    "Node": ("spec.unschedulable",),
    "Event": ("involvedObject.name", "involvedObject.kind", "involvedObject.namespace", "reason", "type"),
}
_ALWAYS = ("metadata.name", "metadata.namespace")
_SET = re.compile(r"(?P<key>[\w./-]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUAL = re.compile(r"(?P<key>[\w./-]+)\s*(?P<sign>!=|==|=)\s*(?P<value>[\w.-]*)")
_EXISTS = re.compile(r"!?[\w./-]+")


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a structured selector selects these labels. None selects nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(row, labels) for row in selector.match_expressions
    )


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector of a manifest selects these labels. None selects nothing, an empty one everything."""
    if selector is None:
        return False
    pairs, rows = selector.get("matchLabels") or {}, selector.get("matchExpressions") or ()
    return all(key in labels and labels[key] == value for key, value in pairs.items()) and all(
        _selects(row["key"], row["operator"], row.get("values") or (), labels) for row in rows
    )


def _selects(key: str, operator: str, values: Sequence[str], labels: Mapping[str, str]) -> bool:
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) == (operator == "Exists")
    if operator == "In":
        return key in labels and labels[key] in values
    return key not in labels or labels[key] not in values


def _holds(row: Expression, labels: Mapping[str, str]) -> bool:
    if row.operator == "Exists":
        return row.key in labels
    if row.operator == "DoesNotExist":
        return row.key not in labels
    inside = labels.get(row.key) in row.values
    return inside if row.operator == "In" else not inside


def label_test(text: str) -> Test:
    """A predicate over manifests from `a=b,c!=d,e in (f,g),!h`. Raises Invalid."""
    rows = tuple(_row(part.strip()) for part in _parts(text) if part.strip())
    return lambda manifest: all(_holds(row, manifest["metadata"].get("labels") or {}) for row in rows)


def _parts(text: str) -> list[str]:
    return re.split(r",(?![^(]*\))", text)


def _row(part: str) -> Expression:
    if found := _SET.fullmatch(part):
        values = tuple(value.strip() for value in found["values"].split(","))
        return Expression(key=found["key"], operator="In" if found["operator"] == "in" else "NotIn", values=values)
    if found := _EQUAL.fullmatch(part):
        operator = "NotIn" if found["sign"] == "!=" else "In"
        return Expression(key=found["key"], operator=operator, values=(found["value"],))
    if not _EXISTS.fullmatch(part):
        raise Invalid(f"unable to parse label selector {part!r}")
    return Expression(key=part.lstrip("!"), operator="DoesNotExist" if part.startswith("!") else "Exists")


def field_test(kind: str, text: str) -> Test:
    """A predicate over manifests from `spec.nodeName=a,status.phase!=Failed`. Raises Invalid for an unknown field."""
    rows = [_field(kind, part.strip()) for part in text.split(",") if part.strip()]
    return lambda manifest: all((_read(manifest, path) == value) == equal for path, value, equal in rows)


def _field(kind: str, part: str) -> tuple[tuple[str, ...], str, bool]:
    equal = "!=" not in part
    path, _, value = part.partition("==" if "==" in part else "=" if equal else "!=")
    if path not in (*_ALWAYS, *_FIELDS.get(kind, ())):
        raise Invalid(f"field label not supported: {path}")
    return tuple(path.split(".")), value, equal


def _read(manifest: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = manifest
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
