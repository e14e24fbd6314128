"""Bounds of the times and numbers that other programs write into objects.

Kubernetes stores a timestamp of any year and a number of seconds of up to 64 bits; a kubelet, a user or a tenant may
write either. A value out of bounds counts as the nearest one within them, so that the sum of an instant and several
durations never overflows. Bounds apply where an object or an annotation is decoded, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

T = TypeVar("T")
Bound = Callable[[Any], Any]
#: By type, each worked out once.
_BOUNDS: dict[Any, Bound | None] = {}

#: The instants that count as they are. Go's nanoseconds end in 2262.
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2262, 1, 1, tzinfo=UTC)
#: The longest duration Go can hold (2^63 ns, 292 years).
LONGEST_SECONDS: Final = (2**63 - 1) // 10**9

_LATEST_MILLISECONDS: Final = (LATEST - EARLIEST) // timedelta(milliseconds=1)

#: A number of seconds that an object holds; `bounded` keeps it from 0 to LONGEST_SECONDS.
Seconds = Annotated[int, msgspec.Meta(extra={"bounds": "seconds"})]


def instant(value: datetime) -> datetime:
    """The instant in UTC, or the nearest one within bounds. A time without a zone is in UTC."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return min(max(value, EARLIEST), LATEST).astimezone(UTC)


def instant_of(text: str) -> datetime:
    """An ISO 8601 time within bounds. Raises ValueError when the text is no time or has no zone."""
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError(f"{text!r} is a time without a zone")
    return instant(value)


def instant_of_unix(milliseconds: str) -> datetime | None:
    """The instant of a number of milliseconds since 1970 within bounds; None when the text is no such number."""
    if not (milliseconds.isascii() and milliseconds.isdigit()):
        return None
    return EARLIEST + timedelta(milliseconds=min(int(milliseconds[:20]), _LATEST_MILLISECONDS))


def seconds(value: int) -> int:
    """The number of seconds, or the nearest one within bounds."""
    return value if 0 <= value <= LONGEST_SECONDS else min(max(value, 0), LONGEST_SECONDS)


def bounded(value: T, kind: Any = None) -> T:
    """The value with every time and every `Seconds` in it within bounds; the very same value if all are.

    Args:
        value: a Struct, or a tuple or mapping of them.
        kind: its type; of a Struct its class by default.
    """
    bound = bound_of(kind or type(value))
    return value if bound is None else bound(value)


def bound_of(kind: Any) -> Bound | None:
    """The function that brings a value of a type within bounds; None when the type holds neither times nor seconds."""
    if kind not in _BOUNDS:
        _BOUNDS[kind] = _of(kind)
    return _BOUNDS[kind]


def _of(kind: Any) -> Bound | None:
    if kind is datetime:
        return instant
    if kind is Seconds:
        return seconds
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return bound_of(parts[0])
    if origin in (Union, UnionType):
        return _of_choice(parts)
    if origin is tuple:
        return _of_items(bound_of(parts[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of_values(bound_of(parts[1]))
    return _of_fields(kind) if isinstance(kind, type) and issubclass(kind, Struct) else None


def _of_choice(choices: tuple[Any, ...]) -> Bound | None:
    """Of the first choice that holds any; no field has two such choices. An absent value stays absent."""
    inner = next((bound for one in choices if (bound := bound_of(one)) is not None), None)
    return None if inner is None else lambda value: None if value is None else inner(value)


def _of_items(inner: Bound | None) -> Bound | None:
    if inner is None:
        return None

    def bound(values: tuple[Any, ...]) -> tuple[Any, ...]:
        for value in values:
            if inner(value) is not value:
                return tuple([inner(value) for value in values])
        return values

    return bound


def _of_values(inner: Bound | None) -> Bound | None:
    if inner is None:
        return None

    def bound(values: Mapping[Any, Any]) -> Mapping[Any, Any]:
        for value in values.values():
            if inner(value) is not value:
                return {key: inner(value) for key, value in values.items()}
        return values

    return bound


def _of_fields(kind: type[Struct]) -> Bound | None:
    """Every pod passes here: times are compared in place, and a value within bounds is not copied."""
    hints = get_type_hints(kind, include_extras=True)
    found = [(name, inner) for name in kind.__struct_fields__ if (inner := bound_of(hints[name])) is not None]
    times = tuple(name for name, _ in found if hints[name] in (datetime, datetime | None))
    others = tuple((name, inner) for name, inner in found if name not in times)
    if not found:
        return None

    def bound(value: Any) -> Any:
        changes = None
        for name in times:
            held = getattr(value, name)
            if held is None or (held.tzinfo is UTC and EARLIEST <= held <= LATEST):
                continue
            if (kept := instant(held)) is not held:
                changes = {**(changes or {}), name: kept}
        for name, inner in others:
            held = getattr(value, name)
            if held and (kept := inner(held)) is not held:
                changes = {**(changes or {}), name: kept}
        return value if changes is None else replace(value, **changes)

    return bound
