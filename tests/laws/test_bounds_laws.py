"""Whatever time or number stands in one object, no room fails, and the plan for all other objects is the same.

The values are drawn for every place of every object of a small world that its type reads as a time, a number, a
quantity, a duration, a schedule or an annotation with one of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from kerf.decide import decide
from kerf.kube import decoding
from kerf.model import annotations as model_annotations
from kerf.model import kinds
from kerf.model.annotations import read
from kerf.model.backoff import PoolFailures
from kerf.model.boundaries import MALFORMED
from kerf.model.memory import Memory
from kerf.model.plan import INTERNAL_ERROR, DeleteObject, EvictPod, Plan
from kerf_api import bounds, labels
from kerf_api.v1.meta import Condition
from tests.laws.islands import (
    DURATION,
    NOTE,
    NUMBER,
    QUANTITY,
    SCHEDULE,
    TIME,
    Manifest,
    Path,
    at,
    decoded,
    edited,
    island,
    leaves,
    world,
)

RELAXED = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ENDS: Final = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
TIMES: Final = (
    *ENDS,
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "2026-01-01T12:00:00",
    "2026-01-01T13:00:00Z",
    "2262-04-11T23:47:17Z",
    "yesterday",
)
NUMBERS: Final = (-(2**63), -1, 0, 1, 2**31 - 1, 10**11, 2**63 - 1)
QUANTITIES: Final = ("1e31", "-1e31", "1E", "-1", "1e-31", "1e999999999", "x", "", -5, 2**63 - 1, 1e40)
DURATIONS: Final = ("2562047h", "999999999999h", "Never", "0s", "-1h", "9" * 5000 + "h", "")
SCHEDULES: Final = ("60 25 32 13 8", "0 0 31 2 *", "* * * * *", "@every 1h", "")
LASTS: Final = ("99999999999h", "2562047h", "0.0000001ns", "9" * 400 + "h")
#: Of each sort the values that break most: one beyond each end.
WORST: Final[dict[str, tuple[Any, Any]]] = {
    TIME: ENDS,
    NUMBER: (-(2**63), 2**63 - 1),
    QUANTITY: ("-1e31", "1e31"),
    DURATION: ("", "2562047h"),
    SCHEDULE: ("", "0 0 29 2 *"),
}
STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
COUNT: Final = re.compile(r": \d+")
#: A garbage collector that cannot tell its own notes halts for all, and says so; see `garbage_guard`.
HALTED: Final = "GarbageCollectionHalted"


def values(sort: str, old: Any) -> st.SearchStrategy[Any]:
    """Values for a place of this sort that has `old` now."""
    if sort != NOTE:
        plain = {TIME: TIMES, NUMBER: NUMBERS, QUANTITY: QUANTITIES, DURATION: DURATIONS, SCHEDULE: SCHEDULES}
        drawn = {TIME: st.datetimes().map(lambda t: t.isoformat() + "Z"), NUMBER: st.integers(-(2**63), 2**63 - 1)}
        return st.sampled_from(plain[sort]) | drawn.get(sort, st.nothing())
    found: list[str] = [*LASTS] if old in ("2h", "true") else []
    found += [STAMP.sub(text, old) for text in TIMES if STAMP.search(old)]
    found += [COUNT.sub(f": {number}", old) for number in NUMBERS if COUNT.search(old)]
    return st.sampled_from(found)


def worst(sort: str, old: Any, end: int) -> Any:
    if sort != NOTE:
        return WORST[sort][end]
    text = COUNT.sub(f": {WORST[NUMBER][end]}", STAMP.sub(ENDS[end], old))
    return text if text != old else LASTS[end]


@cache
def places() -> tuple[tuple[int, Path, str], ...]:
    """Of every object of the left island, by its number in the list."""
    return tuple(
        (number, path, sort)
        for number, manifest in enumerate(island("left"))
        for path, sort in leaves(kinds.BY_NAME[manifest["kind"]].type, manifest)
    )


@cache
def shore() -> tuple[Any, ...]:
    return tuple(decoded(manifest) for manifest in island("right"))


def planned(left: list[Manifest]) -> Plan:
    return decide(world([*map(decoded, left), *shore()]))


def right(plan: Plan) -> tuple[list[str], list[str]]:
    """All that a plan does and says about the right island, but for the halt of all garbage collection."""
    actions = [f"{a.key} {getattr(a, 'patch', '')}" for a in plan.actions if "right" in a.key]
    refusals = [f"{r.subject}: {r.reason}" for r in plan.refusals if "right" in r.subject and r.reason.code != HALTED]
    return actions, refusals


@cache
def usual() -> tuple[list[str], list[str]]:
    return right(planned(island("left")))


def judged(left: list[Manifest]) -> Plan:
    """The plan, of which the right island's part is as usual, and nothing is a bug."""
    plan = planned(left)
    assert [str(r) for r in plan.refusals if r.reason.code == INTERNAL_ERROR] == []
    assert right(plan) == usual()
    return plan


