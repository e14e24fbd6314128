"""The ways in which the memory follows the fields of the Snapshot; each field declares one in its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, Final

_KEY: Final = "memory"


class Following(StrEnum):
    """`FOLLOWED`: the journal names each entry that changes. `COMPARED`: a table is compared with the one before.
    `GROUND`: everything rests on it. `NOT_FOR_STEPS`: a step finds its default there. `WHOLE`: only rooms that look at
    the whole may read it; an outcome that is kept must not rest on it.
    """

    FOLLOWED = "followed"
    COMPARED = "compared"
    GROUND = "ground"
    NOT_FOR_STEPS = "not for steps"
    WHOLE = "whole"


FOLLOWED: Final[Mapping[str, Following]] = {_KEY: Following.FOLLOWED}
COMPARED: Final[Mapping[str, Following]] = {_KEY: Following.COMPARED}
GROUND: Final[Mapping[str, Following]] = {_KEY: Following.GROUND}
NOT_FOR_STEPS: Final[Mapping[str, Following]] = {_KEY: Following.NOT_FOR_STEPS}
WHOLE: Final[Mapping[str, Following]] = {_KEY: Following.WHOLE}


def by_following(snapshot: type[Any]) -> Mapping[Following, tuple[str, ...]]:
    """The names of the fields by the way in which they are followed.

    Raises TypeError when a field declares none.
    """
    found: dict[Following, tuple[str, ...]] = dict.fromkeys(Following, ())
    for one in fields(snapshot):
        way = one.metadata.get(_KEY)
        if not isinstance(way, Following):
            raise TypeError(f"{snapshot.__name__}.{one.name} does not declare how the memory follows it")
        found[way] = (*found[way], one.name)
    return found
