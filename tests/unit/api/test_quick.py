"""The quick look at a shape says what the slow one says: on every row of the table, and on whatever comes along."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from kerf_api import crds
from kerf_api.defaulting import default
from kerf_api.lint.reading.plain import plain
from kerf_api.lint.shape import quick
from kerf_api.lint.shape.keywords import validator

from .manifests import changed
from .table import ACCEPTED, REFUSED
from .test_defaulting import anything, manifests

ROWS = [(row.kind, row.path, value) for row in (*ACCEPTED, *REFUSED) for value in row.values]
NUMBERS = (2**63 - 1, 2**63, 2**64, 2**70, -(2**63) - 1, 1.0, 1e30, 10**400, True, float(2**62))


def agreed(kind: str, manifest: Any) -> bool:
    whole = default(plain(manifest)[0])
    return quick.validator(kind)(whole) is not any(True for _ in validator(kind).iter_errors(whole))


def test_on_every_row_of_the_table() -> None:
    assert [row for row in ROWS if not agreed(row[0], changed(*row))] == []
    assert len(ROWS) > 600


@pytest.mark.parametrize("path", ["spec.weight", "spec.replicas", "T.requirements[0].minValues", "spec.limits.cpu"])
def test_on_numbers_that_few_formats_can_hold(path: str) -> None:
    assert [number for number in NUMBERS if not agreed("NodePool", changed("NodePool", path, number))] == []


@given(anything)
def test_on_anything(value: Any) -> None:
    assert [kind for kind in crds.kinds() if not agreed(kind, {"kind": kind, "spec": value})] == []


@given(manifests)
def test_on_manifests_that_are_nearly_right(manifest: dict[str, Any]) -> None:
    assert agreed(manifest["kind"], manifest)


def test_a_pattern_takes_linear_time() -> None:
    schedule = " " * 100_000 + "\n"
    budget = {"nodes": "0", "schedule": schedule, "duration": "1h"}
    assert agreed("NodePool", changed("NodePool", "B", budget))
