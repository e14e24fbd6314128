"""The recorder keeps its bounds, counts missed decisions, and disturbs no decision, whatever fails."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.memory import Memory
from kerf.records import plans
from kerf.records.encoding import Encoder
from kerf.runtime.recording.recorder import Recorder
from kerf.runtime.recording.ring import Ring, TooLarge, parts
from kerf.runtime.recording.software import software
from kerf.runtime.recording.starting import Recording
from kerf.runtime.settings.options import Options
from kerf.snapshots import files
from kerf.snapshots.reading import Unreadable
from kerf.telemetry.log.logs import make_logger
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.troubles import Troubles
from tests.unit.records.lives import MIB, PAUSE, Life, read, replayed
from tests.unit.snapshots.worlds import busy

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in parts(folder))


# --- bounds -----------------------------------------------------------------------------------------------------
def _noise(number: int) -> list[bytes]:
    return [os.urandom(1000).hex().encode() + b"\n" for _ in range(number)]


def test_the_oldest_part_is_deleted_when_the_record_is_too_large(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 40_000, DAY)
    for _ in range(12):
        ring.begin(_noise(5), NOW)
    assert [path.name for path in parts(tmp_path)][-1] == "00000012.record"
    assert 2 <= len(parts(tmp_path)) < 12
    assert _bytes(tmp_path) <= 40_000


def test_a_part_is_deleted_when_it_is_too_old(tmp_path: Path) -> None:
    ring = Ring(tmp_path, MIB, DAY)
    for _ in range(3):
        ring.begin(_noise(1), datetime.now(UTC))
    ring.flush(datetime.now(UTC) + 2 * DAY)
    assert [path.name for path in parts(tmp_path)] == ["00000003.record"]


def test_a_part_that_is_large_or_old_is_followed_by_another_one(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 400_000, DAY)
    assert ring.due(NOW)
    ring.begin(_noise(1), NOW)
    assert not ring.due(NOW + timedelta(hours=2))
    assert ring.due(NOW + timedelta(hours=4))
    assert ring.due(NOW - timedelta(hours=1)), "the clock was set back"
    ring.write(_noise(60))
    ring.flush(NOW)
    assert ring.due(NOW)


def test_one_part_that_exceeds_the_bound_ends_the_recording(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 10_000, DAY)
    with pytest.raises(TooLarge, match="one part of the record has more than 10,000 bytes"):
        ring.begin(_noise(40), NOW)
    assert parts(tmp_path) == []


def test_a_new_process_continues_the_numbers(tmp_path: Path) -> None:
    for _ in range(2):
        ring = Ring(tmp_path, MIB, DAY)
        ring.begin(_noise(1), NOW)
        ring.close()
    assert [path.name for path in parts(tmp_path)] == ["00000001.record", "00000002.record"]


def test_each_part_is_readable_without_the_others(tmp_path: Path) -> None:
    life = Life(tmp_path, hours=0.2)
    life.live(6)
    life.recorder.close()
    assert len(parts(tmp_path)) > 2
    parts(tmp_path)[0].unlink()
    outcomes = list(replayed(tmp_path))
    assert outcomes
    assert all(one.same for one in outcomes)


# --- failures ---------------------------------------------------------------------------------------------------
class _Slow(Encoder):
    """Waits until it may go on."""

    gate = threading.Event()

    def take(self, changes: Any) -> Any:
        self.gate.wait(10)
        return super().take(changes)


def test_decisions_that_the_thread_cannot_follow_are_counted(tmp_path: Path) -> None:
    _Slow.gate.clear()
    errors = list[Exception]()
    recorder = Recorder(Ring(tmp_path, MIB, DAY), _Slow(b"key", {}), errors.append, capacity=2)
    snapshot = busy().snapshot
    plan = decide(snapshot)
    for _ in range(8):
        recorder.note(snapshot, plan, busy().region)
    _Slow.gate.set()
    recorder.wait()
    recorder.note(snapshot, plan, busy().region)
    recorder.wait()
    recorder.close()
    found = [step.decision for step in read(tmp_path)]
    assert errors == []
    assert len(found) + sum(one.missed for one in found) == 9
    assert found[-1].missed >= 5


def test_an_error_of_the_encoder_costs_one_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life, whole = Life(tmp_path), plans.decision
    life.live(1)

    def failing(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(plans, "decision", whole)
        raise RuntimeError("a bug")

    monkeypatch.setattr(plans, "decision", failing)
    life.live(1)
    life.recorder.wait()  # what is handed over before the thread has seen the error cannot begin a new part
    life.live(1)
    life.recorder.close()
    assert [str(error) for error in life.errors] == ["a bug"]
    outcomes = list(replayed(tmp_path))
    assert sum(one.recorded.missed for one in outcomes) >= 1
    assert all(one.same for one in outcomes)


def test_a_folder_that_cannot_be_written_ends_no_decision(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    life = Life(tmp_path / "file" / "record")
    life.live(2)
    assert {type(error) for error in life.errors} == {NotADirectoryError}
    assert life.controller.state.cluster.count(kinds.NODE_CLAIM) > 0


def test_a_bug_in_following_changes_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = list[Exception]()
    recorder = Recorder(Ring(tmp_path, MIB, DAY), Encoder(b"key", {}), errors.append)
    monkeypatch.setattr("kerf.runtime.recording.recorder.Follower.changes", lambda *given: 1 / 0)
    plan = recorder.deciding(decide, lambda: None)(busy().snapshot, Memory())
    recorder.close()
    assert plan == decide(busy().snapshot)
    assert isinstance(errors[0], ZeroDivisionError)


class _Full(Ring):
    """On a disk that is full while `full` says so."""

    full = False

    def write(self, lines: Iterable[bytes]) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(lines)


def test_a_full_disk_is_tried_again(tmp_path: Path) -> None:
    """What it missed is counted, and the decisions after it are the same when they are made again."""
    life = Life(tmp_path, rings=_Full)
    life.live(1)
    _Full.full = True
    life.live(1)
    assert life.recorder.failing
    assert {str(error) for error in life.errors} == {"[Errno 28] No space left on device"}
    _Full.full = False
    time.sleep(2 * PAUSE)
    life.live(2)
    assert not life.recorder.failing
    life.recorder.close()
    outcomes = list(replayed(tmp_path))
    assert all(one.same for one in outcomes)
    assert len(parts(tmp_path)) >= 2
    assert sum(one.recorded.missed for one in outcomes) > 0


def test_changes_in_the_queue_behind_an_error_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They continue from changes that the thread does not have."""
    life, whole, gate = Life(tmp_path), plans.decision, threading.Event()
    life.live(1)

    def failing(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(plans, "decision", whole)
        gate.wait(10)
        raise RuntimeError("a bug")

    monkeypatch.setattr(plans, "decision", failing)
    life.world.scale("default", "web", 12)
    life.world.run(life.controller, timedelta(seconds=20))
    gate.set()
    life.live(2)
    life.recorder.close()
    assert all(one.same for one in replayed(tmp_path))


def test_errors_have_a_metric_and_one_line_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    stream, metrics = io.StringIO(), Metrics()
    options = Options(record_folder=str(tmp_path / "file" / "record"))
    recording = Recording(options, None, Troubles(make_logger("info", stream), metrics), lambda: None, lambda: None)
    for _ in range(3):
        recording.decide(busy().snapshot, Memory())
    recording.close()
    lines = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert lines.count("recording decisions failed") == 1
    assert metrics.registry.get_sample_value("kerf_errors_total", {"where": "recorder"})
    assert metrics.registry.get_sample_value("kerf_recorder_failing") == 1


def test_a_file_with_another_digit_in_its_name_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "²²².record").write_bytes(b"")
    Ring(tmp_path, MIB, DAY).begin(_noise(1), NOW)
    assert "00000001.record" in {path.name for path in parts(tmp_path)}


