"""The keywords of our JSON Schemas, as `jsonschema` runs them.

Most are the library's own. Ours add what Kubernetes means: patterns of Go's RE2, date-times, list entries that are
unique by some of their fields. Descending is ours too: the library makes a new validator for every value it looks at,
and keeping one per schema takes a third of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from kerf_api.cel_library import cel
from kerf_api.lint.shape.formats import ascii_classes, is_date_time
from kerf_api.lint.shape.translate import BOUNDS, json_schema, python_pattern

Errors = Iterator[ValidationError]

_STANDARD: Final = ("type", *BOUNDS)
#: A search in a longer text goes to an engine of linear time.
_LONGEST_FOR_PYTHON: Final = 512


@cache
def validator(kind: str) -> Validator:
    """The validator of a kind, made once. Raises KeyError for a kind that is not ours."""
    return _for(json_schema(kind))


@cache
def _matcher(pattern: str) -> Any:
    """A function that returns whether a text matches an RE2 pattern anywhere.

    Python's engine backtracks: several `.+` or `\\d*` in one pattern, or a long text, can make it slow. The engine of
    the CEL library takes time in proportion to the length of the text, so it gets such patterns and such texts.
    """
    quick = re.compile(python_pattern(pattern), re.ASCII).search
    several = len(re.findall(r"(?:(?<!\\)\.|\\d)[+*]", pattern)) > 1
    longest = 0 if several else _LONGEST_FOR_PYTHON

    def matches(text: str) -> Any:
        if len(text) <= longest:
            return quick(text)
        return _linear().execute({"text": text, "pattern": ascii_classes(pattern)})

    return matches


@cache
def _linear() -> Any:
    return cel.compile("text.matches(pattern)")


def _pattern(_: Validator, pattern: str, value: Any, __: Any) -> Errors:
    if isinstance(value, str) and not _matcher(pattern)(value):
        yield ValidationError("does not match")


def _format(_: Validator, name: str, value: Any, __: Any) -> Errors:
    if name == "date-time" and isinstance(value, str) and not is_date_time(value):
        yield ValidationError("is not a date-time")


def _unique_items(_: Validator, __: bool, value: Any, ___: Any) -> Errors:
    """Sets hold texts; the library compares entries of other types, which are refused anyway, each with each."""
    texts = [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
    if len(set(texts)) < len(texts):
        yield ValidationError("is not unique")


def _unique_keys(_: Validator, keys: list[str], value: Any, __: Any) -> Errors:
    seen: set[tuple[str, ...]] = set()
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        identity = tuple(repr(entry.get(key)) for key in keys) if isinstance(entry, dict) else None
        if identity in seen:
            yield ValidationError("is a repetition", path=[index], instance=entry)
        if identity is not None:
            seen.add(identity)


def _required(_: Validator, names: list[str], value: Any, __: Any) -> Errors:
    """Missing fields one by one, each as an error at its own place."""
    for name in names if isinstance(value, dict) else ():
        if name not in value:
            yield ValidationError("missing", path=[name])


def _properties(_: Validator, parts: Mapping[str, Any], value: Any, __: Any) -> Errors:
    if isinstance(value, dict):
        for name, part in parts.items():
            if name in value:
                yield from _below(part, value[name], name)


def _items(_: Validator, part: Mapping[str, Any], value: Any, schema: Mapping[str, Any]) -> Errors:
    """The entries of a list; of one that is too long, those that may stay."""
    if isinstance(value, list):
        for index, entry in enumerate(value[: schema.get("maxItems")]):
            yield from _below(part, entry, index)


def _additional(_: Validator, part: Any, value: Any, schema: Mapping[str, Any]) -> Errors:
    """Unknown fields one by one, each as an error at its own place; or the values of a map."""
    if not isinstance(value, dict) or part is True:
        return
    known = schema.get("properties", {})
    for name, entry in value.items():
        if name in known:
            continue
        if part is False:
            yield ValidationError("unknown", path=[name], instance=entry, validator_value=sorted(known))
        else:
            yield from _below(part, entry, name)


def _below(part: Mapping[str, Any], value: Any, step: str | int) -> Errors:
    for error in _for(part).iter_errors(value):
        error.path.appendleft(step)
        yield error


#: Validators by the identity of their schema. Safe because the schemas live as long as the process.
_by_schema: Final[dict[int, Validator]] = {}


def _for(schema: Mapping[str, Any]) -> Validator:
    found = _by_schema.get(id(schema))
    if found is None:
        found = _by_schema[id(schema)] = _Validator(schema)
    return found


_Validator: Final = validators.create(
    meta_schema=Draft202012Validator.META_SCHEMA,
    validators={
        **{word: Draft202012Validator.VALIDATORS[word] for word in _STANDARD},
        "additionalProperties": _additional,
        "format": _format,
        "items": _items,
        "pattern": _pattern,
        "properties": _properties,
        "required": _required,
        "uniqueItems": _unique_items,
        "uniqueKeys": _unique_keys,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER,
)