# --- the whole path, from the API server's bytes to the plan --------------------------------------------------------
@RELAXED
@given(st.data())
def test_a_hostile_value_changes_nothing_about_other_objects(data: st.DataObject) -> None:
    left = island("left")
    for number, path, sort in data.draw(st.lists(st.sampled_from(places()), min_size=1, max_size=3, unique=True)):
        left[number] = edited(left[number], path, data.draw(values(sort, at(left[number], path))))
    judged(left)


@pytest.mark.parametrize("end", [0, 1], ids=["lowest", "highest"])
def test_every_place_of_an_object_at_its_worst_changes_nothing_about_other_objects(end: int) -> None:
    for number, manifest in enumerate(island("left")):
        left, hostile = island("left"), manifest
        for path, sort in leaves(kinds.BY_NAME[manifest["kind"]].type, manifest):
            hostile = edited(hostile, path, worst(sort, at(hostile, path), end))
        left[number] = hostile
        judged(left)


STORIES: Final = {
    "a pod's grace period": ("stays-left", "Pod", ("spec", "terminationGracePeriodSeconds"), 10**11),
    "a Node's condition": ("sick-left", "Node", ("status", "conditions", 0, "lastTransitionTime"), ENDS[1]),
    "Registered": ("lost-left", "NodeClaim", ("status", "conditions", 1, "lastTransitionTime"), ENDS[1]),
    "a note of garbage": (
        "pool-left",
        "NodePool",
        ("metadata", "annotations", labels.GARBAGE),
        json.dumps([{"at": ENDS[1], "instances": ["i-1"]}]),
    ),
    "a pod's start": ("lasts-left", "Pod", ("status", "startTime"), ENDS[1]),
    "a request": ("waits-left", "NodeClaim", ("spec", "resources", "requests", "cpu"), "1e31"),
}


def hostile(story: str) -> list[Manifest]:
    name, kind, path, value = STORIES[story]
    left = island("left")
    place = next(i for i, m in enumerate(left) if (m["metadata"]["name"], m["kind"]) == (name, kind))
    left[place] = edited(left[place], path, value)
    return left


@pytest.mark.parametrize("story", STORIES)
def test_each_known_attack_changes_nothing_about_other_objects(story: str) -> None:
    judged(hostile(story))


def unbounded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decoding, "bound_of", lambda kind: None)
    patch.setattr(model_annotations, "bounded", lambda value, kind: value)


