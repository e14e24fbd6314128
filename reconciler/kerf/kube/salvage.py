"""What can be read of an object that does not fit its type: all that fits, part by part, and a note of what did not.

Leaving the object out would be worse than not understanding it: an instance whose NodeClaim is missing looks like an
orphan, a node whose pods are missing looks empty. The note (`metadata.unreadable`) keeps decisions off it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec.structs import fields, replace

from kerf_api.v1.meta import ObjectMeta, Value

_LONGEST: Final = 300


def salvage(kind: type[Any], raw: bytes | msgspec.Raw, problem: str) -> Any | None:
    """The object as far as it can be read, marked with the problem; None when not even its name can be."""
    try:
        value = _part(kind, msgspec.json.decode(raw))
    except (msgspec.DecodeError, TypeError):
        return None
    meta: ObjectMeta = value.metadata
    if not meta.name:
        return None
    return replace(value, metadata=replace(meta, unreadable=problem[:_LONGEST] or "unknown"))


def _part(kind: type[Any], data: object) -> Any:
    """Raises TypeError when a field without a default is missing, and is no part that could be empty."""
    kept: dict[str, Any] = {}
    for field in fields(kind):
        inner = _inner(field.type)
        if isinstance(data, dict) and field.encode_name in data:
            try:
                kept[field.name] = msgspec.convert(data[field.encode_name], field.type, strict=True)
                continue
            except msgspec.ValidationError:
                if inner is not None:
                    kept[field.name] = _part(inner, data[field.encode_name])
                    continue
                if get_origin(field.type) is Mapping:
                    kept[field.name] = _texts(data[field.encode_name])
        if field.required and inner is not None:
            kept[field.name] = _part(inner, {})
    return kind(**kept)


def _texts(data: object) -> dict[str, str]:
    """Of a map (labels, quantities) the entries that are plain text."""
    return {key: text for key, text in data.items() if isinstance(text, str)} if isinstance(data, dict) else {}


def _inner(type_: Any) -> type[Value] | None:
    """The structure that a field holds, if it holds one (or none)."""
    choices = [t for t in (type_, *get_args(type_)) if isinstance(t, type) and issubclass(t, Value)]
    return choices[0] if choices and get_args(type_)[1:] in ((), (type(None),)) else None
