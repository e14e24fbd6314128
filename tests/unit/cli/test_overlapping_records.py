"""Records of several processes: their parts overlap in time, and each decision counts once, in the order of time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.cli.answering.records import Record
from kerf.cli.verbs import replay
from kerf.snapshots import files

RECORD = Path("tests/unit/records/versions/1.record")
START = datetime(2026, 1, 1, tzinfo=UTC)


def _at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def _part(folder: Path, name: str, run: str, minutes: list[float], *more: bytes) -> Path:
    """A part of a process with decisions at these minutes; `more` lines follow. Its cluster is empty."""
    rows: list[dict[str, Any]] = [
        {"line": "record", "run": run},
        {"line": "header", "at": _at(minutes[0]).isoformat()},
        {"line": "end", "lines": 1},
        *({"line": "decision", "at": _at(minute).isoformat(), "digest": f"{run}{minute}"} for minute in minutes),
    ]
    path = folder / f"{name}.record"
    path.write_bytes(b"".join([*(json.dumps(row).encode() + b"\n" for row in rows), *more]))
    return path


def _found(record: Record) -> list[str]:
    return [step.decision.digest for step, _, _ in record.decisions(object)]


def _record(folder: Path, since: float | None = None, until: float | None = None) -> Record:
    first, last = (None if one is None else _at(one) for one in (since, until))
    return Record(sorted(folder.iterdir()), pytest.fail, first, last)


@pytest.fixture
def leaders(tmp_path: Path) -> Path:
    """Leader b begins and ends while leader a still writes; leader c begins in the second part of a."""
    _part(tmp_path, "20260101T000000000000Z-a-00000001", "a", [0, 5, 30])
    _part(tmp_path, "20260101T001000000000Z-b-00000001", "b", [10, 12])
    _part(tmp_path, "20260101T003500000000Z-a-00000002", "a", [35, 50])
    _part(tmp_path, "20260101T004000000000Z-c-00000001", "c", [40, 45])
    return tmp_path


def test_decisions_of_all_processes_are_ordered_by_time(leaders: Path) -> None:
    assert _found(_record(leaders)) == ["a0", "a5", "b10", "b12", "a30", "a35", "c40", "c45", "a50"]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (11, None, ["b12", "a30", "a35", "c40", "c45", "a50"]),
        (20, 32, ["a30"]),
        (None, 11, ["a0", "a5", "b10"]),
        (46, None, ["a50"]),
        (30, 30, ["a30"]),
        (51, None, []),
    ],
)
def test_bounds_lose_no_decision(leaders: Path, since: float | None, until: float | None, found: list[str]) -> None:
    assert _found(_record(leaders, since, until)) == found


@pytest.mark.parametrize(
    ("until", "found"), [(None, "a50"), (49, "c45"), (32, "a30"), (29, "b12"), (9, "a5"), (35, "a35")]
)
def test_the_latest_decision_may_be_in_an_earlier_file(leaders: Path, until: float | None, found: str) -> None:
    step = _record(leaders, until=until).last()
    assert step is not None
    assert step.decision.digest == found


def test_a_clock_that_is_set_back_between_two_parts_loses_nothing(tmp_path: Path) -> None:
    """The second part begins before the first one ends."""
    _part(tmp_path, "00000001", "a", [0, 40])
    _part(tmp_path, "00000002", "a", [10, 20])
    assert _found(_record(tmp_path)) == ["a0", "a40", "a10", "a20"]
    assert _found(_record(tmp_path, since=30)) == ["a40"]
    assert _found(_record(tmp_path, until=15)) == ["a0", "a10"]


@pytest.mark.parametrize("copy", ["20260101T000000000000Z-a-00000001", "copy", "copy-2"])
def test_a_copy_of_a_part_counts_once(tmp_path: Path, copy: str) -> None:
    """A bucket has the part as it was a minute ago, under another name."""
    whole, notes = _part(tmp_path, "00000001", "a", [0, 1, 2]), list[str]()
    older = _part(tmp_path, copy, "a", [0, 1])
    for paths in ([whole, older], [older, whole]):
        record = Record(paths, notes.append)
        assert _found(record) == ["a0", "a1", "a2"]
        assert notes.pop() == f"{older}: it is a copy of {whole}, and left out"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(
            lambda lines: [*lines[:5], b'{"line":"objects","kind":"Pod","items":[{"spec":3}]}', *lines[5:]], id="object"
        ),
        pytest.param(lambda lines: [line.replace(b"00:02:00", b"00:09:00") for line in lines] + [b"{"], id="time"),
    ],
)
@pytest.mark.parametrize("names", [("00000001", "a"), ("a", "copy-2"), ("copy-2", "a")])
def test_an_intact_copy_of_a_part_wins(tmp_path: Path, damage: Any, names: tuple[str, str]) -> None:
    """Damage to an object shows in no time, and a damaged time is another one."""
    whole, notes = _part(tmp_path, names[0], "a", [0, 1, 2]), list[str]()
    damaged = _part(tmp_path, names[1], "a", [0, 1, 2])
    damaged.write_bytes(b"".join(line + b"\n" for line in damage(damaged.read_bytes().splitlines())))
    for paths in ([whole, damaged], [damaged, whole]):
        record = Record(paths, notes.append)
        assert _found(record) == ["a0", "a1", "a2"]
        assert not record.damaged
        assert notes.pop() == f"{damaged}: it is a copy of {whole}, and left out"


def test_a_damaged_part_hides_no_other_one(leaders: Path) -> None:
    notes = list[str]()
    _part(leaders, "20260101T000000000000Z-d-00000001", "d", [1, 2], b"{\n")
    record = Record(sorted(leaders.iterdir()), notes.append, since=_at(2), until=_at(12))
    assert _found(record) == ["d2", "a5", "b10", "b12"]
    assert record.damaged
    assert [note.rpartition("/")[2].partition(" ")[0] for note in notes] == [
        "20260101T000000000000Z-d-00000001.record:"
    ]


def test_another_clusters_decision_is_replayed_of_its_own_objects(tmp_path: Path, capsys: Any) -> None:
    """Two processes decide in turn for different clusters: each decision is made of the objects of its own part."""
    lines = list(files.lines(RECORD.read_bytes()))
    for name in "ab":
        start = json.dumps({**json.loads(lines[0]), "run": name}).encode()
        (tmp_path / f"{name}.record").write_bytes(b"".join(line + b"\n" for line in (start, *lines[1:])))
    assert replay.main([str(RECORD)]) in (0, 3)
    alone = capsys.readouterr().out
    assert replay.main([str(tmp_path)]) in (0, 3)
    both = capsys.readouterr().out
    one, two = (int(text.split(" decisions from ")[0].split("\n")[-1]) for text in (alone, both))
    assert two == 2 * one
    assert both.rpartition(": ")[2] == alone.rpartition(": ")[2].replace(f"{one} are", f"{two} are")


def test_a_damaged_object_hides_only_the_decisions_after_it(tmp_path: Path) -> None:
    lines = list(files.lines(RECORD.read_bytes()))
    *_, before, latest = (at for at, line in enumerate(lines) if b'"line":"decision"' in line)
    damage = json.dumps({"line": "objects", "kind": "Pod", "items": [{"spec": 3}]}).encode()
    (tmp_path / "00000001.record").write_bytes(
        b"".join(line + b"\n" for line in (*lines[:latest], damage, lines[latest]))
    )
    notes = list[str]()
    found = Record(sorted(tmp_path.iterdir()), notes.append).last()
    assert found is not None
    assert found.decision.at == datetime.fromisoformat(json.loads(lines[before])["at"])
    assert notes


@given(
    st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=5), min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(0, 60)),
    st.one_of(st.none(), st.integers(0, 60)),
)
def test_each_decision_counts_once(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[int]], since: int | None, until: int | None
) -> None:
    folder = tmp_path_factory.mktemp("record")
    for number, minutes in enumerate(runs):
        _part(folder, f"r{number}", f"r{number}-", [*map(float, minutes)])
    found = _found(_record(folder, since, until))
    lowest, highest = -1 if since is None else since, 61 if until is None else until
    expected = [f"r{n}-{float(m)}" for n, run in enumerate(runs) for m in run if lowest <= m <= highest]
    assert sorted(found) == sorted(expected)
    if all(run == sorted(run) for run in runs):
        times = [float(one.partition("-")[2]) for one in found]
        assert times == sorted(times)
