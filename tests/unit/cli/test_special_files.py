"""Named pipes, devices, sockets and links out of the folder are refused, each with a clear word."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.cli.verbs import convert, default, validate
from tests.sources import python_path

from .test_since import CLASS, POOL

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "repo/pools").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text(POOL)
    (tmp_path / "repo/class.yaml").write_text(CLASS)
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("path", ["pools", "pools/x.yaml", "pools/*.yaml"])
def test_a_special_file_is_refused(repo: Path, capsys: Capture, kind: str, path: str) -> None:
    place = repo / "pools/x.yaml"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place.relative_to(repo)))
    else:
        place.symlink_to("/dev/zero")
    words = {"pipe": "this is a named pipe (FIFO)", "socket": "this is a socket", "device": "this is a link out of"}
    for verb in (validate, convert):
        assert verb.main([path]) == 2
        out, err = capsys.readouterr()
        assert words[kind] in out + err
    if path == "pools/x.yaml":
        assert default.main([path]) == 2
        assert words[kind] in capsys.readouterr().err


def test_a_device_that_is_named_is_refused(capsys: Capture, repo: Path) -> None:
    assert validate.main(["/dev/zero"]) == 2
    assert "this is a character device; give a regular file" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["pools", "pools/link.yaml", "pools/*.yaml", "away", "away/secret.yaml"])
def test_a_link_out_of_the_folder_is_refused(repo: Path, capsys: Capture, path: str) -> None:
    (repo / "pools/link.yaml").symlink_to(repo.parent / "secret.yaml")
    (repo / "away").symlink_to(repo.parent)
    assert validate.main([path]) == 2
    out, err = capsys.readouterr()
    assert "this is a link out of" in out + err
    assert "KERF-SET" not in out


def test_a_report_is_written_to_no_special_file_and_no_link_out_of_the_folder(repo: Path, capsys: Capture) -> None:
    (repo / "kerf.sarif").symlink_to(repo.parent / "secret.yaml")
    os.mkfifo(repo / "pipe")
    (repo / "old.txt").write_text("x" * 10_000)
    for name, words in (("kerf.sarif", "this is a link out of"), ("pipe", "")):
        assert validate.main(["--write", f"sarif={name}", "class.yaml"]) == 2
        assert f"kerf validate: --write sarif={name}: {words}" in capsys.readouterr().err
    assert (repo.parent / "secret.yaml").read_text() == POOL
    assert validate.main(["--write", "text=old.txt", "--write", "text=/dev/null", "class.yaml"]) == 0
    assert (repo / "old.txt").read_text() == capsys.readouterr().out
    assert validate.main(["--catalogue", "pipe", "class.yaml"]) == 2
    assert "--catalogue pipe: this is a named pipe (FIFO)" in capsys.readouterr().err


def test_a_link_within_the_folder_is_read(repo: Path, capsys: Capture) -> None:
    (repo / "pools/real.txt").write_text(POOL)
    (repo / "pools/link.yaml").symlink_to("real.txt")
    (repo / "pools/class.yaml").symlink_to("../class.yaml")
    assert validate.main(["pools/link.yaml", "pools/class.yaml"]) == 0
    assert "2 manifests of 2 files" in capsys.readouterr().out
    assert validate.main([str(repo / "pools/link.yaml"), "."]) == 0


def test_a_pipe_of_the_shell_is_read(repo: Path) -> None:
    (repo / "pools/a.yaml").write_text(POOL)
    command = f"{sys.executable} -m kerf.cli.main validate <(cat pools/a.yaml) class.yaml /dev/stdin < /dev/null"
    environment = {"PYTHONPATH": python_path(), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-c", command], cwd=repo, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert "2 manifests of 3 files" in done.stdout
