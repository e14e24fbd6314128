"""Copies of a record in a bucket: names, bounds, encryption, and an S3 that refuses, is gone, or is slow."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kerf.aws.buckets import Bucket
from kerf.aws.requests.clients import Clients
from kerf.cli.app import app
from kerf.cli.verbs import replay
from kerf.model.memory import Memory
from kerf.ports import PortError
from kerf.runtime.recording import uploading
from kerf.runtime.recording.ring import parts
from kerf.runtime.recording.starting import Recording
from kerf.runtime.recording.uploading import NAME, Uploader, kept
from kerf.runtime.settings import settings
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError
from kerf.telemetry.log.logs import make_logger
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.troubles import Troubles
from tests.unit.records.lives import MIB, Life
from tests.unit.runtime import stores
from tests.unit.snapshots.worlds import busy

DAY = timedelta(days=1)
RECORD = Path("tests/unit/records/versions/1.record")
PREFIX = "s3://records/kerf/demo"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with stores.server() as found:
        yield found


@pytest.fixture(autouse=True)
def environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of this process reach the server."""
    for name, value in {**stores.CREDENTIALS, "AWS_ENDPOINT_URL_S3": url}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def s3(url: str) -> Any:
    """A client of a server with an empty bucket."""
    found = stores.client(url)
    found.create_bucket(Bucket=stores.BUCKET, CreateBucketConfiguration={"LocationConstraint": stores.REGION})
    yield found
    if stores.BUCKET in [one["Name"] for one in found.list_buckets()["Buckets"]]:
        for key in _keys(found):
            found.delete_object(Bucket=stores.BUCKET, Key=key)
        found.delete_bucket(Bucket=stores.BUCKET)


