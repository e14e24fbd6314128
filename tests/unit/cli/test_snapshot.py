"""`kerf snapshot`: a file, and the same answers from it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from kerf.cli.answering import changed
from kerf.cli.app import app
from kerf.snapshots import files, writing
from kerf.snapshots.reading import read

CASES = Path(__file__).parent / "why"
PODS = {"taint": "ml/trainer-0", "too-large": "shop/cache-0", "volume-zone": "shop/db-0", "limit": "jobs/batch-3"}


def kerf(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def _saved(tmp_path: Path, name: str, *more: str) -> Path:
    file = tmp_path / "now.snapshot"
    given = [f"--file={CASES / 'cluster.yaml'}", f"--file={CASES / name}.yaml"]
    done = kerf("snapshot", "-o", str(file), *given, *more)
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    return file


@pytest.mark.parametrize("name", sorted(PODS))
def test_the_answer_from_a_file_is_the_answer(name: str, tmp_path: Path) -> None:
    done = kerf("why", "pod", PODS[name], "--snapshot", str(_saved(tmp_path, name)))
    told = (CASES / f"{name}.txt").read_text().split("\n\n", 1)[1]  # without the words about instance types
    assert (done.exit_code, done.stdout) == (0, told)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = _saved(tmp_path, "taint")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_a_file_that_is_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "now.snapshot").write_text("before")
    (tmp_path / "now.snapshot").chmod(0o644)
    file = _saved(tmp_path, "taint")
    assert len(read(files.lines(file.read_bytes())).snapshot.pods) > 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("before")
    (tmp_path / "now.snapshot").symlink_to(tmp_path / "other")
    assert not _saved(tmp_path, "taint").is_symlink()
    assert (tmp_path / "other").read_text() == "before"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    """So it is for devices: a file must not take the place of /dev/null."""
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    done = kerf("snapshot", "-o", str(pipe), f"--file={CASES / 'cluster.yaml'}")
    assert done.exit_code == 0
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(read(files.lines(found[0])).snapshot.node_pools) > 0


@pytest.mark.parametrize(
    ("place", "words"), [("", "it is a folder; name a file in it"), ("none/now.snapshot", "No such file or directory")]
)
def test_a_place_that_cannot_be_written_is_named(place: str, words: str, tmp_path: Path) -> None:
    output = str(tmp_path / place)
    done = kerf("snapshot", "-o", output, f"--file={CASES / 'cluster.yaml'}")
    assert done.exit_code == 1
    assert f"kerf snapshot: {output}: {words}" in done.output
    assert not list(tmp_path.iterdir())


def test_standard_output() -> None:
    done = CliRunner().invoke(app, ["snapshot", "-o", "-", f"--file={CASES / 'cluster.yaml'}"])
    assert done.exit_code == 0
    assert len(read(files.lines(done.stdout_bytes)).snapshot.node_pools) > 0


def test_names_are_replaced(tmp_path: Path) -> None:
    file = _saved(tmp_path, "taint", "--hash-names")
    text = b"".join(files.lines(file.read_bytes()))
    assert read(files.lines(file.read_bytes())).names == "pseudonyms"
    assert b"trainer" not in text


def test_the_same_key_gives_the_same_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node_class = tmp_path / "class.yaml"
    node_class.write_text(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {userData: hello}\n"
    )

    def digest(key: str) -> str | None:
        monkeypatch.setenv("KERF_DIGEST_KEY", key)
        done = kerf("snapshot", "-o", str(tmp_path / "s"), "-f", str(node_class))
        assert done.exit_code == 0, done.stderr
        found = read(files.lines((tmp_path / "s").read_bytes())).snapshot
        return found.node_classes["a"].spec.user_data

    assert digest("mine") == digest("mine") != digest("")
    assert digest("") != digest(""), "a random key"
    assert digest("") != "hello"


def test_another_key_is_reported_in_place_of_false_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of earlier versions have no fingerprint, and any key is taken for theirs."""
    text = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {userData: hello}\n"
    (tmp_path / "class.yaml").write_text(text)
    monkeypatch.setenv("KERF_DIGEST_KEY", "mine")
    done = kerf("snapshot", "-o", str(tmp_path / "s"), "-f", str(tmp_path / "class.yaml"))
    assert done.exit_code == 0, done.stderr
    lines = list(files.lines((tmp_path / "s").read_bytes()))
    captured = read(lines)
    header = json.loads(lines[0])
    assert b"mine" not in lines[0]
    assert len(header.pop("key")) == 16
    older = read([json.dumps(header).encode(), *lines[1:]])
    assert older.key == ""
    own = captured.snapshot.node_classes["a"].spec.user_data
    words = ["EC2NodeClass a: its user data is assumed unchanged: KERF_DIGEST_KEY is not the key of the snapshot"]
    for found, key, same, assumed in (
        (captured, b"mine", True, []),
        (captured, b"other", True, words),
        (older, b"mine", True, []),
        (older, b"other", False, []),
    ):
        change, notes = changed.comparable(changed.of_files([str(tmp_path / "class.yaml")]), found, key)
        assert ((change.applied[0]["spec"]["userData"] == own), notes) == (same, assumed)
    again = list(writing.lines(captured, b""))
    assert read(again).key == captured.key, "the digests of a file are those of its key"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["-f", "x"], "-o FILE: the file to write is missing", 2),
        (["-o", "s", "-f", "/nowhere"], "/nowhere", 2),
        (["-o", "/nowhere/s", "-f", str(CASES / "cluster.yaml")], "/nowhere/s: No such file or directory", 1),
        (["-o", "s", "--controller", "-f", "x"], "--controller: the controller has its own settings", 2),
        (["-o", "s", "-f", str(CASES / "cluster.yaml"), "--batch-max-durations", "1s"], "batch-max-duration", 2),
        (["-o", "s", "--controller", "--url", "http://127.0.0.1:9"], "no controller answers at http://127.0.0.1:9", 2),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], words: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = kerf("snapshot", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert not list(tmp_path.iterdir()), "nothing is left of what failed"


def test_help_says_how() -> None:
    assert kerf("snapshot", "--help").stdout.startswith("kerf snapshot -o FILE")


# --- of others that read it -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--snapshot", "/nowhere"], "/nowhere: No such file or directory"),
        (["--snapshot", str(CASES / "cluster.yaml")], "cluster.yaml: line 1: it is no line of a snapshot"),
        (["--snapshot", "s", "-f", "x"], "--snapshot and -f exclude each other"),
        (["--snapshot", "s", "--cluster-name", "a"], "--cluster-name: the settings are those of the snapshot"),
    ],
)
def test_a_file_that_cannot_be_used(arguments: list[str], words: str) -> None:
    done = kerf("why", "pod", "a/b", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
