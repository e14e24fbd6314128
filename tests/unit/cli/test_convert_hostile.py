"""`kerf convert --in-place` keeps owner, mode and links or names the reason, and leaves no file after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.cli.rewriting import replacing
from kerf.cli.verbs import convert
from tests.sources import python_path

from .test_convert import NEW_POOL, POOL

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/a.yaml").write_text(POOL)
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


def refused(capsys: Capture, path: str, words: str) -> None:
    assert convert.main(["--in-place", path]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("path", [".", "a.yaml"])
def test_owner_mode_and_attributes_stay(repo: Path, path: str) -> None:
    file = repo / "a.yaml"
    os.chmod(file, 0o640)
    if os.geteuid() == 0:
        os.chown(file, 1234, 2345)
    os.setxattr(file, "user.note", b"x")
    before = os.stat(file)
    assert convert.main(["--in-place", path]) == 0
    after = os.stat(file)
    assert file.read_text() == NEW_POOL
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(file, "user.note") == b"x"
    assert os.listdir(repo) == ["a.yaml"]


def test_a_reason_is_named_where_something_cannot_stay(
    repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link("a.yaml", "b.txt")
    refused(capsys, "a.yaml", "a.yaml: cannot be written: the file has 2 hard links")
    os.unlink("b.txt")
    os.chmod("a.yaml", 0o4755)
    refused(capsys, "a.yaml", "the file has the setuid or setgid bit; remove it with chmod ug-s")
    os.chmod("a.yaml", 0o644)

    def denied(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", denied)
    about = os.stat_result((0o100644, 1, 1, 1, 1, 2, 3, 0, 0, 0))
    with pytest.raises(OSError, match=r"the owner 1:2 of the file cannot be kept; run the command as that user"):
        replacing._keep(0, "a.yaml", about)
    assert (repo / "a.yaml").read_text() == POOL
    assert os.listdir(repo) == ["a.yaml"]


@pytest.mark.parametrize("path", [".", "b.yaml", "*.yaml", "away"])
def test_nothing_is_written_through_a_link_out_of_the_folder(repo: Path, capsys: Capture, path: str) -> None:
    (repo.parent / "away").mkdir()
    outside = repo.parent / "away/outside.yaml"
    outside.write_text(POOL)
    (repo / "b.yaml").symlink_to(outside)
    (repo / "away").symlink_to(repo.parent / "away")
    assert convert.main(["--in-place", path]) == 2
    assert "this is a link out of" in capsys.readouterr().err
    assert outside.read_text() == POOL


def test_a_file_that_changed_meanwhile_stays(repo: Path) -> None:
    with pytest.raises(OSError, match="the file has changed since it was read; run the command again"):
        replacing.replace("a.yaml", b"other", b"new")
    assert (repo / "a.yaml").read_text() == POOL


def _killed(repo: Path, function: str) -> None:
    """Run the command, and kill it in a system call."""
    program = (
        "import os, signal, sys\n"
        "from kerf.cli.verbs import convert\n"
        f"os.{function} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "convert.main(['--in-place', 'a.yaml'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=repo, env={"PYTHONPATH": python_path()}, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("function", ["fchmod", "fsync", "link"])
def test_a_crash_leaves_no_file(repo: Path, function: str) -> None:
    _killed(repo, function)
    assert os.listdir(repo) == ["a.yaml"]
    assert (repo / "a.yaml").read_text() == POOL


def test_the_next_run_removes_a_file_that_a_crash_left(repo: Path) -> None:
    _killed(repo, "replace")
    assert len(os.listdir(repo)) == 2
    (repo / f".kerf-convert-{os.getpid()}-0").touch()  # of a run that goes on
    assert convert.main(["--in-place", "a.yaml"]) == 0
    assert sorted(os.listdir(repo)) == [f".kerf-convert-{os.getpid()}-0", "a.yaml"]
    assert (repo / "a.yaml").read_text() == NEW_POOL


def test_without_files_that_have_no_name(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    assert convert.main(["--in-place", "a.yaml"]) == 0
    assert (repo / "a.yaml").read_text() == NEW_POOL
    assert os.listdir(repo) == ["a.yaml"]
