"""Fills in what a manifest leaves out, exactly as the API server does by the CustomResourceDefinitions.

`default` gives the whole manifest, `patch` only the differences, for the mutating webhook. Defaults live in the CRDs
and nowhere else. The API server's rules for null come along: where the schema has a default, null means "take it";
anywhere else in a map a null is dropped; in a list it stays and is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kerf_api import crds

_ABSENT: Final = object()
#: What is copied by being handed on.
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


def default(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the manifest with every default filled in; the argument is not changed.

    A manifest of a kind that is not ours, or of another version, is copied as it is.
    """
    shape = _known(manifest)
    copied = _filled(manifest, shape) if shape is not None else _copied(manifest)
    result: dict[str, Any] = copied
    return result


def patch(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSONPatch (RFC 6902) that turns the manifest into `default(manifest)`: empty when nothing is missing."""
    return list(_difference(dict(manifest), default(manifest), ""))


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """What of a schema matters here, laid out once: a manifest has hundreds of values, and most need nothing.

    `parts` are the shapes of known fields, `rest` that of other fields; None where a value is taken as it is. `fills`
    are the defaults of fields.
    """

    nullable: bool
    parts: Mapping[str, _Shape]
    rest: _Shape | None
    items: _Shape | None
    fills: tuple[tuple[str, Any, _Shape], ...]


def _shape(schema: Mapping[str, Any]) -> _Shape:
    parts = {name: _shape(part) for name, part in schema.get("properties", {}).items()}
    rest, items = schema.get("additionalProperties"), schema.get("items")
    fills = ((name, part["default"]) for name, part in schema.get("properties", {}).items() if "default" in part)
    return _Shape(
        bool(schema.get("nullable")),
        parts,
        _shape(rest) if isinstance(rest, Mapping) else None,
        _shape(items) if isinstance(items, Mapping) else None,
        tuple((name, value, parts[name]) for name, value in fills),
    )


@cache
def _shape_of(kind: str) -> _Shape:
    """The shape of a kind. No other definition is read: reading takes longer than all the rest."""
    return _shape(crds.schema(kind))


def _known(manifest: Mapping[str, Any]) -> _Shape | None:
    """The shape of the manifest's kind, if it is one of ours in our version."""
    kind = manifest.get("kind")
    known = kind in crds.kinds() and manifest.get("apiVersion") == crds.api_version(kind)
    return _shape_of(kind) if known else None


def _filled(value: Any, shape: _Shape) -> Any:
    """A copy of `value` with defaults. Parts that the schema does not know are copied as they are."""
    if type(value) in _SCALARS:
        return value
    if type(value) is dict or isinstance(value, Mapping):  # the first is quicker, and true of nearly all
        return _filled_map(value, shape)
    if isinstance(value, list):
        items = shape.items
        if _is_flat(value):
            return list(value)
        return [_filled(entry, items) for entry in value] if items is not None else _copied(value)
    return value


def _filled_map(value: Mapping[str, Any], shape: _Shape) -> dict[str, Any]:
    parts, rest = shape.parts, shape.rest
    result: dict[str, Any] = {}
    for name, entry in value.items():
        part = parts.get(name, rest)
        if part is None:
            result[name] = _copied(entry)
        elif entry is None:
            if part.nullable:
                result[name] = None
        else:
            result[name] = entry if type(entry) in _SCALARS else _filled(entry, part)
    for name, standard, part in shape.fills:
        if name not in result:
            result[name] = _filled(standard, part)
    return result


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(entry) for name, entry in value.items()}
    if not isinstance(value, list):
        return value
    return list(value) if _is_flat(value) else [_copied(entry) for entry in value]


def _is_flat(value: list[Any]) -> bool:
    """Whether a list holds scalars only: it may have thousands."""
    return {*map(type, value)} <= _SCALARS


def _difference(before: Any, after: Any, pointer: str) -> Iterator[dict[str, Any]]:
    """The steps from `before` to `after`. Lists keep their length, so entries can be compared one by one."""
    if before == after:  # as most parts are; defaults make no value another type
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in before:
            if name not in after:
                yield {"op": "remove", "path": _child(pointer, name)}
        for name, value in after.items():
            old = before.get(name, _ABSENT)
            if old is _ABSENT or (old is None and value is not None):
                yield {"op": "add" if old is _ABSENT else "replace", "path": _child(pointer, name), "value": value}
            else:
                yield from _difference(old, value, _child(pointer, name))
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, value) in enumerate(zip(before, after, strict=True)):
            yield from _difference(old, value, _child(pointer, str(index)))


def _child(pointer: str, name: str) -> str:
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
