"""`kerf replay`: exit codes, lists, snapshots of then, and files that are torn or damaged."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kerf.cli.answering import records
from kerf.cli.verbs import replay
from kerf.records import replaying
from kerf.records.replaying import Outcome
from kerf.runtime.recording import software
from kerf.snapshots import files
from kerf.snapshots.reading import read
from tests.unit.records.lives import Life

RECORD = Path("tests/unit/records/versions/1.record")
START = "2026-01-01T00:00:00Z"


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    found = capsys.readouterr()
    return found.out + found.err


def test_all_decisions_of_a_folder_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    life = Life(tmp_path)
    life.live(1)
    life.recorder.close()
    assert replay.main([str(tmp_path)]) == 0
    assert f" decisions from {START} to 2026-01-01T00:" in _said(capsys)


@pytest.fixture
def differing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every decision is another one."""
    monkeypatch.setattr(Outcome, "same", property(lambda self: False))
    monkeypatch.setattr(software, "software", lambda: {"kerf": "another"})


@pytest.mark.usefixtures("differing")
def test_a_difference_ends_with_3_under_other_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main([str(RECORD), "--until", "2026-01-01T00:00:30Z"]) == 3
    text = _said(capsys)
    assert "the decision of 2026-01-01T00:00:00Z differs" in text
    assert "recorded under other versions: " in text
    assert " more; --all lists them" in text


@pytest.mark.usefixtures("differing")
def test_a_difference_ends_with_1_under_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "_DECISIVE", ())
    assert replay.main([str(RECORD), "--until", "2026-01-01T00:00:30Z"]) == 1


def test_the_list_names_actions_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main([str(RECORD), "--list", "--until", "2026-01-01T00:01:00Z"]) == 0
    some = _said(capsys)
    assert "CreateNodeClaim nodeclaim/general-" in some
    assert "  changed: " in some
    assert replay.main([str(RECORD), "--list", "--all", "--since", "2026-01-01T00:01:00Z"]) == 0
    assert "CreateNodeClaim" not in _said(capsys)


def test_the_cluster_of_then_is_a_snapshot(tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    assert replay.main([str(RECORD), "--at", START, "-o", str(early)]) == 0
    assert replay.main([str(RECORD), "--at", "2026-01-01T00:03:00Z", "-o", str(late)]) == 0
    before, after = (read(files.lines(path.read_bytes())).snapshot for path in (early, late))
    assert (len(before.node_claims), before.now.isoformat()) == (0, "2026-01-01T00:00:00+00:00")
    assert len(after.node_claims) > 0
    assert after.catalogues


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/nowhere"], "/nowhere: No such file or directory"),
        ([str(RECORD), "--at", START], "--at TIME and -o FILE belong together"),
        ([str(RECORD), "--at", "noon", "-o", "a"], "--at noon: it is no time"),
        ([str(RECORD), "--at", "", "-o", "a"], "--at: the time is empty; write a time of RFC 3339"),
        ([str(RECORD), "--since="], "--since: the time is empty; write a time of RFC 3339"),
        ([str(RECORD), "--until", "", "--list"], "--until: the time is empty; write a time of RFC 3339"),
        ([str(RECORD), "--at", "", "--list"], "--at: the time is empty; write a time of RFC 3339"),
        ([str(RECORD), "--at", START, "-o", "a", "--list"], "exclude each other"),
        ([str(RECORD), "--at", "2020-01-01", "-o", "a"], "the record has no decision up to then"),
        ([str(RECORD), "--since", "2030-01-01"], "there is no decision between these times"),
    ],
)
def test_a_mistake_ends_with_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(words) == 2
    assert message in _said(capsys)


def test_a_folder_without_files_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main([str(tmp_path)]) == 2
    assert "there is no file *.record" in _said(capsys)


def _written(folder: Path, lines: list[bytes]) -> str:
    (folder / "00000001.record").write_bytes(b"".join(line + b"\n" for line in lines))
    return str(folder)


