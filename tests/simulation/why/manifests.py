"""Fields of manifests by their path, as answers write them: `spec.taints[0]`, `metadata.labels["a/b"]`."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

_PART = re.compile(r'\["([^"\]]*)"\]|\[(\d+)\]|\[name=([^\]]*)\]|\[(-)\]|([^.\[\]]+)')


@dataclass(frozen=True)
class Named:
    """The object of a list that has this name."""

    name: str


def parts(path: str) -> list[str | int | Named]:
    """The keys, indices and names of a path; -1 is a new element of a list."""
    return [_part(*found) for found in _PART.findall(path)]


def _part(quoted: str, index: str, name: str, new: str, plain: str) -> str | int | Named:
    if name:
        return Named(name)
    return -1 if new else int(index) if index else quoted or plain


def _place(at: Any, part: str | int | Named) -> Any:
    """The key or the index; of a name the place of the object. Raises IndexError."""
    if not isinstance(part, Named):
        return part
    names = [one.get("name") for one in at]
    if part.name not in names:
        raise IndexError(part.name)
    return names.index(part.name)


def get(manifest: Any, path: str) -> Any:
    """The value at a path; None where there is none."""
    for part in parts(path):
        try:
            manifest = manifest[_place(manifest, part)]
        except (KeyError, IndexError, TypeError):
            return None
    return manifest


def with_value(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a path, or (None) without the field. Raises IndexError, KeyError."""
    made = deepcopy(manifest)
    *way, last = parts(path)
    at: Any = made
    for part, after in zip(way, [*way[1:], last], strict=True):
        if isinstance(part, str):
            at = at.setdefault(part, {} if isinstance(after, str) else [])
        else:
            at = at[_place(at, part)]
    if value is None:
        at.pop(_place(at, last), None) if isinstance(at, dict) else at.pop(_place(at, last))
    elif last == -1:
        at.append(value)
    else:
        at[_place(at, last)] = value
    return made


def covers(one: str, other: str) -> bool:
    """Whether one path is the other, or leads there."""
    a, b = parts(one), parts(other)
    return a[: len(b)] == b or b[: len(a)] == a
