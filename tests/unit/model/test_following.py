"""Each field of the Snapshot declares how the memory follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import pytest

from kerf.model.changes.following import COMPARED, Following, by_following
from kerf.model.snapshot import BY_FOLLOWING, Snapshot


def test_every_field_is_followed_in_one_way() -> None:
    named = [name for names in BY_FOLLOWING.values() for name in names]
    assert sorted(named) == sorted(one.name for one in fields(Snapshot))
    assert all(BY_FOLLOWING.values())


def test_a_field_that_declares_nothing_fails_at_import() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Undeclared(Snapshot):
        weather: Mapping[str, str] = field(default_factory=dict)

    @dataclass(frozen=True, kw_only=True)
    class Declared(Snapshot):
        weather: Mapping[str, str] = field(default_factory=dict, metadata=COMPARED)

    with pytest.raises(TypeError, match=r"Undeclared\.weather does not declare"):
        by_following(Undeclared)
    assert by_following(Declared)[Following.COMPARED][-1] == "weather"
