"""The structural check: does the manifest have the shape that the CustomResourceDefinition asks for?

`jsonschema` finds the faults; here they become problems in words. Each names the value, what is allowed and, where one
can be found, the nearest valid value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from kerf_api import old_names
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.shape import quick

if TYPE_CHECKING:
    from jsonschema import ValidationError

_TYPES: Final = {
    "object": "a map",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_OTHER_FORMS: Final = {
    "schedule": "five cron fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @midnight, "
    "@weekly, @monthly, @yearly or @annually",
    "group": "an API group without a version, such as karpenter.k8s.aws",
    "ownerID": "an account ID of 12 digits",
}
_IDS: Final = {
    "subnetSelectorTerms": "an ID such as subnet-0123456789abcdef0",
    "securityGroupSelectorTerms": "an ID such as sg-0123456789abcdef0",
    "amiSelectorTerms": "an ID such as ami-0123456789abcdef0",
    "capacityReservationSelectorTerms": "an ID such as cr-0123456789abcdef0",
    "placementGroupSelector": "an ID such as pg-0123456789abcdef0",
}
#: For a longer text no nearest valid value is looked for: it is not a misspelt value, and some expressions are slow on
#: long ones.
_LONGEST_GUESS: Final = 200
_QUANTITIES: Final = ("limits", "requests", "resources", "capacity", "allocatable")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as the library found it: where, what was there, what the keyword asked for, and the schema around."""

    steps: Steps
    value: Any
    limit: Any
    schema: Any