@pytest.fixture(autouse=True)
def _ends_after_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer to upload than a controller waits at its end."""
    monkeypatch.setattr(uploading, "_CLOSE_SECONDS", 60.0)


def _bucket(url: str, encryption: str = "AES256", address: str = PREFIX) -> Bucket:
    return Bucket(Clients(stores.REGION, endpoint_url=url), address, encryption)


def _keys(s3: Any) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=stores.BUCKET).get("Contents", ())]


def _part(folder: Path, number: int, run: str = "1a2b3c4d", at: str = "2026-01-01T00:00:00") -> Path:
    """A part of two lines: its header, and that of its first snapshot."""
    start = {"line": "record", "run": run, "software": {}}
    header = {"line": "header", "at": f"{at}Z", "settings": {}}
    path = folder / f"{number:08d}.record"
    path.write_text("".join(json.dumps(one) + "\n" for one in (start, header)))
    return path


def _wait(holds: Callable[[], object]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends, "it never holds"
        time.sleep(0.02)


# --- uploads ----------------------------------------------------------------------------------------------------
def test_a_recorded_life_is_read_from_the_bucket(
    s3: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    life = Life(tmp_path, hours=0.2)
    errors: list[Exception] = []
    uploader = Uploader(tmp_path, _bucket(url), 64 * MIB, DAY, errors.append, visit=0.05)
    life.live(4)
    life.recorder.close()
    uploader.close()
    assert errors == []
    assert len(_keys(s3)) == len(parts(tmp_path)) > 1
    assert all(key.startswith("kerf/demo/") for key in _keys(s3))
    assert replay.main([str(tmp_path)]) == 0
    local = capsys.readouterr().out
    assert replay.main([PREFIX]) == 0
    assert capsys.readouterr().out == local


def test_each_object_is_readable_alone(s3: Any, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "00000001.record").write_bytes(RECORD.read_bytes())
    Uploader(tmp_path, _bucket(url), MIB, DAY, _fail).close()
    (key,) = _keys(s3)
    assert replay.main([f"s3://records/{key}", "--list"]) == 0
    assert "CreateNodeClaim" in capsys.readouterr().out
    done = CliRunner().invoke(app, ["why", "nodepool", "general", "--record", PREFIX])
    assert (done.exit_code, "NodePool general is ready" in done.stdout) == (0, True)


def _fail(error: Exception) -> None:
    pytest.fail(str(error))


@pytest.mark.parametrize(
    ("encryption", "algorithm", "key"),
    [
        ("AES256", "AES256", None),
        ("aws:kms", "aws:kms", None),
        ("aws:kms:dsse", "aws:kms:dsse", None),
        ("alias/records", "aws:kms", "alias/records"),
    ],
)
def test_objects_are_encrypted(
    encryption: str, algorithm: str, key: str | None, s3: Any, url: str, tmp_path: Path
) -> None:
    _part(tmp_path, 1)
    Uploader(tmp_path, _bucket(url, encryption), MIB, DAY, _fail).close()
    head = s3.head_object(Bucket=stores.BUCKET, Key=_keys(s3)[0])
    assert (head["ServerSideEncryption"], head.get("SSEKMSKeyId")) == (algorithm, key)


def test_a_restart_uploads_the_rest_alone(s3: Any, url: str, tmp_path: Path) -> None:
    _part(tmp_path, 1)
    Uploader(tmp_path, _bucket(url), MIB, DAY, _fail).close()
    (first,) = s3.list_objects_v2(Bucket=stores.BUCKET)["Contents"]
    _part(tmp_path, 2, at="2026-01-01T00:10:00")
    time.sleep(1.1)  # times of objects are whole seconds
    Uploader(tmp_path, _bucket(url), MIB, DAY, _fail).close()
    found = s3.list_objects_v2(Bucket=stores.BUCKET)["Contents"]
    assert [one["LastModified"] for one in found if one["Key"] == first["Key"]] == [first["LastModified"]]
    assert len(found) == 2


def test_two_leaders_in_turn_keep_each_others_parts(s3: Any, url: str, tmp_path: Path) -> None:
    for run, at in (("aaaa", "00:00:00"), ("bbbb", "00:10:00"), ("aaaa", "00:20:00")):
        folder = tmp_path / run
        folder.mkdir(exist_ok=True)
        _part(folder, len(parts(folder)) + 1, run, f"2026-01-01T{at}")
        Uploader(folder, _bucket(url), MIB, DAY, _fail).close()
    runs = [key.split("-")[1] for key in sorted(_keys(s3))]
    assert runs == ["aaaa", "bbbb", "aaaa"]


def test_the_part_that_is_being_written_is_copied_again(
    s3: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "OPEN_SECONDS", 0.1)
    path = _part(tmp_path, 1)
    uploader = Uploader(tmp_path, _bucket(url), MIB, DAY, _fail, visit=0.05)
    _wait(lambda: _keys(s3))
    with path.open("a") as file:
        file.write("more\n")
    _wait(lambda: s3.list_objects_v2(Bucket=stores.BUCKET)["Contents"][0]["Size"] == path.stat().st_size)
    uploader.close()


# --- bounds -----------------------------------------------------------------------------------------------------
def _name(hour: int, run: str = "aaaa") -> str:
    return f"20260101T{hour:02d}0000000000Z-{run}-00000001.record"


def _stored(*hours: int) -> dict[str, tuple[int, datetime]]:
    return {_name(hour): (100, datetime(2026, 1, 1, hour, tzinfo=UTC)) for hour in hours}


def test_bounds_keep_the_newest_parts() -> None:
    stored = _stored(*range(6))
    assert kept(stored, {}, 300, DAY) == {_name(hour) for hour in (3, 4, 5)}
    assert kept(stored, {}, 10_000, timedelta(hours=2)) == {_name(hour) for hour in (3, 4, 5)}
    assert kept(stored, {_name(6): 100}, 10, DAY) == {_name(6)}
    assert kept({"notes.txt": (1, datetime.now(UTC))}, {}, 10, DAY) == set()


def test_a_wrong_clock_of_a_controller_deletes_no_other_part() -> None:
    ahead = "20990101T000000000000Z-bbbb-00000001.record"
    stored = {**_stored(0, 1, 2), ahead: (100, datetime(2026, 1, 1, 3, tzinfo=UTC))}
    assert kept(stored, {_name(4): 100}, 10_000, DAY) == {*stored, _name(4)}
    back = "20200101T000000000000Z-bbbb-00000001.record"
    assert kept(_stored(0, 1, 2), {back: 100}, 300, DAY) == {_name(1), _name(2), back}
    assert "20261399T000000000000Z-x-1.record" in kept({"20261399T000000000000Z-x-1.record": stored[ahead]}, {}, 1, DAY)


def test_only_old_parts_of_the_record_are_deleted(s3: Any, url: str, tmp_path: Path) -> None:
    others = ["kerf/demo/notes.txt", "kerf/demo/deeper/" + _name(1), "kerf/demo2/" + _name(1), _name(1)]
    for key in [*others, "kerf/demo/" + _name(1)]:
        s3.put_object(Bucket=stores.BUCKET, Key=key, Body=b"x" * 1000)
    path = _part(tmp_path, 1, at="2026-01-01T02:00:00")
    Uploader(tmp_path, _bucket(url), path.stat().st_size, DAY, _fail).close()
    assert sorted(_keys(s3)) == sorted([*others, f"kerf/demo/20260101T020000000000Z-1a2b3c4d-{path.name}"])


# --- failures ---------------------------------------------------------------------------------------------------
def _recording(folder: Path, store: Any, stream: io.StringIO) -> tuple[Recording, Metrics]:
    metrics = Metrics()
    options = Options(record_folder=str(folder), record_s3=PREFIX)
    telemetry = Troubles(make_logger("info", stream), metrics)
    return Recording(options, store, telemetry, lambda: None, lambda: busy().region), metrics


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploading, "_FIRST_PAUSE", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_bucket_that_is_gone_is_reported_until_it_is_there(s3: Any, url: str, tmp_path: Path) -> None:
    s3.delete_bucket(Bucket=stores.BUCKET)
    stream = io.StringIO()
    recording, metrics = _recording(tmp_path / "record", _bucket(url), stream)
    recording.decide(busy().snapshot, Memory())
    _wait(recording.problems)
    (words,) = recording.problems()
    assert "the record is not uploaded: s3:ListObjectsV2: " in words
    assert "NoSuchBucket" in words
    assert metrics.registry.get_sample_value("kerf_record_upload_failing") == 1
    assert metrics.registry.get_sample_value("kerf_errors_total", {"where": "recorder_upload"})
    assert "uploading the record failed" in stream.getvalue()
    s3.create_bucket(Bucket=stores.BUCKET, CreateBucketConfiguration={"LocationConstraint": stores.REGION})
    _wait(lambda: not recording.problems())
    assert metrics.registry.get_sample_value("kerf_record_upload_failing") == 0
    recording.close()
    assert len(_keys(s3)) == 1


REFUSED = b"<Error><Code>AccessDenied</Code><Message>no identity-based policy allows it</Message></Error>"


@pytest.mark.parametrize(
    ("body", "words"), [(REFUSED, "AccessDenied: no identity-based policy"), (b"<html>no</html>", "403: Forbidden")]
)
@pytest.mark.usefixtures("impatient")
def test_a_refusal_is_reported(body: bytes, words: str, tmp_path: Path) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = _bucket(f"http://127.0.0.1:{server.server_address[1]}")
        recording, _ = _recording(tmp_path / "record", store, io.StringIO())
        recording.decide(busy().snapshot, Memory())
        _wait(recording.problems)
        (problem,) = recording.problems()
        recording.close()
        server.shutdown()
    assert problem.startswith("the record is not uploaded: s3:ListObjectsV2: ")
    assert words in problem
    assert len(parts(tmp_path / "record")) == 1


def test_a_store_that_does_not_answer_delays_no_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploading, "VISIT_SECONDS", 0.05)
    monkeypatch.setattr(uploading, "_CLOSE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = _bucket(f"http://127.0.0.1:{silent.getsockname()[1]}")
        recording, _ = _recording(tmp_path / "record", store, io.StringIO())
        recording.decide(busy().snapshot, Memory())
        _wait(lambda: [*(tmp_path / "record").glob("*.record")])
        began = time.monotonic()
        recording.close()
        assert time.monotonic() - began < 5
    assert len(parts(tmp_path / "record")) == 1


# --- commands ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://gone/kerf", "NoSuchBucket"),
        (PREFIX, "there is no part of a record"),
        ("s3://A", "must be s3://BUCKET/PREFIX"),
    ],
)
@pytest.mark.usefixtures("s3")
def test_an_address_without_a_record(address: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main([address]) == 2
    error = capsys.readouterr().err
    assert f"kerf replay: {address}: " in error
    assert words in error


def test_a_record_that_is_too_large_is_not_downloaded(
    s3: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kerf.cli.answering.stored_records.MOST_BYTES", 10)
    s3.put_object(Bucket=stores.BUCKET, Key="kerf/demo/" + _name(1), Body=b"x" * 11)
    assert replay.main([PREFIX]) == 2
    assert "name one part, or copy the parts that you need into a folder" in capsys.readouterr().err


def test_names_of_objects_are_those_of_a_part() -> None:
    assert NAME.fullmatch(_name(1))
    assert not NAME.fullmatch("../" + _name(1))


def test_more_than_a_page_of_objects_is_listed(s3: Any, url: str) -> None:
    def small_pages(client: Any) -> None:
        client.meta.events.register(
            "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=2)
        )

    for number in range(5):
        s3.put_object(Bucket=stores.BUCKET, Key=f"kerf/demo/{number}", Body=b"x" * number)
    found = Bucket(Clients(stores.REGION, endpoint_url=url, on_client=small_pages), PREFIX)
    assert {name: size for name, (size, _) in found.objects().items()} == {str(number): number for number in range(5)}


def test_a_bucket_needs_a_folder() -> None:
    with pytest.raises(SettingsError) as raised:
        settings.parse(["--record-s3=s3://records/kerf/demo"], {"CLUSTER_NAME": "demo"})
    assert raised.value.problems == (
        "RECORD_S3 (--record-s3): needs RECORD_FOLDER, the folder whose files are uploaded",
    )


@pytest.mark.parametrize("address", ["s3://records", "s3://records/"])
def test_the_whole_bucket_is_refused_and_read(address: str, s3: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The bounds of one cluster would delete the parts of another one."""
    with pytest.raises(SettingsError) as raised:
        settings.parse([], {"CLUSTER_NAME": "demo", "RECORD_FOLDER": "/record", "RECORD_S3": address})
    assert raised.value.problems == (
        "RECORD_S3 (--record-s3): needs a prefix of this cluster alone, such as s3://records/kerf/demo",
    )
    s3.put_object(Bucket=stores.BUCKET, Key=_name(1), Body=Path("tests/unit/records/versions/1.record").read_bytes())
    assert replay.main([address, "--list"]) == 0
    assert "decisions" in capsys.readouterr().out


def test_an_error_names_the_call(url: str) -> None:
    with pytest.raises(PortError, match="s3:DeleteObject: NoSuchBucket"):
        _bucket(url, address="s3://gone").delete("a")
