"""Recorded decisions are made again from the record alone, and differences are found."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.cluster import FACTS, FIELDS, Cluster
from kerf.model.memory import Memory
from kerf.model.plan import Plan, Reason, Refusal, Source
from kerf.records import plans, replaying
from kerf.records.encoding import Encoder
from kerf.records.following import Follower
from kerf.records.reading import Part, Step
from kerf.runtime.recording.ring import parts
from kerf.snapshots import files
from kerf.snapshots.reading import Unreadable
from kerf.snapshots.sanitizing import Sanitizer
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.snapshots.test_sanitizing import PLACES, SECRET, planted
from tests.unit.snapshots.worlds import SETTINGS, busy
from tests.worlds import deployment, node_class, node_pool

from .lives import Life, read, replayed


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """One whose record is complete."""
    found = Life(tmp_path_factory.mktemp("record"))
    found.busy()
    found.recorder.close()
    assert not found.errors
    return found


def test_every_decision_is_the_same(life: Life) -> None:
    outcomes = list(replayed(life.folder))
    assert [one for one in outcomes if not one.same] == []
    assert sum(bool(one.plan.actions) for one in outcomes) > 40
    done = {type(action).__name__ for one in outcomes for action in one.plan.actions}
    assert {"CreateNodeClaim", "LaunchInstances", "TerminateInstance", "DeleteObject"} <= done


def test_only_the_owner_may_read_a_file(life: Life) -> None:
    assert parts(life.folder)
    assert {stat.S_IMODE(path.stat().st_mode) for path in parts(life.folder)} == {0o600}


def test_the_snapshot_of_a_step_is_the_one_of_the_controller(tmp_path: Path) -> None:
    """All objects and facts, at the last decision of many changes."""
    life, seen = Life(tmp_path), list[Any]()

    def last(step: Step) -> None:
        seen[:] = [step.captured().snapshot.detached()]

    life.busy()
    now = life.world.clock.now()
    life.controller.tick()
    life.recorder.wait()
    life.recorder.close()
    read(tmp_path, last)
    own, cleaner = life.controller.state.snapshot(now), Sanitizer(b"key", seen[0])
    for kind, name in FIELDS.items():
        objects = {key: cleaner.object(kinds.BY_NAME[kind], one) for key, one in getattr(own, name).items()}
        assert dict(getattr(seen[0], name)) == objects, name
    for name in {"instances", "class_facts", "launch_marks", "fresh_at", "catalogues", "accounts", *FACTS} - MOVING:
        assert getattr(seen[0], name) == getattr(own, name) or name == "instances", name
    assert dict(seen[0].instances) == {id_: cleaner.instance(one) for id_, one in own.instances.items()}


#: What the last plan itself changed.
MOVING = {"now", "batch", "nominated_until", "under_way", "proposals", "kept", "examined_at", "inventories"}


# --- removed texts ----------------------------------------------------------------------------------------------
def _class(text: str) -> dict[str, Any]:
    own = node_class()
    own["spec"]["userData"] = text
    own["metadata"]["annotations"] = {"example.com/token": SECRET}
    return own


def test_decisions_about_removed_texts_are_the_same(tmp_path: Path) -> None:
    """User data, and hashes over it: nodes drift when it changes, and do not once it is as before."""
    pool = node_pool("general", {"disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}})
    pool["spec"]["template"]["metadata"]["annotations"] = {"example.com/token": SECRET}
    first, second = f"#!/bin/sh\nexport TOKEN={SECRET}", f"#!/bin/sh\nexport OTHER={SECRET}"
    life = Life(tmp_path, manifests=(_class(first), pool, deployment("web", {"replicas": 3})))
    life.live(1.5)
    for text, minutes in ((second, 0.05), (first, 1), (second, 3)):
        life.world.apply(_class(text))
        life.live(minutes)
    life.recorder.close()
    assert not life.errors
    outcomes = list(replayed(tmp_path))
    assert [list(one.difference()) for one in outcomes if not one.same] == []
    whole = b"\n".join(line for path in parts(tmp_path) for line in files.lines(path.read_bytes()))
    assert SECRET.encode() not in whole
    assert b"# digest:" in whole
    assert any(one.key.startswith("StartCommand") for outcome in outcomes for one in outcome.recorded.actions)


def test_decisions_about_a_change_that_waits_are_the_same(tmp_path: Path) -> None:
    """The digest of the plan covers user data, and is in annotations, conditions, events and reasons."""
    pool = node_pool("general", {"disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}})
    pool["metadata"]["annotations"] = {labels.PLAN_FIRST: "90s"}
    life = Life(tmp_path, manifests=(_class(f"#!/bin/sh\n# {SECRET}"), pool, deployment("web", {"replicas": 3})))
    life.live(1.5)
    life.world.apply(_class("#!/bin/sh\necho two"))
    life.live(4)
    life.recorder.close()
    outcomes = list(replayed(tmp_path))
    assert [list(one.difference()) for one in outcomes if not one.same] == []
    keys = {one.key.partition("/")[0] for outcome in outcomes for one in outcome.recorded.actions}
    assert {"SetConditions nodepool", "StartCommand nodeclaim"} <= keys


def test_the_form_has_no_user_data_and_no_names_of_templates() -> None:
    snapshot = busy().snapshot
    plan, cleaner = decide(snapshot), Sanitizer(b"key", snapshot)
    text = str(list(plans.forms(plan.actions, cleaner)))
    assert "nodeadm" not in text
    assert "'user_data': ''" in text or "userData" not in text


# --- differences ------------------------------------------------------------------------------------------------
def _differing(life: Life, monkeypatch: pytest.MonkeyPatch, change: Any) -> list[str]:
    def other(snapshot: Any, memory: Memory) -> Plan:
        return change(decide(snapshot, memory))  # type: ignore[no-any-return]

    monkeypatch.setattr(replaying, "decide", other)
    outcome = next(one for one in replayed(life.folder) if len(one.recorded.actions) > 1)
    assert not outcome.same
    return list(outcome.difference())


def test_the_first_action_that_differs_is_named(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _differing(life, monkeypatch, lambda plan: replace(plan, actions=plan.actions[:1]))
    assert found[0] == "action 2"
    assert found[1].startswith("  recorded: ")
    assert found[2] == "  replayed: none"


def test_an_action_of_other_content_is_shown(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(plan: Plan) -> Plan:
        first, *rest = plan.actions
        return replace(plan, actions=(replace(first, sources=frozenset({Source.NODES})), *rest)) if rest else plan

    found = _differing(life, monkeypatch, other)
    assert found[0] == "action 1"
    assert found[3].startswith("  content replayed: {")


def test_another_refusal_is_a_difference(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    more = (Refusal("pod/a/b", Reason("Because")),)
    found = _differing(life, monkeypatch, lambda plan: replace(plan, refusals=(*plan.refusals, *more)))
    assert found[0].startswith("the actions are the same; ")


def test_versions_are_compared() -> None:
    assert replaying.other_versions({"numpy": "1", "kerf": "1"}, {"numpy": "2", "kerf": "1"}) == ["numpy 1 (here 2)"]


# --- damaged files ----------------------------------------------------------------------------------------------
def _lines(life: Life) -> list[bytes]:
    return list(files.lines(parts(life.folder)[0].read_bytes()))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "line 0: its first snapshot is not complete"),
        ([b'{"line":"header"}'], "line 1: "),
        ([b"x"], "line 1: it is no line of a record"),
        ([b'{"line":"record","version":99}'], "line 1: it has version 99 of the format"),
        ([b'{"line":"record"}', b'{"line":"objects","kind":"Pod"}'], "line 2: a snapshot begins with its header"),
    ],
)
def test_a_file_that_is_no_record_says_so(lines: list[bytes], words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        list(Part().steps(lines))


def test_a_damaged_line_is_named(life: Life) -> None:
    lines = _lines(life)
    place = next(number for number, line in enumerate(lines) if b'"line":"decision"' in line)
    for bad in (b'{"line":"decision"}', b'{"line":"gone","kind":"Nothing","keys":["a"]}', b'{"line":"end","lines":1}'):
        with pytest.raises(Unreadable, match=f"line {place + 2}: "):
            list(Part().steps([*lines[: place + 1], bad]))


def test_the_end_may_be_missing(life: Life) -> None:
    """As after a crash: the decisions before are read."""
    data, torn = parts(life.folder)[0].read_bytes(), list[int]()
    whole = list(Part().steps(files.lines(data)))
    some = list(Part().steps(files.lines(data[: len(data) * 3 // 4], lambda: torn.append(1))))
    assert torn
    assert 0 < len(some) < len(whole)


# --- changes ----------------------------------------------------------------------------------------------------
def test_a_snapshot_without_a_journal_is_taken_whole() -> None:
    snapshot, follower = busy().snapshot, Follower()
    found = follower.changes(snapshot, None)
    assert found.whole is not None
    follower.accepted(snapshot, found)
    assert follower.changes(snapshot, None).whole is not None


# --- earlier versions of the format -----------------------------------------------------------------------------
OLD = Path(__file__).parent / "versions"


@pytest.mark.parametrize("path", sorted(OLD.iterdir()), ids=lambda path: path.name)
def test_records_of_every_version_are_read(path: Path) -> None:
    part, steps, snapshots = Part(), list[Step](), list[Any]()
    for step in part.steps(files.lines(path.read_bytes())):
        steps.append(step)
        snapshots.append(len(step.captured().snapshot.node_claims))
    assert part.start is not None
    assert part.start.version == int(path.stem)
    assert max(snapshots) > 0
    assert any(one.decision.actions for one in steps)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_plan_has_the_digest_of_earlier_versions(ahead: bool) -> None:
    """A replay of their records reports other decisions, not another form of the same one."""
    plan = Plan(refusals=(Refusal("pod/default/p", Reason("NoPlace", "none")),), provisioned=True, ahead=ahead)
    made = plans.decision(plan, Sanitizer(b"key", w.world()), at=w.NOW, missed=0)
    assert made.digest == "a264cd93e708f2c9bec5fd714f54fa6a9aeef2b786defcd6a1bc74f0257a043b"


# --- secrets ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_in_no_checkpoint_and_no_change(place: str) -> None:
    kind, value = planted(place)
    cluster, follower, encoder = Cluster(), Follower(), Encoder(b"key", {})
    facts: dict[str, Any] = {"now": busy().snapshot.now, "settings": SETTINGS}
    for number in range(2):
        snapshot = cluster.snapshot(**facts)
        changes = follower.changes(snapshot, None)
        follower.accepted(snapshot, changes)
        taken = encoder.take(changes)
        text = b"".join(encoder.checkpoint(changes) if taken is None else taken)
        assert SECRET.encode() not in text
        assert (b'"kind":"%s"' % kind.name.encode() in text) == bool(number)
        cluster.apply(kind, value)
