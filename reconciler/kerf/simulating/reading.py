"""From the values of a YAML document to a Scenario, and to its JSON Schema."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from datetime import timedelta
from itertools import takewhile
from typing import Any, Final

import msgspec

from kerf.simulating.scenario import Replicas, Scenario, Span, shortest
from kerf_api import durations
from kerf_api.decoders import decoder_of
from kerf_api.lint import nearest

Path = tuple[str | int, ...]
#: How msgspec's messages lead to the path of the wrong value, and name an unknown field.
_AT: Final = " - at `"
_STEP: Final = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]+|\.\.\.)\]")
_UNKNOWN: Final = "Object contains unknown field `"
_NO_VALUE: Final = "Invalid enum value "
#: msgspec's messages about a wrong type or number, and plain names of the types.
_EXPECTED: Final = re.compile(r"Expected `([a-z |]+)`, got `([a-z]+)`")
_BOUND: Final = re.compile(r"Expected `([a-z]+)` (of length )?(>=|<=|>|<) ([0-9.]+)")
_TYPES: Final = {
    "object": "a map",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "an empty value",
}
_NAMES: Final = 8
_COLUMNS: Final = ["time", "replicas"]
_DURATION_PATTERN: Final = "^([0-9]+[hms])+$"


class BadScenario(Exception):
    """A scenario that cannot be run. `path` leads to the wrong value, and the text states the problem and the fix."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(path, message)
        self.path, self.message = path, message

    def __str__(self) -> str:
        return self.message


def read(value: Any) -> Scenario:
    """The scenario of a document; `checking.check` has the rules between its fields. Raises BadScenario."""
    decoder_of(Scenario)
    try:
        found: Scenario = msgspec.convert(value, Scenario, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise _bad(str(error), value) from error
    return found


def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors."""
    return msgspec.json.schema(Scenario, schema_hook=_schema)


def replicas(text: str, end: timedelta) -> tuple[Replicas, ...]:
    """The rows of a CSV file with the columns `time` (a duration) and `replicas`, until the `end` of its scenario.

    Raises ValueError with the line.
    """
    lines = csv.reader(text.removeprefix("\ufeff").splitlines(), strict=True)
    found: list[Replicas] = []
    try:
        if [cell.strip() for cell in next(lines, [])] != _COLUMNS:
            raise ValueError(f"line 1: not the names of the columns; write {','.join(_COLUMNS)}")
        for row in lines:
            if row:
                found.append(_row(lines.line_num, row, found, end))
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num}: {error}; write a duration and a number, such as 30m,12") from error
    if not found:
        raise ValueError("line 2: there is no row; write a duration and a number, such as 30m,12")
    return tuple(found)


def _row(number: int, row: list[str], before: list[Replicas], end: timedelta) -> Replicas:
    try:
        at, count = row
        found = Replicas(at=Span(durations.parse(at.strip())), replicas=_count(count.strip()))
    except ValueError as error:
        raise ValueError(f"line {number}: {error}; write a duration and a number, such as 30m,12") from error
    if before and found.at.value <= before[-1].at.value:
        raise ValueError(f"line {number}: {found.at} is not after the time of the row before; sort the rows by time")
    if found.at.value >= end:
        words = "write an earlier time or a longer duration"
        raise ValueError(f"line {number}: {found.at} is not before the end of the scenario ({shortest(end)}); {words}")
    return found


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        raise ValueError(f"{text!r} is no number of replicas from 0 to 99999")
    return int(text)


def missing(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that does not exist, with the nearest one or the first of those that do."""
    names = sorted(known)
    if close := nearest.name(name, names):
        return f"there is no {what} {name}; did you mean {close}?"
    more = ", …" if len(names) > _NAMES else ""
    return f"there is no {what} {name}; here are {', '.join(names[:_NAMES])}{more}" if names else f"there is no {what}"


def steps(path: Path) -> str:
    """A path in a scenario as text: `weather[0].price`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def camel(name: str) -> str:
    """The name of a field in a file."""
    first, *rest = name.split("_")
    return first + "".join(one.capitalize() for one in rest)


def _decoded(kind: type[Any], value: Any) -> Any:
    if kind is not Span:
        raise NotImplementedError
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration; write a text such as 30s, 1h30m")
    return Span(durations.parse(value))


def _schema(kind: type[Any]) -> dict[str, Any]:
    if kind is not Span:
        raise NotImplementedError
    return {"type": "string", "pattern": _DURATION_PATTERN, "examples": ["30s", "1h30m"]}


def _bad(text: str, value: Any) -> BadScenario:
    """With the path of the message as steps, and an unknown field as the last of them."""
    message, _, place = text.rpartition(_AT) if _AT in text else (text, "", "")
    found = (index if key == "" else key for key, index in _STEP.findall(place))
    path = tuple(takewhile(lambda step: step != "...", found))  # of a map the message has no key
    whole: Path = tuple(int(step) if step.isdigit() else step for step in path)
    if message.startswith(_UNKNOWN):
        unknown = message.removeprefix(_UNKNOWN).partition("`")[0]
        known = ", ".join(_fields(whole))
        close = nearest.meant(unknown, _fields(whole))
        message = f"there is no field {unknown}{close}" + (f"; the fields here are {known}" if known else "")
        whole = (*whole, unknown)
    elif message.startswith(_NO_VALUE):
        message = missing("value", message.removeprefix(_NO_VALUE).strip("'"), _values(whole))
    return BadScenario(whole, _plain(message))


def _plain(message: str) -> str:
    """The words for a value of a wrong type or outside its bounds, with the fix."""
    if found := _EXPECTED.fullmatch(message):
        wanted = " or ".join(_TYPES[one] for one in found[1].split(" | ") if one in _TYPES and one != "null")
        if found[2] == "null":
            return f"the value is empty; write {wanted}, or remove the field"
        quotes = ", in quotes" if wanted == "a text" and found[2] in ("int", "float", "bool") else ""
        return f"this is {_TYPES.get(found[2], found[2])}; write {wanted}{quotes}"
    if found := _BOUND.fullmatch(message):
        words = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}[found[3]]
        number = f"{float(found[4]):g}" if float(found[4]) < 1e6 else f"{float(found[4]):.0f}"
        if found[2]:
            return f"the length must be {words} {number}; change the number of entries or characters"
        return f"the value must be {words} {number}; write such a number"
    return message


def _fields(path: Path) -> list[str]:
    """The fields of the part at a path, as a file has them."""
    kind: Any = msgspec.inspect.type_info(Scenario)
    for step in path:
        kind = _below(kind, step)
    return sorted(one.encode_name for one in getattr(kind, "fields", ()))


def _values(path: Path) -> list[str]:
    """The values that the field at a path may have."""
    kind: Any = msgspec.inspect.type_info(Scenario)
    for step in path:
        kind = _below(kind, step)
    return [str(one) for one in getattr(kind, "values", ())]


def _below(kind: Any, step: str | int) -> Any:
    """The type of a field or an item."""
    if isinstance(step, int):
        return _part(getattr(kind, "item_type", None))
    found = (one.type for one in getattr(kind, "fields", ()) if one.encode_name == step)
    return _part(next(found, None))


def _part(kind: Any) -> Any:
    """Of an optional part the part."""
    options = [one for one in getattr(kind, "types", ()) if hasattr(one, "fields")]
    return options[0] if options else kind
