"""The shapes of the values in a file, by their types: an object of JSON has fields, or is a map whose keys are data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec


@dataclass(frozen=True, slots=True)
class Shape:
    """Attributes:
    fields: the types of an object's fields by their names in JSON; None of a map, a list and a plain value.
    item: the type of what a map or a list contains.
    is_map: the keys are data.
    """

    fields: Mapping[str, Any] | None = None
    item: Any = Any
    is_map: bool = False


#: JSON of any form: the keys of its objects are fields.
FREE: Final = Shape(fields={})


@cache
def shape(kind: Any) -> Shape:
    """Return the shape of a type; of a union that of its only member that is no plain value."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        found = [one for one in map(shape, inner) if one != Shape()]
        return found[0] if len(found) == 1 else FREE if found else Shape()
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return FREE if inner[1] in (object, Any) else Shape(item=inner[1], is_map=True)
    if origin in (tuple, list, set, frozenset):
        kinds = {one for one in inner if one is not Ellipsis}
        return Shape(item=kinds.pop() if len(kinds) == 1 else Any)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return Shape({one.encode_name: hints[one.name] for one in msgspec.structs.fields(kind)})
    if is_dataclass(kind):
        return Shape(get_type_hints(kind))
    return FREE if kind in (object, Any) else Shape()