def test_a_torn_end_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = RECORD.read_bytes()
    (tmp_path / "00000001.record").write_bytes(data[: len(data) // 2])
    assert replay.main([str(tmp_path), "--list"]) == 0
    assert "its last line is left out" in _said(capsys)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_a_torn_end_is_reported_once(share: float, tmp_path: Path, capsys: Any) -> None:
    data = gzip.compress(b"".join(line + b"\n" for line in files.lines(RECORD.read_bytes())))
    (tmp_path / "00000001.record").write_bytes(data[: int(len(data) * share)])
    replay.main([str(tmp_path), "--list"])
    assert _said(capsys).count("its last line is left out") == 1


def test_times_in_small_letters_are_read() -> None:
    assert records.instant("--at", "2026-11-28t10:00:00z") == datetime(2026, 11, 28, 10, tzinfo=UTC)


def test_a_damaged_line_is_named_and_other_files_are_read(tmp_path: Path, capsys: Any) -> None:
    lines = list(files.lines(RECORD.read_bytes()))
    place = next(number for number, line in enumerate(lines, 1) if b'"line":"decision"' in line)
    path = _written(tmp_path, [*lines[:place], b"{", *lines[place:]])
    start = json.dumps({**json.loads(lines[0]), "run": "another"}).encode()
    (tmp_path / "00000002.record").write_bytes(b"".join(line + b"\n" for line in (start, *lines[1:])))
    assert replay.main([path, "--list"]) == 2
    text = _said(capsys)
    assert f"00000001.record: line {place + 1}: " in text
    assert "CreateNodeClaim" in text


# --- files of any make ------------------------------------------------------------------------------------------
def _decision(**fields: Any) -> bytes:
    line = {"line": "decision", "at": "2026-01-01T00:00:00Z", "digest": "a", **fields}
    return json.dumps(line).encode()


def _checkpoint() -> list[bytes]:
    lines = list(files.lines(RECORD.read_bytes()))
    return lines[: next(number for number, line in enumerate(lines, 1) if b'"line":"end"' in line)]


def test_names_of_a_record_move_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    act = {"line": "action", "key": "a\x1b[2J", "reason": "b\n::error::c", "digest": ""}
    assert replay.main([_written(tmp_path, [*_checkpoint(), _decision(actions=[act])]), "--list"]) == 0
    text = _said(capsys)
    assert "\x1b" not in text
    assert "\n::error" not in text


@pytest.mark.parametrize(
    "line",
    [
        b'{"line":"objects","kind":"Node","items":"x"}',
        b'{"line":"objects","kind":"EC2NodeClass","items":[7]}',
        b'{"line":"change","name":"batch","entries":{"a":1}}',
        b'{"line":"decision","digest":"a","at":"2026-01-01T00:00:00"}',
    ],
)
def test_a_wrong_value_is_named_with_its_line(line: bytes, tmp_path: Path, capsys: Any) -> None:
    lines = [*_checkpoint(), line, _decision()]
    assert replay.main([_written(tmp_path, lines), "--list", "--until", "2027-01-01"]) == 2
    assert f"00000001.record: line {len(lines) - 1}: " in _said(capsys)


def test_joined_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the decisions of the first one would be read."""
    (tmp_path / "a.record").write_bytes(RECORD.read_bytes() * 2)
    assert replay.main([str(tmp_path), "--list"]) == 2
    assert "it has data after its end" in _said(capsys)


def test_a_pipe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert replay.main([str(tmp_path / "pipe"), "--list"]) == 2
    assert "it is no file, and a record is read more than once" in _said(capsys)


def test_a_part_that_the_controller_deletes_meanwhile_is_no_damage(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "2.record").write_bytes(RECORD.read_bytes())
    record = records.Record([tmp_path / "1.record", tmp_path / "2.record"], print)
    assert any(True for _ in record.decisions(object))
    assert not record.damaged
    assert "1.record: the controller has deleted it meanwhile" in _said(capsys)


def test_decisions_after_a_clock_was_set_back_are_found(tmp_path: Path, capsys: Any) -> None:
    times = ("2026-01-01T00:10:00Z", "2026-01-01T00:30:00Z", "2026-01-01T00:12:00Z")
    path = _written(tmp_path, [*_checkpoint(), *(_decision(at=at) for at in times)])
    assert replay.main([path, "--list", "--all", "--until", "2026-01-01T00:20:00Z"]) == 0
    assert "2 decisions" in _said(capsys)
