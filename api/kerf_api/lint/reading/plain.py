"""The door: whatever a YAML or JSON reader made becomes plain dicts, lists and scalars, or a problem.

YAML can say things that JSON, and so the API server, cannot: keys that are numbers, dates, endless nesting. Behind this
door no module handles them again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from kerf_api.lint.problem import LONGEST_NUMBER_BITS, Problem, Steps, at, shown

#: Deeper than any manifest, and shallow enough for every recursion behind the door.
DEEPEST: Final = 64


#: More values than any manifest has, and so many take half a second. A few lines of YAML whose aliases name each
#: other unfold into billions.
MOST_VALUES: Final = 50_000
#: No reader needs more problems than this.
_MOST_TOLD: Final = 100


def plain(manifest: Any) -> tuple[dict[str, Any], list[Problem]]:
    """The manifest as plain data, and what could not be carried over.

    A manifest that is no map becomes empty, and so does one of more values than are worth a look.
    """
    if not isinstance(manifest, Mapping):
        return {}, [at((), "KERF-SCHEMA-TYPE", "error", "a manifest is a map with apiVersion, kind and spec")]
    reader = _Reader()
    result: dict[str, Any] = reader.map(manifest, ())
    if reader.left < 0:
        message = f"contains more than {MOST_VALUES} values after its aliases are resolved"
        return {}, [at(reader.too_much, "KERF-SCHEMA-LIMIT", "error", message, "split it into several objects")]
    return result, reader.problems


class _Reader:
    """Reads one manifest. Of maps and lists every entry is counted before they are gone through, and when there have
    been too many, nothing more is gone through."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.left = MOST_VALUES
        self.too_much: Steps = ()

    def map(self, value: Mapping[Any, Any], steps: Steps) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if self._exhausted(len(value), steps):
            return result
        for key, entry in value.items():
            if type(key) is str and key.isascii():  # nearly all
                plain_text = type(entry) is str and entry.isascii()  # most, and they need no call
                result[key] = entry if plain_text else self.value(entry, (*steps, key))
                continue
            name = key if type(key) is str else str(key) if isinstance(key, str) else shown(key)
            if not isinstance(key, str):
                hint = f'put it in quotes: "{name}"'
                self._refused((*steps, name), "KERF-SCHEMA-KEY", f"the key {name} is no text", hint)
            result[self._text(name, steps)] = self.value(entry, (*steps, name))
        return result

    def value(self, value: Any, steps: Steps) -> Any:
        if type(value) is dict or isinstance(value, Mapping):
            return self.map(value, steps) if len(steps) < DEEPEST else self._too_deep(steps)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(str(value), steps)
        if isinstance(value, int):
            return self._whole(value, steps)
        if isinstance(value, float):
            return self._number(value, steps)
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            return self._list(value, steps) if len(steps) < DEEPEST else self._too_deep(steps)
        if isinstance(value, (date, datetime)):
            return value.isoformat().replace("+00:00", "Z")
        return self._refused(steps, "KERF-SCHEMA-TYPE", f"{type(value).__name__} cannot be represented in JSON")

    def _list(self, value: Sequence[Any], steps: Steps) -> list[Any]:
        if self._exhausted(len(value), steps):
            return []
        return [
            entry if type(entry) is str and entry.isascii() else self.value(entry, (*steps, index))
            for index, entry in enumerate(value)
        ]

    def _too_deep(self, steps: Steps) -> None:
        self._refused(steps, "KERF-SCHEMA-DEPTH", f"is nested more than {DEEPEST} levels deep")

    def _exhausted(self, count: int, steps: Steps) -> bool:
        """Whether there are too many values with these; `too_much` keeps where that showed first."""
        if self.left >= 0:
            self.left -= count
            self.too_much = steps
        return self.left < 0

    def _refused(self, steps: Steps, rule: str, message: str, hint: str = "") -> None:
        if len(self.problems) < _MOST_TOLD:
            self.problems.append(at(steps, rule, "error", message, hint))

    def _text(self, value: str, steps: Steps) -> str:
        if value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value):
            return value
        self._refused(steps, "KERF-SCHEMA-TEXT", "contains half a character, which is no valid UTF-8")
        return value.encode("utf-8", "replace").decode()

    def _whole(self, value: int, steps: Steps) -> int:
        if value.bit_length() <= LONGEST_NUMBER_BITS:
            return int(value)
        self._refused(steps, "KERF-SCHEMA-TYPE", f"{shown(value)} is larger than any reader of JSON accepts")
        return 0

    def _number(self, value: float, steps: Steps) -> float:
        if math.isfinite(value):
            return float(value)
        self._refused(steps, "KERF-SCHEMA-TYPE", f"{value} cannot be represented in JSON")
        return 0.0
