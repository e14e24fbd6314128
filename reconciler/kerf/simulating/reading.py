"""From the values of a YAML document to a Scenario, and to its JSON Schema."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kerf.simulating.scenario import LONGEST, Part, Replicas, Scenario, Span, Step, Weather, shortest
from kerf_api import durations
from kerf_api.decoders import decoder_of

Path = tuple[str | int, ...]
#: How msgspec's messages lead to the path of the wrong value, and name an unknown field.
_AT: Final = " - at `"
_STEP: Final = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]+|\.\.\.)\]")
_UNKNOWN: Final = "Object contains unknown field `"
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
    """The scenario of a document. Raises BadScenario."""
    decoder_of(Scenario)
    try:
        found: Scenario = msgspec.convert(value, Scenario, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise _bad(str(error), value) from error
    _check(found)
    return found


def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors."""
    return msgspec.json.schema(Scenario, schema_hook=_schema)


def replicas(text: str) -> tuple[Replicas, ...]:
    """The rows of a CSV file with the columns `time` (a duration) and `replicas`. Raises ValueError with the line."""
    rows = csv.reader(text.splitlines())
    if (head := [cell.strip() for cell in next(rows, [])]) != _COLUMNS:
        raise ValueError(f"line 1: the columns are {', '.join(head) or 'missing'}; write {','.join(_COLUMNS)}")
    return tuple(_row(number, row) for number, row in enumerate(rows, 2) if row)


def _row(number: int, row: list[str]) -> Replicas:
    try:
        at, count = row
        return Replicas(at=Span(durations.parse(at.strip())), replicas=_count(count.strip()))
    except ValueError as error:
        raise ValueError(f"line {number}: {error}; write a duration and a number, such as 30m,12") from error


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        raise ValueError(f"{text!r} is no number of replicas from 0 to 99999")
    return int(text)


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
    message, _, steps = text.rpartition(_AT) if _AT in text else (text, "", "")
    path = tuple(index if key == "" else key for key, index in _STEP.findall(steps))
    whole: Path = tuple(int(step) if step.isdigit() else step for step in path)
    if message.startswith(_UNKNOWN):
        unknown = message.removeprefix(_UNKNOWN).partition("`")[0]
        known = ", ".join(_fields(whole))
        message = f"there is no field {unknown}" + (f"; the fields here are {known}" if known else "")
        whole = (*whole, unknown)
    return BadScenario(whole, message)


def _fields(path: Path) -> list[str]:
    """The fields of the part at a path, as a file has them."""
    kind: Any = msgspec.inspect.type_info(Scenario)
    for step in path:
        kind = _below(kind, step)
    return sorted(one.encode_name for one in getattr(kind, "fields", ()))


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


# --- rules between fields -----------------------------------------------------------------------------------------
def _check(found: Scenario) -> None:
    """Raises BadScenario."""
    if not found.warmed < found.duration.value <= LONGEST:
        words = f"{found.duration} must be longer than warmUp ({shortest(found.warmed)}) and at most 744h"
        raise BadScenario(("duration",), words)
    if found.world.snapshot and (found.world.zones or found.world.instance_types):
        raise BadScenario(("world", "snapshot"), "zones and instanceTypes are those of the snapshot; remove them")
    for number, one in enumerate(found.assertions):
        _single(("assertions", number), _given(one), "assertion")
    for number, step in enumerate(found.timeline):
        _timed(("timeline", number), step, found)
    for number, event in enumerate(found.weather):
        _timed(("weather", number), event, found)
    names = [f"{one.namespace}/{one.name}" for one in found.workloads]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise BadScenario(("workloads", number, "name"), f"two workloads are named {name}; rename one")


def _timed(path: Path, step: Step | Weather, found: Scenario) -> None:
    if step.at.value > found.duration.value:
        raise BadScenario((*path, "at"), f"{step.at} is after the end of the scenario ({found.duration})")
    given = {name: value for name, value in _given(step).items() if name != "at"}
    if isinstance(step, Weather):
        _single(path, given, "event")
    elif not given:
        raise BadScenario(path, "there is nothing to do; add apply, objects, delete or scale")


def _single(path: Path, given: Mapping[str, Any], word: str) -> None:
    if len(given) != 1:
        have = ", ".join(given) or "none"
        raise BadScenario(path, f"exactly one {word} is required, found {have}; write one entry for each")


def _given(part: Part) -> dict[str, Any]:
    """The fields of a part that are set, by their names in the file."""
    pairs = zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    found = ((name, getattr(part, own)) for own, name in pairs)
    return {name: value for name, value in found if value is not None and value not in ((), {})}