# --- a crash ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[bytes, int]]:
    """The bytes of a part that was not ended, and the number of its decisions."""
    life = Life(tmp_path_factory.mktemp("torn"))
    life.live(2)
    life.ring.flush(NOW)
    yield parts(life.folder)[0].read_bytes(), len(read(life.folder))
    life.recorder.close()


@pytest.mark.parametrize("lost", [0, 1, 7, 100, 1000])
def test_the_decisions_before_a_torn_end_are_read(torn: tuple[bytes, int], lost: int, tmp_path: Path) -> None:
    data, number = torn
    (tmp_path / "00000001.record").write_bytes(data[: len(data) - lost])
    found = read(tmp_path)
    assert len(found) == number if not lost else 0 < len(found) <= number


def test_a_file_of_a_snapshot_must_be_complete(torn: tuple[bytes, int]) -> None:
    with pytest.raises(Unreadable, match="its end is missing"):
        list(files.lines(torn[0]))


# --- settings ---------------------------------------------------------------------------------------------------
def test_without_a_folder_nothing_is_recorded() -> None:
    stream = io.StringIO()
    recording = Recording(Options(), None, Troubles(make_logger("info", stream), Metrics()), lambda: None, lambda: None)
    assert recording.decide is decide
    recording.close()
    assert stream.getvalue() == ""


def test_the_settings_are_those_of_the_record(tmp_path: Path) -> None:
    stream = io.StringIO()
    folder = tmp_path / "record"
    telemetry = Troubles(make_logger("info", stream), Metrics())
    recording = Recording(Options(record_folder=str(folder)), None, telemetry, lambda: None, lambda: busy().region)
    plan = recording.decide(busy().snapshot, Memory())
    recording.close()
    assert json.loads(stream.getvalue())["message"] == "decisions are recorded"
    assert len(plan.actions) == len(read(folder)[0].decision.actions)


def test_the_header_names_the_cpu() -> None:
    assert {"kerf", "numpy", "highspy", "python", "machine", "cpu"} <= {*software()}
