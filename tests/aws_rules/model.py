"""The rules of botocore's service models: types, required members, lengths, ranges, patterns and enumerations.

botocore itself refuses unknown members, wrong types, missing members and values that are too small. The rest of the
model (greatest lengths and values, patterns, enumerations) it leaves to the service, and so it is checked here. The
enumeration of instance types is left out: AWS adds types more often than botocore is updated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import botocore.session
from botocore.validate import ParamValidator

from .rule import Call, Problem

NAME: Final = "service_model"
#: Shapes whose enumeration ages.
AGES: Final = frozenset({"InstanceType"})
#: Members that take other values than the model lists: by operation and member, the shape that lists these too.
#: Source: SQS API reference, ReceiveMessage: AttributeNames are those of messages; the model has those of queues.
ALSO: Final = {("sqs:ReceiveMessage", "AttributeNames"): "MessageSystemAttributeName"}
#: Java's classes of characters, as Python's `re` knows them.
_CLASSES: Final = (("\\p{L}", "\\w"), ("\\p{N}", "\\w"), ("\\p{Z}", " \\u00a0\\u2000-\\u200a\\u3000"))
_VALIDATOR: Final = ParamValidator()


@cache
def service_model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


@cache
def _operation(service: str, operation: str) -> Any:
    return service_model(service).operation_model(operation)


def problems(call: Call) -> list[Problem]:
    """Where a call breaks the model of its operation."""
    shape = _operation(call.service, call.operation).input_shape
    if shape is None:
        return []
    report = _VALIDATOR.validate(call.parameters, shape)
    if report.has_errors():
        return [Problem(call.key, NAME, "ValidationError", report.generate_report())]
    return [Problem(call.key, NAME, "InvalidParameterValue", text) for text in _walk(shape, _listed_only(call), "")]


def _listed_only(call: Call) -> Mapping[str, Any]:
    """The parameters without the values that another shape lists (`ALSO`)."""
    found = dict(call.parameters)
    for (key, member), name in ALSO.items():
        if call.key == key and member in found:
            others = service_model(call.service).shape_for(name).enum
            found[member] = [value for value in found[member] if value not in others]
    return found


@cache
def pattern(text: str) -> re.Pattern[str]:
    """A pattern of a model as Python reads it. AWS matches the whole value."""
    for java, python in _CLASSES:
        text = text.replace(java, python)
    return re.compile(text)


@cache
def _limited(shape: Any) -> bool:
    """Whether a shape, or one below it, limits its values; most do not, and need no walk."""
    return _has_limits(shape, frozenset())


def _has_limits(shape: Any, above: frozenset[str]) -> bool:
    if shape.name in above:
        return False
    below = above | {shape.name}
    if _own_limits(shape):
        return True
    if shape.type_name == "structure":
        return any(_has_limits(one, below) for one in shape.members.values())
    if shape.type_name == "list":
        return _has_limits(shape.member, below)
    return shape.type_name == "map" and (_has_limits(shape.key, below) or _has_limits(shape.value, below))


def _own_limits(shape: Any) -> bool:
    listed = shape.name not in AGES and bool(shape.metadata.get("enum"))
    return listed or not {"min", "max", "pattern"}.isdisjoint(shape.metadata)


@cache
def _members(shape: Any) -> Mapping[str, Any]:
    """The members of a structure that have limits; botocore works the members out anew each time."""
    return {name: one for name, one in shape.members.items() if _limited(one)}


def _walk(shape: Any, value: Any, path: str) -> Iterator[str]:
    yield from _own(shape, value, path)
    if shape.type_name == "structure":
        members = _members(shape)
        for name, inner in value.items():
            if name in members and inner is not None:
                yield from _walk(members[name], inner, f"{path}.{name}".lstrip("."))
    elif shape.type_name == "list" and _limited(shape.member):
        for number, inner in enumerate(value):
            yield from _walk(shape.member, inner, f"{path}[{number}]")
    elif shape.type_name == "map":
        for key, inner in value.items():
            yield from _walk(shape.key, key, path)
            yield from _walk(shape.value, inner, f"{path}[{key}]")


def _own(shape: Any, value: Any, path: str) -> Iterator[str]:
    limits = shape.metadata
    if not limits:
        return
    size = value if shape.type_name in ("integer", "long", "float", "double") else None
    if size is None and shape.type_name in ("string", "list", "map", "blob"):
        size = len(value)
    if size is not None and not limits.get("min", size) <= size <= limits.get("max", size):
        yield f"{path}: {size} is outside {limits.get('min', 0)} to {limits.get('max')}"
    if shape.type_name == "string":
        if "pattern" in limits and not pattern(limits["pattern"]).fullmatch(value):
            yield f"{path}: {value!r} does not match {limits['pattern']}"
        if limits.get("enum") and shape.name not in AGES and value not in limits["enum"]:
            yield f"{path}: {value!r} is none of {', '.join(limits['enum'][:12])}"
