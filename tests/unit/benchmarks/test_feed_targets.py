"""The scale feed's figures are judged: what misses a target is named, and so is a measurement of nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.feed.handover import Handover, taken, twice
from benchmarks.feed.measuring import memory, ticks
from benchmarks.feed.store import Write
from benchmarks.table import Row, missed
from benchmarks.usage import Usage
from kerf.telemetry.turns import Turn

GIB = 2**30


def turn(seconds: float) -> Turn:
    return Turn(0.0, seconds, seconds, seconds, 0)


def wrote(verb: str, name: str, by: str = "first", **annotations: str) -> Write:
    body = {"metadata": {"annotations": {f"kerf.sh/{key}": value for key, value in annotations.items()}}}
    return Write(0.0, verb, "NodeClaim", name, "", by, msgspec.json.encode(body))


def created(name: str, pods: str) -> Write:
    return wrote("create", name, **{"planned-pods": pods})


def grouped(name: str, group: str) -> Write:
    return wrote("patch", name, **{"launch-group": group})


def fleet(token: str, size: int) -> dict[str, Any]:
    return {"ClientToken": token, "TargetCapacitySpecification.TotalTargetCapacity": str(size)}


@pytest.mark.parametrize(
    ("slow", "met"),
    [(0, True), (1, True), (2, False)],
    ids=["none is slow", "one of a hundred is slow", "two of a hundred are slow"],
)
def test_of_a_hundred_ticks_ninety_nine_are_quick(slow: int, met: bool) -> None:
    rows = ticks([turn(0.049)] * (100 - slow) + [turn(0.051)] * slow, 10.0)
    assert all(row.met for row in rows) is met


def test_no_tick_is_no_quick_one() -> None:
    assert missed(ticks([], 10.0)) == ["missed: tick (take in news, decide, act), p99: no tick, to reach ≤ 50 ms"]


@pytest.mark.parametrize(
    ("sizes", "met"),
    [
        ({"controller": GIB, "worker": GIB // 2}, True),
        ({"controller": GIB, "worker": GIB // 2 + 1}, False),
        ({}, False),
    ],
    ids=["just enough", "a byte too much", "no process"],
)
def test_all_processes_together_have_a_limit(sizes: dict[str, int], met: bool) -> None:
    assert all(row.met for row in memory("peak", Usage(1.0, sizes))) is met


@pytest.mark.parametrize(("seconds", "met"), [(2.9, True), (3.1, False), (0.0, False), (-0.2, False)])
def test_a_hand_over_takes_time_but_not_too_much(seconds: float, met: bool) -> None:
    first, _ = taken("SIGTERM", Handover(0.1, seconds), 3.0)
    assert first.met is met


WRITES = [created("a", "p,q"), grouped("a", "one"), created("b", "r"), grouped("b", "two")]
FLEETS = [fleet("one", 1), fleet("two", 1), fleet("two", 1)]


@pytest.mark.parametrize(
    ("writes", "fleets", "misses"),
    [
        (WRITES, FLEETS, []),
        ([*WRITES, created("c", "q")], FLEETS, ["pods that two of them were made for: 1 of 3"]),
        ([*WRITES, grouped("a", "two")], FLEETS, ["claims with two launch groups: 1 of 2"]),
        (WRITES, [*FLEETS, fleet("three", 1)], ["instances asked for: 3"]),
        ([], [], ["pods that two", "claims with two", "instances asked for: 0"]),
    ],
    ids=["once each", "a pod has two claims", "a claim has two groups", "too many instances", "nothing was done"],
)
def test_nothing_is_done_twice(writes: list[Write], fleets: list[dict[str, Any]], misses: list[str]) -> None:
    found = missed(twice(writes, fleets))
    assert len(found) == len(misses)
    assert all(line.startswith(f"missed: {start}") for line, start in zip(found, misses, strict=True))


def test_what_is_missed_is_told_with_what_was_to_be_reached() -> None:
    rows = [Row("quick", "1 ms", "≤ 2 ms"), Row("  slow", "3 ms", "≤ 2 ms", met=False)]
    assert missed(rows) == ["missed: slow: 3 ms, to reach ≤ 2 ms"]
