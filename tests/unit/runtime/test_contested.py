"""Writes that another writer undoes are held back and reported; what only we write is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.failures import CONTESTED, OVERTAKEN
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import PatchObject, Reason
from kerf.model.settings import Settings
from kerf.ports import Conflict
from kerf.runtime.act.results import absorb
from kerf.runtime.inbox import Changed, Done
from kerf.runtime.state.backoff import LIMIT, WITHIN
from kerf.runtime.state.state import State
from kerf_api.v1.meta import ObjectMeta

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "TaintNode node/a"


def node(version: int, uid: str = "uid-a") -> Node:
    return Node(metadata=ObjectMeta(name="a", uid=uid, resource_version=str(version)))


PATCH = PatchObject(verb="TaintNode", ref=kinds.ref(node(0)), patch={"spec": {"taints": []}}, reason=Reason("Test"))


class Writing:
    """Our writes to one object, and those of another writer."""

    def __init__(self) -> None:
        self.state = State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda _: None)
        self.now, self.version = NOW, 1
        self.theirs()

    def theirs(self) -> None:
        self.version += 1
        self.state.take(Changed(kinds.NODE, node(self.version)), self.now)

    def ours(self, seconds: float = 0.2) -> None:
        self.now += timedelta(seconds=seconds)
        self.state.notice(self.now)
        self.version += 1
        absorb(Done(PATCH, "ok", self.now, node(self.version)), self.state)

    def written(self, patch: dict[str, Any], uid: str = "uid-a", *, watch_first: bool = False, on: str = "") -> None:
        """A write of a patch, accepted; its event may come before its answer, and it may name the version it is on."""
        self.version += 1
        value = node(self.version, uid)
        if watch_first:
            self.state.take(Changed(kinds.NODE, value), self.now)
        absorb(Done(replace(PATCH, patch=patch, resource_version=on), "ok", self.now, value), self.state)

    def conflict(self, seconds: float = 0.2) -> None:
        self.now += timedelta(seconds=seconds)
        self.state.notice(self.now)
        absorb(Done(PATCH, "conflict", self.now, None, Conflict("it has changed")), self.state)

    def fight(self, rounds: int, seconds: float = 0.2) -> None:
        for _ in range(rounds):
            self.ours(seconds)
            self.theirs()

    @property
    def held_until(self) -> datetime | None:
        return self.state.held_until(KEY, "", (KEY,), self.now)

    @property
    def outcomes(self) -> list[str]:
        return [one.outcome for one in self.state.snapshot(self.now).failures.values()]


def test_a_write_that_is_undone_each_time_waits_and_is_reported() -> None:
    writing = Writing()
    writing.fight(LIMIT)
    assert (writing.held_until, writing.outcomes) == (None, [])
    writing.ours()
    assert writing.held_until == writing.now + timedelta(seconds=1)
    (found,) = writing.state.snapshot(writing.now).failures.values()
    assert (found.object, found.outcome) == ("node/a", CONTESTED)
    assert "TaintNode of spec.taints is undone by another writer each time" in found.standing(writing.now)
    assert "--show-managed-fields" in found.fix


def test_the_report_names_the_fields() -> None:
    writing = Writing()
    patch = {"metadata": {"annotations": {"kerf.sh/ends": "x", "other": None}}, "spec": {"taints": [{"key": "a"}]}}
    for _ in range(LIMIT + 1):
        writing.now += timedelta(seconds=0.2)
        writing.written(patch)
        writing.theirs()
    (found,) = writing.state.snapshot(writing.now).failures.values()
    fields = "metadata.annotations[kerf.sh/ends], metadata.annotations.other, spec.taints"
    assert found.text == f"TaintNode of {fields} is undone by another writer each time"


def test_a_fight_costs_one_request_a_second() -> None:
    writing, written = Writing(), 0
    end = NOW + timedelta(minutes=1)
    while writing.now < end:
        if writing.held_until is None:
            writing.fight(1, 0.1)
            written += 1
        else:
            writing.now += timedelta(seconds=0.1)
    assert written <= 60 + LIMIT + 1


def test_the_report_ends_with_the_first_write_that_is_kept() -> None:
    writing = Writing()
    writing.fight(LIMIT + 1)
    assert writing.outcomes == [CONTESTED]
    since = next(iter(writing.state.snapshot(writing.now).failures.values())).since
    writing.fight(1, 1.0)
    assert next(iter(writing.state.snapshot(writing.now).failures.values())).since == since
    writing.ours(WITHIN.total_seconds())
    assert (writing.held_until, writing.outcomes) == (None, [])


def test_what_only_we_write_is_no_fight_however_fast() -> None:
    writing = Writing()
    for _ in range(10 * LIMIT):
        writing.ours(0.01)
    assert (writing.held_until, writing.outcomes) == (None, [])


@pytest.mark.parametrize("guarded", [False, True])
def test_a_write_whose_event_comes_before_its_answer_is_no_fight(*, guarded: bool) -> None:
    writing = Writing()
    for _ in range(3 * LIMIT):
        writing.now += timedelta(seconds=0.1)
        writing.written({}, watch_first=True, on=str(writing.version) if guarded else "")
    assert (writing.held_until, writing.outcomes) == (None, [])


@pytest.mark.parametrize("values", [range(3 * LIMIT), [5, 6] * LIMIT, [5, 6, 7, 6] * LIMIT, [5, None] * LIMIT])
def test_new_values_beside_another_writer_of_other_fields_are_no_fight(values: Iterable[int | None]) -> None:
    """Also where a value returns: the world goes to and fro."""
    writing = Writing()
    for number in values:
        writing.now += timedelta(seconds=0.1)
        writing.written({"status": {"nodes": number}})
        writing.theirs()
    assert (writing.held_until, writing.outcomes) == (None, [])


def test_a_condition_that_is_written_again_is_a_fight_whatever_its_times() -> None:
    writing = Writing()
    for number in range(LIMIT + 2):
        writing.now += timedelta(seconds=0.1)
        row = {"type": "Ready", "status": "True", "lastTransitionTime": f"2026-01-01T00:00:{number:02}Z"}
        writing.written({"status": {"conditions": [row]}})
        writing.theirs()
    assert writing.outcomes == [CONTESTED]


@pytest.mark.parametrize("parts", ["ab", "abcdefg"])
def test_several_writers_who_undo_a_part_each_are_a_fight(parts: str) -> None:
    writing, written = Writing(), 0
    while writing.now < NOW + timedelta(seconds=30):
        writing.now += timedelta(seconds=0.1)
        if writing.held_until is None:
            written += 1
            writing.written({"metadata": {"annotations": {parts[written % len(parts)]: "1"}}})
            writing.theirs()
    assert written <= 30 + 2 * LIMIT
    assert writing.outcomes == [CONTESTED]


def test_an_object_that_is_created_again_and_again_is_no_fight() -> None:
    writing = Writing()
    for number in range(3 * LIMIT):
        writing.now += timedelta(seconds=0.1)
        writing.written({}, f"uid-{number}")
    assert (writing.held_until, writing.outcomes) == (None, [])


@pytest.mark.parametrize("each", [1, 2, 3])
def test_conflicts_are_limited_as_well_and_end_no_report(each: int) -> None:
    writing, times, end, found = Writing(), 0, NOW + timedelta(minutes=1), set[tuple[str, ...]]()
    while writing.now < end:
        if writing.held_until is not None:
            writing.now += timedelta(seconds=0.05)
            continue
        times += 1
        if times % each == 0:
            writing.conflict(0.05)
        else:
            writing.fight(1, 0.05)
        if times > 2 * LIMIT:
            found.add(tuple(writing.outcomes))
    assert times <= 60 + 2 * LIMIT
    assert found == {(OVERTAKEN if each == 1 else CONTESTED,)}


def test_another_writer_that_is_faster_each_time_is_reported_as_such() -> None:
    writing = Writing()
    for _ in range(LIMIT + 1):
        writing.conflict()
    (found,) = writing.state.snapshot(writing.now).failures.values()
    assert found.text == "TaintNode of spec.taints meets a conflict each time: another writer changes the object first"
    assert "write less often" in found.fix


def test_fields_are_remembered_up_to_a_number() -> None:
    writing = Writing()
    for number in range(500):
        writing.now += timedelta(seconds=0.01)
        writing.written({"metadata": {"annotations": {f"a{number}": "1"}}})
    (write,) = writing.state.promises._contested._writes.values()
    assert len(write.values) == 100


@pytest.mark.parametrize("seconds", [0.1, 0.5, 0.9])
def test_the_report_stays_while_the_fight_goes_on(seconds: float) -> None:
    writing, found = Writing(), list[tuple[str, ...]]()
    while writing.now < NOW + timedelta(minutes=2):
        if writing.held_until is None:
            writing.fight(1, seconds)
            found.append(tuple(writing.outcomes))
        else:
            writing.now += timedelta(seconds=0.05)
    assert found == sorted(found)


def test_another_writer_who_writes_now_and_then_is_no_fight() -> None:
    writing = Writing()
    writing.fight(10 * LIMIT, 1.2 * WITHIN.total_seconds() / LIMIT)
    assert (writing.held_until, writing.outcomes) == (None, [])


def test_a_clock_that_is_set_back_makes_nobody_wait_longer() -> None:
    writing = Writing()
    writing.now += timedelta(hours=1)
    writing.state.notice(writing.now)
    writing.fight(LIMIT + 1)
    assert writing.held_until is not None
    left = writing.held_until - writing.now
    writing.now -= timedelta(hours=1)
    writing.state.notice(writing.now)
    assert writing.held_until == writing.now + left
    writing.fight(1)
    assert writing.held_until is not None
    assert writing.held_until - writing.now <= WITHIN


def test_nothing_is_remembered_for_long() -> None:
    writing = Writing()
    writing.fight(LIMIT + 1)
    contested = writing.state.promises._contested
    writing.state.snapshot(writing.now + 2 * WITHIN)
    assert (contested._writes, contested._versions) == ({}, {})
