"""Bounds of the times and numbers that other programs write into objects.

Kubernetes stores a timestamp of any year and a number of seconds of up to 64 bits; a kubelet, a user or a tenant may
write either. A value out of bounds counts as the nearest one within them, so that the sum of an instant and several
durations never overflows. Bounds apply where an object or an annotation is decoded, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter
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
        return _of_stamped(parts[0]) or _of_items(bound_of(parts[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of_values(bound_of(parts[1]))
    return _of_fields(kind) if isinstance(kind, type) and issubclass(kind, Struct) else None


def _of_choice(choices: tuple[Any, ...]) -> Bound | None:
    """Of the first choice that holds any; no field has two such choices. An absent value stays absent."""
    inner = next((bound for one in choices if (bound := bound_of(one)) is not None), None)
    return None if inner is None else lambda value: None if value is None else inner(value)


def _of_stamped(kind: Any) -> Bound | None:
    """Of structures that hold one time and nothing else that has bounds, such as conditions: the usual case."""
    found = [*_places(kind)] if isinstance(kind, type) and issubclass(kind, Struct) else []
    places = [(path, hint) for path, hint in found if bound_of(hint) is not None]
    if len(places) != 1 or places[0][1] not in (datetime, datetime | None):
        return None
    stamp, repaired = attrgetter(places[0][0]), _repairing(kind)

    def bound(values: tuple[Any, ...]) -> tuple[Any, ...]:
        for at in map(stamp, values):
            if at is not None and not (at.tzinfo is UTC and EARLIEST <= at <= LATEST):
                return tuple([repaired(value) for value in values])
        return values

    return bound


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
    """Every pod passes here, and nearly all are within bounds: that is found out first, and nothing is copied."""
    places = [(path, hint) for path, hint in _places(kind) if bound_of(hint) is not None]
    if not places:
        return None
    repaired = _repairing(kind)
    times = [path for path, hint in places if hint in (datetime, datetime | None)]
    stamps = attrgetter(*times, *times[:1]) if times else lambda value: ()
    others = [(attrgetter(path), bound_of(hint)) for path, hint in places if path not in times]

    def bound(value: Any) -> Any:
        for at in stamps(value):
            if at is not None and not (at.tzinfo is UTC and EARLIEST <= at <= LATEST):
                return repaired(value)
        for held_by, inner in others:
            held = held_by(value)
            if held and inner is not None and inner(held) is not held:
                return repaired(value)
        return value

    return bound


def _places(kind: type[Struct], path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a structure and, in place of each structure that is always there, its own; with their types."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, Struct):
            yield from _places(hint, f"{path}{name}.")
        else:
            yield f"{path}{name}", hint


def _repairing(kind: type[Struct]) -> Bound:
    """The function that copies a structure with all of its fields within bounds."""
    hints = get_type_hints(kind, include_extras=True)
    found = [(name, inner) for name in kind.__struct_fields__ if (inner := bound_of(hints[name])) is not None]

    def repaired(value: Any) -> Any:
        kept = {name: inner(held) for name, inner in found if (held := getattr(value, name)) is not None}
        return replace(value, **{name: new for name, new in kept.items() if new is not getattr(value, name)})

    return repaired
