"""Which parts of a write the API server did not keep: fields that the schema it serves does not have are dropped.

Each decision would write them again, and nothing else of the object, for of an object one write is made at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kerf.model.kinds import Ref
from kerf.model.plan import Action, PatchObject
from kerf_api import crds
from kerf_api.lint.problem import path_text
from kerf_api.v1.meta import Value, decode, encode

#: The object, the field (`status.nodes`; a list is one field) and its value (JSON).
Field = tuple[Ref, str, bytes]


def dropped(action: PatchObject, answer: Value) -> list[Field]:
    """What the object in the answer does not have as it was written. Empty when it has everything, or when that cannot
    be determined."""
    if not action.subresource or action.ref.kind not in crds.FILES:  # elsewhere every release keeps what Kerf writes
        return []
    if _shows(answer, action.patch):
        return []
    data = encode(answer)
    if _has(answer, data, action.patch):
        return []
    return [
        _field(action, path, value)
        for path, value in _fields(action.patch)
        if not _has(answer, data, _nested(path, value))
    ]


def of_use(actions: Iterable[Action], known: Collection[Field]) -> list[Action]:
    """The actions but for writes of which every field was dropped before."""
    return [one for one in actions if not (known and isinstance(one, PatchObject) and _is_dropped(one, known))]


def written_fields(action: PatchObject) -> list[str]:
    """The fields that a write sets or removes: `status.conditions` (a list is one field)."""
    return [path_text(path) for path in written_values(action)]


def written_values(action: PatchObject) -> dict[tuple[str, ...], Any]:
    """By the path of a field, the value that a write gives it; None where it removes it."""
    return dict(_fields(action.patch))


def _is_dropped(action: PatchObject, known: Collection[Field]) -> bool:
    return all(_field(action, path, value) in known for path, value in _fields(action.patch))


def _field(action: PatchObject, path: tuple[str, ...], value: Any) -> Field:
    return action.ref, ".".join(path), msgspec.json.encode(value, order="deterministic")


def _fields(patch: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in patch.items():
        if isinstance(value, Mapping) and value:
            yield from _fields(value, (*above, name))
        else:
            yield (*above, name), value


def _shows(answer: Value, patch: Mapping[str, Any]) -> bool:
    """Whether the answer has the patch as it stands: true of nearly every write, and much less work than `_has`."""
    parts = {name: getattr(answer, name, None) for name in patch}
    return all(isinstance(part, Value) and _contains(encode(part), patch[name]) for name, part in parts.items())


def _contains(data: Any, patch: Any) -> bool:
    if not isinstance(patch, Mapping):
        return bool(data == patch)
    return isinstance(data, Mapping) and all(
        name not in data if value is None else name in data and _contains(data[name], value)
        for name, value in patch.items()
    )


def _has(answer: Value, data: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Whether the patch would change nothing. Compared as values: defaults may be written or not."""
    try:
        return decode(type(answer), _applied(data, patch)) == answer
    except ValueError:
        return True


def _nested(path: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    for name in reversed(path):
        value = {name: value}
    nested: Mapping[str, Any] = value
    return nested


def _applied(data: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(data) if isinstance(data, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _applied(result.get(name), value)
    return result
