"""What the API server lets through in requirements and controllers refuse: the part that kinds have in common.

NodePool and NodeOverlay are checked by the same rules at run time, each under its own IDs. They differ in the labels
that a requirement may name: the label of the NodePool itself says nothing in a pool and much in an overlay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kerf_api import labels
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import (
    LONGEST_KEY,
    are_label_values,
    label_value_fault,
    qualified_name_fault,
    texts,
)
from kerf_api.v1.meta import Entry

#: Keys whose values are known beforehand; a requirement needs at least one that exists.
KNOWN_VALUES: Final[Mapping[str, frozenset[str]]] = {
    labels.CAPACITY_TYPE: frozenset({labels.ON_DEMAND, labels.SPOT, labels.RESERVED}),
    f"{labels.AWS_GROUP}/instance-tenancy": frozenset({"default", "dedicated"}),
}


@dataclass(frozen=True, slots=True)
class KindRules:
    """The IDs by which a kind's requirements are refused or warned of, and the well-known labels that they may name.

    `few_known` is None for a kind without minValues.
    """

    usable: frozenset[str]
    bad_key: str
    reserved_key: str
    bad_value: str
    none_known: str
    few_known: str | None
    some_unknown: str
    ignored_values: str


def check(steps: Steps, entry: Mapping[str, Any], rules: KindRules) -> Iterator[Problem]:
    """What is wrong with one requirement."""
    key, operator, values = entry.get("key"), entry.get("operator"), texts(entry.get("values"))
    if isinstance(key, str) and not _usable(key, rules.usable):
        yield from label_key((*steps, "key"), key, rules.bad_key, rules.reserved_key, rules.usable)
    for index, value in enumerate(() if are_label_values(values) else values):
        if fault := label_value_fault(value):
            close = nearest.label_value(value)
            hint = f"did you mean {shown(close)}?" if close else ""
            message = f"{shown(value)} can never be the value of a label: {fault}"
            yield at((*steps, "values", index), rules.bad_value, "error", message, hint, value)
    if isinstance(key, str) and operator == "In" and values:
        yield from _known(steps, labels.normalise(key), values, entry.get("minValues"), rules)
    if operator in ("Exists", "DoesNotExist") and values:
        message, hint = f"operator {operator} ignores its values", "use In or NotIn, or remove the values"
        yield at((*steps, "values"), rules.ignored_values, "warning", message, hint, values)


def sound(requirements: Iterable[Entry], usable: frozenset[str]) -> bool:
    """Whether `check` is certain to find no error in any of these requirements.

    A manifest may have hundreds of thousands of values, so all of them are looked at together. False means that only
    `check` can report.
    """
    values: list[str] = []
    for entry in requirements:
        if labels.normalise(entry.key) in KNOWN_VALUES or not _usable(entry.key, usable):
            return False
        values += entry.values
    return are_label_values(values)


def _usable(key: str, usable: frozenset[str]) -> bool:
    """Whether `label_key` finds no fault. Nothing is remembered of keys that are longer than any label's."""
    return len(key) <= LONGEST_KEY and _is_usable(key, usable)


@lru_cache(maxsize=4096)
def _is_usable(key: str, usable: frozenset[str]) -> bool:
    name = labels.normalise(key)
    return qualified_name_fault(name) is None and not _is_reserved(name, usable)


def _is_reserved(name: str, usable: frozenset[str]) -> bool:
    return name not in usable and (name == labels.NODEPOOL or labels.is_restricted(name))


def label_key(
    steps: Steps, key: str, syntax_rule: str, reserved_rule: str, usable: frozenset[str]
) -> Iterator[Problem]:
    """Whether a label key may be used at all. Old spellings of well-known keys count as the new ones."""
    name = labels.normalise(key)
    fault = qualified_name_fault(name)
    if fault:
        close = nearest.label_key(key)
        hint = f"did you mean {close}?" if close and close != key and not qualified_name_fault(close) else ""
        yield at(steps, syntax_rule, "error", f"{shown(key)} is no label name: {fault}", hint, key)
    elif _is_reserved(name, usable):
        message = f"{shown(key)} is reserved: {_reserved(name)}"
        yield at(steps, reserved_rule, "error", message, nearest.label_hint(name, usable), key)


def _reserved(key: str) -> str:
    if key == labels.NODEPOOL:
        return "every node of the NodePool gets it from the autoscaler"
    return "of that domain only the labels that the autoscaler itself gives to nodes may be used"


def _known(steps: Steps, key: str, values: list[str], least: Any, rules: KindRules) -> Iterator[Problem]:
    """Keys whose values are known: at least one must exist, and at least minValues when that is given."""
    if key not in KNOWN_VALUES:
        return
    known = sum(value in KNOWN_VALUES[key] for value in values)
    allowed = ", ".join(sorted(KNOWN_VALUES[key]))
    for index, value in enumerate(values):
        if value in KNOWN_VALUES[key]:
            continue
        close = nearest.name(value, KNOWN_VALUES[key])
        message = f"{shown(value)} is no value of {key}; there are {allowed}"
        hint = f"did you mean {close}?" if close else ""
        place = (*steps, "values", index)
        yield (
            at(place, rules.some_unknown, "warning", message, hint, value)
            if known
            else at(place, rules.none_known, "error", message, hint, value)
        )
    if rules.few_known and known and isinstance(least, int) and known < least:
        message = f"minValues is {least}, but only {known} of the values of {key} exist"
        yield at((*steps, "minValues"), rules.few_known, "error", message, f"use {known} or less", least)
