"""What a row of the table is, the rules about shape by short names, and pieces that many rows need."""

from __future__ import annotations

from typing import Any, NamedTuple

TYPE, ENUM, PATTERN, BOUND = "KERF-SCHEMA-TYPE", "KERF-SCHEMA-ENUM", "KERF-SCHEMA-PATTERN", "KERF-SCHEMA-BOUND"
SIZE, REQUIRED, UNIQUE = "KERF-SCHEMA-SIZE", "KERF-SCHEMA-REQUIRED", "KERF-SCHEMA-UNIQUE"
UNKNOWN, FORMAT = "KERF-SCHEMA-UNKNOWN", "KERF-SCHEMA-FORMAT"


class Row(NamedTuple):
    """A field, the values to try there, and for refusals the rule and the place that is blamed."""

    kind: str
    path: str
    values: tuple[Any, ...]
    rule: str = ""
    blamed: str = ""


def requirement(key: str = "a", operator: str = "In", values: Any = ("x",), **more: Any) -> dict[str, Any]:
    """A requirement; without values when they are None."""
    return {"key": key, "operator": operator} | ({} if values is None else {"values": list(values)}) | more


def interface(card: int, device: int, kind: str = "interface") -> dict[str, Any]:
    """A network interface."""
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind}


def window(schedule: str, duration: str = "8h") -> dict[str, Any]:
    """A budget with a schedule."""
    return {"nodes": "0", "schedule": schedule, "duration": duration}
