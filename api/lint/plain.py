"""The door: whatever a YAML or JSON reader made becomes plain dicts, lists and scalars, or a problem.

YAML can say things that JSON, and so the API server, cannot: keys that are numbers, dates, endless nesting. Behind this
door nobody needs to think of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from .problem import LONGEST_NUMBER_BITS, Problem, Steps, at, shown

#: Deeper than any manifest, and shallow enough for every recursion behind the door.
DEEPEST: Final = 64


def plain(manifest: Any) -> tuple[dict[str, Any], list[Problem]]:
    """The manifest as plain data, and what could not be carried over. A manifest that is no map becomes empty."""
    problems: list[Problem] = []
    if not isinstance(manifest, Mapping):
        return {}, [at((), "KERF-SCHEMA-TYPE", "error", "a manifest is a map with apiVersion, kind and spec")]
    result: dict[str, Any] = _map(manifest, (), problems)
    return result, problems


def _value(value: Any, steps: Steps, problems: list[Problem]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str(value), steps, problems)
    if isinstance(value, int):
        return _whole(value, steps, problems)
    if isinstance(value, float):
        return _number(value, steps, problems)
    if len(steps) >= DEEPEST and isinstance(value, (Mapping, Sequence)):
        problems.append(at(steps, "KERF-SCHEMA-DEPTH", "error", f"is nested more than {DEEPEST} levels deep"))
        return None
    if isinstance(value, Mapping):
        return _map(value, steps, problems)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_value(entry, (*steps, index), problems) for index, entry in enumerate(value)]
    if isinstance(value, (date, datetime)):
        return value.isoformat().replace("+00:00", "Z")
    problems.append(at(steps, "KERF-SCHEMA-TYPE", "error", f"{type(value).__name__} is nothing that JSON can hold"))
    return None


def _map(value: Mapping[Any, Any], steps: Steps, problems: list[Problem]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, entry in value.items():
        name = key if type(key) is str else str(key) if isinstance(key, str) else shown(key)
        if not isinstance(key, str):
            message = f"the key {name} is no text"
            problems.append(at((*steps, name), "KERF-SCHEMA-KEY", "error", message, f'put it in quotes: "{name}"'))
        result[_text(name, steps, problems)] = _value(entry, (*steps, name), problems)
    return result


def _text(value: str, steps: Steps, problems: list[Problem]) -> str:
    if value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value):
        return value
    problems.append(at(steps, "KERF-SCHEMA-TEXT", "error", "holds half a character, which is no valid UTF-8"))
    return value.encode("utf-8", "replace").decode()


def _whole(value: int, steps: Steps, problems: list[Problem]) -> int:
    if value.bit_length() <= LONGEST_NUMBER_BITS:
        return int(value)
    problems.append(at(steps, "KERF-SCHEMA-TYPE", "error", f"{shown(value)} is larger than any reader of JSON takes"))
    return 0


def _number(value: float, steps: Steps, problems: list[Problem]) -> float:
    if math.isfinite(value):
        return float(value)
    problems.append(at(steps, "KERF-SCHEMA-TYPE", "error", f"{value} is nothing that JSON can hold"))
    return 0.0
