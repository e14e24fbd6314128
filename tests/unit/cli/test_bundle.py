"""The archive for support has what the controller and its folder have, lists it, and has no secrets."""

from __future__ import annotations

import io
import json
import os
import resource
import stat
import tarfile
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import pytest

from kerf.cli.answering import bundle
from kerf.cli.operating import bundling, debug_port
from kerf.runtime.recording.ring import parts
from kerf.snapshots import files
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from tests.unit.runtime import stores
from tests.unit.snapshots.test_sanitizing import SECRET, life

RECORD = Path("tests/unit/records/versions/1.record")


def _answer(
    url: str, path: str, query: Mapping[str, str] | None = None, *, method: str = "GET", seconds: float = 1
) -> bytes:
    return b'{"problems":[]}' if path == "/status" else files.compressed(lines(life().launching, b"key"))


def _members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        assert {one.mode for one in tar} == {0o600}
        found = {one.name: tar.extractfile(one) for one in tar}
        return {name.removeprefix("kerf-bundle/"): file.read() for name, file in found.items() if file is not None}


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "record"
    folder.mkdir()
    (folder / "00000001.record").write_bytes(RECORD.read_bytes())
    monkeypatch.setenv("RECORD_FOLDER", str(folder))
    monkeypatch.setenv("CLUSTER_NAME", "sandbox")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://user:{SECRET}@aws.example.com")
    return folder


def test_it_has_all_files_and_no_secret(record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug_port, "ask", _answer)
    target = tmp_path / "bundle.tar.gz"
    assert bundle.main(["-o", str(target)]) == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    found = _members(target.read_bytes())
    names = {"contents.txt", "versions.json", "settings.json", "status.json", "cluster.snapshot"}
    assert {*found} == {*names, "record/00000001.record"}
    assert read(files.lines(found["cluster.snapshot"])).snapshot.node_claims
    assert found["record/00000001.record"] == RECORD.read_bytes()
    assert all(name in found["contents.txt"].decode() for name in found if name != "contents.txt")
    texts = {name: b"".join(files.lines(data)) for name, data in found.items()}
    assert [name for name, text in texts.items() if SECRET.encode() in text] == []
    settings = {row["variable"]: row["value"] for row in json.loads(found["settings.json"])}
    assert settings["AWS_ENDPOINT_URL"] == "https://aws.example.com"


def test_missing_parts_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bundle.tar.gz"
    assert bundle.main(["-o", str(target), "--url", "http://127.0.0.1:9"]) == 1
    assert "cluster.snapshot  missing: no controller answers at http://127.0.0.1:9" in capsys.readouterr().err
    text = _members(target.read_bytes())["contents.txt"].decode()
    assert "record  missing: RECORD_FOLDER names no folder: the recorder is off" in text
    assert "settings.json  missing: no settings of a controller are here: CLUSTER_NAME" in text


def test_a_file_that_cannot_be_written_ends_with_2(tmp_path: Path) -> None:
    assert bundle.main(["-o", str(tmp_path / "no" / "file"), "--url", "http://127.0.0.1:9"]) == 2


def test_odd_files_of_the_record_cost_no_other_file(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link could lead to the token of the pod; a pipe would never end."""
    (tmp_path / "token").write_text(SECRET)
    (record / "00000002.record").symlink_to(tmp_path / "token")
    (record / "00000003.record").mkdir()
    os.mkfifo(record / "00000004.record")
    (record / "00000005.record").write_bytes(RECORD.read_bytes())
    monkeypatch.setattr(debug_port, "ask", _answer)
    target = tmp_path / "bundle.tar.gz"
    assert bundle.main(["-o", str(target)]) == 1
    found = _members(target.read_bytes())
    assert found["record/00000005.record"] == RECORD.read_bytes()
    assert {name for name in found if name.startswith("record/")} == {f"record/0000000{n}.record" for n in (1, 5)}
    text = found["contents.txt"].decode()
    assert all(f"record/0000000{number}.record  missing: " in text for number in (2, 3, 4))


def test_a_part_that_grows_or_is_deleted_meanwhile_is_whole(record: Path) -> None:
    gathered = bundling.gathered("http://127.0.0.1:9", str(record), {}, lambda folder: parts(Path(folder)))
    with (record / "00000001.record").open("ab") as file:
        file.write(b"more")
    (record / "00000001.record").unlink()
    assert _members(b"".join(gathered.archive()))["record/00000001.record"] == RECORD.read_bytes()


def test_a_record_may_have_more_parts_than_a_process_may_open(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2, 2001):
        (record / f"{number:08d}.record").write_bytes(b"%d" % number)
    monkeypatch.setattr(debug_port, "ask", _answer)
    target = tmp_path / "bundle.tar.gz"
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        assert bundle.main(["-o", str(target)]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    found = _members(target.read_bytes())
    assert len([name for name in found if name.startswith("record/")]) == 2000
    assert found["record/00002000.record"] == b"2000"
    assert "record/00002000.record  4 bytes" in found["contents.txt"].decode()


def test_the_archive_needs_memory_for_one_part_at_a_time(record: Path) -> None:
    for number in range(2, 12):
        (record / f"{number:08d}.record").write_bytes(os.urandom(2**20))
    gathered = bundling.gathered("http://127.0.0.1:9", str(record), {}, lambda folder: parts(Path(folder)))
    tracemalloc.start()
    size = sum(map(len, gathered.archive()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 10 * 2**20
    assert peak < 5 * 2**20


def test_a_bucket_that_cannot_be_read_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**stores.CREDENTIALS, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    assert bundle.main(["-o", str(tmp_path / "b"), "--url", "http://127.0.0.1:9", "--record", "s3://records/kerf"]) == 1
    assert "\nrecord  missing: s3://records/kerf: s3:ListObjectsV2: " in capsys.readouterr().err
