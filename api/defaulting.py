"""Fills in what a manifest leaves out, exactly as the API server does by the CustomResourceDefinitions.

`default` gives the whole manifest, `patch` only the differences, for the mutating webhook. Defaults live in the CRDs
and nowhere else. The API server's rules for null come along: where the schema has a default, null means "take it";
anywhere else in a map a null is dropped; in a list it stays and is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import crds

_ABSENT: Final = object()


def default(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the manifest with every default filled in; the argument is not changed.

    A manifest of a kind that is not ours, or of another version, is copied as it is.
    """
    schema = _schema(manifest)
    copied = _filled(manifest, schema) if schema is not None else _copied(manifest)
    result: dict[str, Any] = copied
    return result


def patch(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSONPatch (RFC 6902) that turns the manifest into `default(manifest)`: empty when nothing is missing."""
    return list(_difference(dict(manifest), default(manifest), ""))


def _schema(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the manifest's kind. No other definition is read: reading takes longer than all the rest."""
    kind = manifest.get("kind")
    if kind not in crds.kinds() or manifest.get("apiVersion") != crds.api_version(kind):
        return None
    return crds.schema(kind)


def _filled(value: Any, schema: Mapping[str, Any]) -> Any:
    """A copy of `value` with defaults. Parts that the schema does not know are copied as they are."""
    if isinstance(value, Mapping):
        return _filled_map(value, schema)
    if isinstance(value, list):
        items = schema.get("items")
        return [_filled(entry, items) for entry in value] if isinstance(items, Mapping) else _copied(value)
    return value


def _filled_map(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    known: Mapping[str, Any] = schema.get("properties", {})
    rest = schema.get("additionalProperties")
    result: dict[str, Any] = {}
    for name, entry in value.items():
        part = known.get(name, rest)
        if not isinstance(part, Mapping):
            result[name] = _copied(entry)
        elif entry is not None or part.get("nullable"):
            result[name] = _filled(entry, part)
    for name, part in known.items():
        if name not in result and "default" in part:
            result[name] = _filled(part["default"], part)
    return result


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(entry) for name, entry in value.items()}
    return [_copied(entry) for entry in value] if isinstance(value, list) else value


def _difference(before: Any, after: Any, pointer: str) -> Iterator[dict[str, Any]]:
    """The steps from `before` to `after`. Lists keep their length, so entries can be compared one by one."""
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
