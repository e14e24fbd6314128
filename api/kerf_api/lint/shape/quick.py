"""Is the shape right at all? Asked first, since it nearly always is.

The same JSON Schemas as in keywords.py, run by a compiled library in a hundredth of the time; it only says yes or no.
Yes must never be said where keywords.py finds a fault (tests compare the two on every table and on random manifests);
after a no, keywords.py looks for what to say. Patterns are run in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from kerf_api.lint.shape.formats import ascii_classes, is_date_time
from kerf_api.lint.shape.translate import json_schema


@cache
def validator(kind: str) -> Callable[[Any], bool]:
    """A function that says whether a manifest with its defaults has the shape of a kind. Raises KeyError."""
    compiled = jsonschema_rs.Draft202012Validator(
        _ascii(json_schema(kind)),
        keywords={"uniqueKeys": _UniqueKeys},
        formats={"date-time": is_date_time},
        validate_formats=True,
        pattern_options=jsonschema_rs.RegexOptions(),
    )
    return compiled.is_valid


def _ascii(schema: Any) -> Any:
    """The schema with patterns that mean ASCII digits and spaces, as in Go's RE2."""
    if isinstance(schema, Mapping):
        return {
            word: ascii_classes(part) if word == "pattern" and isinstance(part, str) else _ascii(part)
            for word, part in schema.items()
        }
    return [_ascii(part) for part in schema] if isinstance(schema, list | tuple) else schema


class _UniqueKeys:
    """List entries that are unique by some of their fields. Raises ValueError for a repetition."""

    def __init__(self, parent: Any, keys: list[str], path: Any) -> None:
        self._keys = keys

    def validate(self, value: Any) -> None:
        entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
        identities = {tuple(repr(entry.get(key)) for key in self._keys) for entry in entries}
        if len(identities) < len(entries):
            raise ValueError("a repetition")
