"""How the text of a setting is read. A reader returns the value, or raises ValueError with what would be right."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit

from api import durations
from reconciler.model.settings import FeatureGates
from reconciler.runtime.leases import LeaseName

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_GATES = {
    "NodeRepair": "node_repair",
    "ReservedCapacity": "reserved_capacity",
    "SpotToSpotConsolidation": "spot_to_spot_consolidation",
    "NodeOverlay": "node_overlay",
    "StaticCapacity": "static_capacity",
    "CapacityBuffer": "capacity_buffer",
}
_PROVIDER_GATES = frozenset({"NodeClassCEL"})
#: Names that are accepted here and mean nothing: any more, or because they are set elsewhere.
_GATES_WITHOUT_EFFECT = frozenset({"Drift", *_PROVIDER_GATES})


def text(value: str) -> str:
    return value


def boolean(value: str) -> bool:
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise ValueError("must be true or false")


def whole(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    def read(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if number < lowest or (highest is not None and number > highest):
            raise ValueError(f"must be at least {lowest}" if highest is None else f"must be {lowest} to {highest}")
        return number

    return read


def share(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= number < 1:
        raise ValueError("must be at least 0 and less than 1")
    return number


def number(most: int, unit: str = "") -> Callable[[str], float]:
    """A reader of numbers from 0 to `most`, of a unit if they have one."""

    def read(value: str) -> float:
        try:
            found = float(value)
        except ValueError:
            raise ValueError(f"must be a number{unit and f' of {unit}'}") from None
        if not 0 <= found <= most:
            raise ValueError(f"must be at least 0 and at most {most}{unit and f' {unit}'}")
        return found

    return read


def duration(lowest: timedelta = timedelta(milliseconds=1)) -> Callable[[str], timedelta]:
    def read(value: str) -> timedelta:
        found = durations.parse_go(value)
        if found is None:
            raise ValueError("must be a duration such as 300ms, 10s or 1h30m")
        if found < lowest:
            raise ValueError(f"must be at least {durations.go_text(lowest)}")
        return found

    return read


def one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(a for a in allowed if a)}")
        return value

    return read


def url(value: str) -> str:
    parts = urlsplit(value)
    if value and not (parts.scheme in ("http", "https") and parts.netloc):
        raise ValueError("must be a URL with scheme and host")
    return value


def base64_text(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64") from None
    return value


def leases(value: str) -> tuple[LeaseName, ...]:
    return tuple(LeaseName.parse(part) for part in filter(None, (p.strip() for p in value.split(","))))


def _switches(value: str) -> dict[str, bool]:
    """`Name=true,Name=false`."""
    found: dict[str, bool] = {}
    for part in filter(None, (p.strip() for p in value.split(","))):
        name, equals, text = part.partition("=")
        if not equals or (text not in _TRUE and text not in _FALSE):
            raise ValueError(f"{part!r} is not of the form Name=true or Name=false")
        found[name] = text in _TRUE
    return found


def gates(value: str) -> FeatureGates:
    found = _switches(value)
    unknown = next((name for name in found if name not in _GATES and name not in _GATES_WITHOUT_EFFECT), None)
    if unknown is not None:
        raise ValueError(f"no gate is named {unknown!r}; there are {', '.join(sorted(_GATES))}")
    return FeatureGates(**{_GATES[name]: on for name, on in found.items() if name in _GATES})


def provider_gates(value: str) -> tuple[str, ...]:
    """Those that are open, of the AWS provider's that are known; Karpenter passes over all others."""
    return tuple(sorted(name for name, on in _switches(value).items() if on and name in _PROVIDER_GATES))