def check(kind: str, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every fault of the shape. Raises KeyError for a kind that is not ours."""
    if quick.validator(kind)(manifest):
        return
    for error in searching().validator(kind).iter_errors(manifest):
        yield from (_of_old_versions(kind, problem) for problem in _problems(error))


def _of_old_versions(kind: str, problem: Problem) -> Problem:
    """A field of v1beta1 is no misspelt one: its new place is better advice than a similar name."""
    advice = old_names.field_advice(kind, problem.path) if problem.rule == "KERF-SCHEMA-UNKNOWN" else ""
    return replace(problem, hint=advice) if advice else problem


def searching() -> ModuleType:
    """The engine that finds the faults, loaded when there is one: it takes a fifth of the start of `kerf validate`."""
    return import_module("kerf_api.lint.shape.keywords")


def _problems(error: ValidationError) -> Iterator[Problem]:
    fault = Fault(tuple(error.absolute_path), error.instance, error.validator_value, error.schema)
    return _WORDS[str(error.validator)](fault)


def _type(fault: Fault) -> Iterator[Problem]:
    wanted = fault.limit if isinstance(fault.limit, list) else [fault.limit]
    value = fault.value
    words = " or ".join(_TYPES[name] for name in wanted if name != "null")
    hint = ""
    if "string" in wanted and not isinstance(value, (dict, list)) and value is not None:
        hint = f"put it in quotes: {_quoted(fault.steps, value)}"
    elif wanted == ["array"] and not isinstance(value, list):
        hint = f"write [{shown(value)}] for a list with one entry" if not isinstance(value, dict) else "begin with -"
    yield at(
        fault.steps, "KERF-SCHEMA-TYPE", "error", f"{shown(value)} is {_kind_of(value)}, {words} is needed", hint, value
    )


def _quoted(steps: Steps, value: Any) -> str:
    form = nearest.FORMS.get(_field(steps))
    valid = form[1](value) if form and len(str(value)) <= _LONGEST_GUESS else None
    return f'"{valid if valid is not None else shown(value)}"'


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    names = {dict: "a map", list: "a list", str: "a text", int: "a number", float: "a number", type(None): "no value"}
    return names.get(type(value), "something else")


def _enum(fault: Fault) -> Iterator[Problem]:
    allowed = [str(word) for word in fault.limit]
    close = nearest.name(str(fault.value), allowed) if isinstance(fault.value, str) else None
    message = f"{shown(fault.value)} is not allowed; allowed are {', '.join(allowed)}"
    yield at(fault.steps, "KERF-SCHEMA-ENUM", "error", message, f"did you mean {close}?" if close else "", fault.value)


def _unknown(fault: Fault) -> Iterator[Problem]:
    known = fault.limit
    close = nearest.name(str(fault.steps[-1]), known)
    message = f"unknown field {shown(str(fault.steps[-1]))}"
    hint = f"did you mean {close}?" if close else f"known here are {', '.join(known)}"
    yield at(fault.steps, "KERF-SCHEMA-UNKNOWN", "error", message, hint, fault.value)


def _required(fault: Fault) -> Iterator[Problem]:
    name = str(fault.steps[-1])
    close = nearest.name(name, [key for key in fault.value if key not in fault.schema.get("properties", {})])
    hint = f"is {close} meant to be it?" if close else ""
    yield at(fault.steps, "KERF-SCHEMA-REQUIRED", "error", f"the field {name} is missing", hint)


def _pattern(fault: Fault) -> Iterator[Problem]:
    value, field = fault.value, _field(fault.steps)
    wanted, close = _form(field, fault.steps, value)
    needed = f"; needed is {wanted}" if wanted else f"; it must match {fault.limit}"
    hint = f"did you mean {shown(close)}?" if close and close != value else ""
    yield at(
        fault.steps, "KERF-SCHEMA-PATTERN", "error", f"{shown(value)} does not match the pattern{needed}", hint, value
    )


def _field(steps: Steps) -> str:
    """The name that decides what a value means: the field's own, or that of the map of labels or quantities."""
    if len(steps) > 1 and steps[-2] in ("labels", *_QUANTITIES):
        return str(steps[-2])
    names = [step for step in steps if isinstance(step, str)]
    return names[-1] if names else ""


def _form(field: str, steps: Steps, value: Any) -> tuple[str, str | None]:
    if field in nearest.FORMS:
        words, guess = nearest.FORMS[field]
        return words, guess(value) if len(str(value)) <= _LONGEST_GUESS else None
    if field in _QUANTITIES:
        return "a quantity such as 500m, 100 or 64Gi", _quantity(value)
    if field == "id":
        return next((words for name, words in _IDS.items() if name in steps), ""), None
    return _OTHER_FORMS.get(field, ""), None


def _quantity(value: Any) -> str | None:
    """`64GB` → `64Gi`, `100 cores` → `100`."""
    text = str(value)[:_LONGEST_GUESS].replace(" ", "")
    digits = text[: len(text) - len(text.lstrip("0123456789."))]
    unit = text[len(digits) :].lower()
    known = {"k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"} if unit[1:] in ("", "b", "i", "ib") else {}
    return f"{digits}{known.get(unit[:1], '')}" if digits.strip(".") else None


def _bound(word: str, limit_word: str) -> Callable[[Fault], Iterator[Problem]]:
    def words(fault: Fault) -> Iterator[Problem]:
        message = f"{shown(fault.value)} is {word} {fault.limit}, the {limit_word} allowed"
        hint = f"use {fault.limit}"
        if "string" in fault.schema["type"]:
            message, hint = f"{message} for a number", f'put it in quotes: "{shown(fault.value)}"'
        yield at(fault.steps, "KERF-SCHEMA-BOUND", "error", message, hint, fault.value)

    return words


def _size(word: str, unit: str) -> Callable[[Fault], Iterator[Problem]]:
    def words(fault: Fault) -> Iterator[Problem]:
        message = f"has {len(fault.value)} {unit}, at {word} {fault.limit} are allowed"
        if word == "least":
            message = f"needs at least {fault.limit} {unit}, has {len(fault.value)}"
        yield at(fault.steps, "KERF-SCHEMA-SIZE", "error", message, value=fault.value)

    return words


def _repeated(fault: Fault) -> Iterator[Problem]:
    value = fault.value
    message = "no two entries may be the same" if isinstance(value, list) else f"{shown(value)} repeats an entry above"
    yield at(fault.steps, "KERF-SCHEMA-UNIQUE", "error", message, value=value)


def _format(fault: Fault) -> Iterator[Problem]:
    message = f"{shown(fault.value)} is not a date and time such as 2026-01-31T12:00:00Z"
    yield at(fault.steps, "KERF-SCHEMA-FORMAT", "error", message, value=fault.value)


_WORDS: Final[Mapping[str, Callable[[Fault], Iterator[Problem]]]] = {
    "type": _type,
    "enum": _enum,
    "additionalProperties": _unknown,
    "required": _required,
    "pattern": _pattern,
    "format": _format,
    "minimum": _bound("less than", "least"),
    "maximum": _bound("more than", "most"),
    "minItems": _size("least", "entries"),
    "maxItems": _size("most", "entries"),
    "minProperties": _size("least", "entries"),
    "maxProperties": _size("most", "entries"),
    "minLength": _size("least", "characters"),
    "maxLength": _size("most", "characters"),
    "uniqueItems": _repeated,
    "uniqueKeys": _repeated,
}