@pytest.mark.parametrize(
    ("story", "subject"),
    [
        ("a pod's grace period", "nodeclaim/drains-left"),
        ("a Node's condition", "nodeclaim/sick-left"),
        ("Registered", "nodeclaim/lost-left"),
        ("a pod's start", "nodeclaim/drains-left"),
    ],
)
def test_without_bounds_each_attack_fails_about_its_own_object_alone(
    story: str, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boundaries of single objects hold without the bounds of values."""
    unbounded(monkeypatch)
    plan = planned(hostile(story))
    assert {r.subject for r in plan.refusals if r.reason.code == INTERNAL_ERROR} == {subject}
    assert right(plan) == usual()


def test_a_step_that_fails_over_an_object_is_tried_again_and_is_as_if_nothing_had_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory()
    with monkeypatch.context() as patch:
        unbounded(patch)
        broken = world([*map(decoded, hostile("a Node's condition")), *shore()])
        assert any(r.reason.code == INTERNAL_ERROR for r in decide(broken, memory).refusals)
    sound = world([*map(decoded, island("left")), *shore()])
    assert decide(sound, memory) == decide(sound)


def test_a_node_is_drained_whatever_grace_period_its_pod_has() -> None:
    """Its deadline is an hour away: the pod, which would take longer, goes now."""
    deletions = [a for a in judged(hostile("a pod's grace period")).actions if isinstance(a, DeleteObject)]
    assert [a.grace_seconds for a in deletions if a.ref.name == "stays-left"] == [3600]


def test_a_negative_grace_period_is_none() -> None:
    left = hostile("a pod's grace period")
    place = next(i for i, m in enumerate(left) if m["metadata"]["name"] == "stays-left")
    left[place] = edited(left[place], ("spec", "terminationGracePeriodSeconds"), -(2**63))
    assert not [
        a for a in judged(left).actions if isinstance(a, DeleteObject | EvictPod) and a.ref.name == "stays-left"
    ]


def test_a_request_beyond_all_bounds_is_no_malformed_claim() -> None:
    plan = judged(hostile("a request"))
    assert [str(r) for r in plan.refusals if r.subject == "nodeclaim/waits-left" and r.reason.code == MALFORMED] == []


def test_the_world_has_every_time_that_an_object_of_its_kinds_can_hold() -> None:
    """A new field is drawn from the day on which it is read. Times of metadata, taints and templates are drawn once."""
    there = {".".join(step for step in path if isinstance(step, str)) for _, path, sort in places() if sort == TIME}
    wanted = {path for manifest in island("left") for path in _times(kinds.BY_NAME[manifest["kind"]].type)}
    missing = {path for path in wanted - there if "aints." not in path and "emplate." not in path}
    assert {"metadata.creationTimestamp", "metadata.deletionTimestamp", "spec.taints.timeAdded"} <= there
    assert missing == set()


def _times(type_: Any, path: str = "") -> Iterator[str]:
    """The places of a type that hold times, list items without their numbers."""
    if type_ is datetime:
        yield path
    if isinstance(type_, type) and issubclass(type_, Struct):
        hints = get_type_hints(type_, include_extras=True)
        for name, wire in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True):
            yield from _times(hints[name], f"{path}.{wire}".lstrip("."))
    elif get_origin(type_) in (Union, UnionType, tuple, Annotated):
        for part in get_args(type_):
            yield from _times(part, path)


# --- bounds by themselves -------------------------------------------------------------------------------------------
zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=st.none() | zones))
def test_an_instant_is_within_bounds_or_the_nearest(value: datetime) -> None:
    found = bounds.instant(value)
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    assert found.tzinfo is UTC
    assert bounds.EARLIEST <= found <= bounds.LATEST
    assert found == aware or found == (bounds.EARLIEST if aware < bounds.EARLIEST else bounds.LATEST)


def test_the_bounds_leave_room_for_sums() -> None:
    most = timedelta(seconds=bounds.LONGEST_SECONDS)
    assert bounds.LATEST + 20 * most < datetime.max.replace(tzinfo=UTC)
    assert bounds.EARLIEST - 6 * most > datetime.min.replace(tzinfo=UTC)


def test_what_is_within_bounds_is_the_very_same_object() -> None:
    for manifest in island("left"):
        value = decoded(manifest)
        assert bounds.bounded(value) is value


def test_a_text_that_is_no_time_is_refused_and_one_without_a_zone() -> None:
    assert bounds.instant_of(ENDS[1]) == bounds.LATEST
    for text in ("", "yesterday", "2026-01-01T12:00:00"):
        with pytest.raises(ValueError, match=r"isoformat|zone"):
            bounds.instant_of(text)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "²", "x"])
def test_what_is_no_number_of_milliseconds_is_no_instant(text: str) -> None:
    assert bounds.instant_of_unix(text) is None


def test_milliseconds_are_within_bounds_too() -> None:
    assert bounds.instant_of_unix("1767268800000") == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert bounds.instant_of_unix("9" * 4000) == bounds.LATEST


def test_an_annotation_is_bounded_as_an_object_is() -> None:
    found = read({labels.BACK_OFF: json.dumps({"count": 1, "at": ENDS[1]})}, labels.BACK_OFF, PoolFailures)
    assert found is not None
    assert found.at == bounds.LATEST


def test_seconds_and_times_in_mappings_and_tuples_are_bounded() -> None:
    row = Condition(type="Ready", last_transition_time=datetime(9999, 1, 1, tzinfo=UTC))
    assert bounds.bounded((row,), tuple[Condition, ...]) == (replace(row, last_transition_time=bounds.LATEST),)
    assert bounds.seconds(2**63) == bounds.LONGEST_SECONDS
    assert bounds.seconds(-1) == 0
