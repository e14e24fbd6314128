"""`kerf validate --changed-since` runs no program that the checked repository names.

Each case is a repository that makes Git run a program. The first half of each test shows that plain Git runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kerf.cli.gathering import repository
from kerf.cli.verbs import validate
from kerf.manifests import bounded
from tests.gitops.repositories import commit, git, write
from tests.gitops.repositories import repository as new_repository

from .test_since import BATCH, FILES, POOL, WRONG

Capture = pytest.CaptureFixture[str]


class Trap:
    """A repository on a branch with one wrong NodePool, and a program that leaves a marker."""

    def __init__(self, folder: Path) -> None:
        self.marker = folder / "marker"
        self.program = folder / "program"
        self.program.write_text(f"#!/bin/sh\ntouch {self.marker}\ntest $# = 0 && exec /bin/cat\nexit 1\n")
        self.program.chmod(0o755)
        self.repo = new_repository(folder / "repo", FILES)
        git(self.repo, "switch", "--quiet", "--create", "work")
        write(self.repo, {"pools/general.yaml": WRONG})

    def config(self, **values: str) -> None:
        for name, value in values.items():
            git(self.repo, "config", name.replace("__", "."), value)

    def lose(self, content: str) -> None:
        """Remove the object of a committed file, as a partial clone has none."""
        blob = git(self.repo, "rev-parse", f"main:{content}")
        (self.repo / ".git/objects" / blob[:2] / blob[2:]).unlink()

    def plainly(self, folder: str) -> None:
        """The same questions to Git, with the configuration that it finds."""
        top = self._ask(self.repo / folder, "rev-parse", "--show-toplevel")
        self._ask(Path(top), "diff", "--name-only", "--no-renames", "-z", "main", "--")
        self._ask(Path(top), "cat-file", "-p", "main:pools/general.yaml")

    def _ask(self, place: Path, *command: str) -> str:
        environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(
            ["git", *command], cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout.strip()


def bare(trap: Trap) -> None:
    """The pull request brings a bare repository in the checked folder."""
    inner = new_repository(trap.repo.parent / "inner", FILES)
    shutil.copytree(inner / ".git", trap.repo / "pools", dirs_exist_ok=True)
    config = trap.repo / "pools/config"
    config.write_text(f"[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = {trap.program}\n")


def monitor(trap: Trap) -> None:
    trap.config(core__fsmonitor=str(trap.program))


def included(trap: Trap) -> None:
    """A committed file is configuration: an archive with its `.git` includes it."""
    write(trap.repo, {"settings.txt": f"[core]\nfsmonitor = {trap.program}\n"})
    trap.config(include__path="../settings.txt")


def of_worktree(trap: Trap) -> None:
    trap.config(extensions__worktreeConfig="true")
    (trap.repo / ".git/config.worktree").write_text(f"[core]\nfsmonitor = {trap.program}\n")


def clean(trap: Trap) -> None:
    write(trap.repo, {".gitattributes": "*.yaml filter=x\n"})
    trap.config(filter__x__clean=str(trap.program))


def smudged_by_process(trap: Trap) -> None:
    (trap.repo / ".git/info").mkdir(exist_ok=True)
    (trap.repo / ".git/info/attributes").write_text("*.yaml filter=x\n")
    trap.config(filter__x__process=str(trap.program))


def submodule(trap: Trap) -> None:
    """Git looks into a submodule with the submodule's own configuration."""
    inner = new_repository(trap.repo / "pools/inner", FILES)
    git(trap.repo, "add", "pools/inner")
    git(trap.repo, "commit", "--quiet", "--message", "x")
    git(inner, "config", "core.fsmonitor", str(trap.program))


def upload_pack(trap: Trap) -> None:
    trap.config(extensions__partialClone="x", remote__x__url=str(trap.repo), remote__x__uploadpack=str(trap.program))
    trap.lose("pools/general.yaml")


def ssh(trap: Trap) -> None:
    trap.config(extensions__partialClone="x", remote__x__url="ssh://host.invalid/x", core__sshCommand=str(trap.program))
    trap.lose("pools/general.yaml")


def transport(trap: Trap) -> None:
    trap.config(extensions__partialClone="x", remote__x__url=f"ext::{trap.program} x", protocol__ext__allow="always")
    trap.lose("pools/general.yaml")


def link_to_bare(trap: Trap) -> None:
    """`.git` of an archive is a file that names a folder of the archive."""
    (trap.repo / ".git").rename(trap.repo / "pools/git")
    (trap.repo / ".git").write_text("gitdir: pools/git\n")
    (trap.repo / "pools/git/config").write_text(f"[core]\nrepositoryformatversion = 0\nfsmonitor = {trap.program}\n")


WAYS: tuple[Callable[[Trap], None], ...] = (
    bare,
    monitor,
    included,
    of_worktree,
    clean,
    smudged_by_process,
    submodule,
    upload_pack,
    ssh,
    transport,
    link_to_bare,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_program_of_the_repository_runs(
    way: Callable[[Trap], None], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Trap(tmp_path)
    way(trap)
    trap.plainly("pools")
    assert trap.marker.exists(), "plain Git does not run the program: the case shows nothing"
    trap.marker.unlink()
    monkeypatch.chdir(trap.repo)
    code = validate.main(["--changed-since", "main", "--format", "json", "pools/"])
    assert not trap.marker.exists()
    out, err = capsys.readouterr()
    if code == 2:
        assert "is not in this clone; fetch it, or clone without --filter: Kerf does not fetch" in err
        assert way in (upload_pack, ssh, transport)
    else:
        rules = {row["rule"] for row in json.loads(out)["problems"] if row["file"] == "pools/general.yaml"}
        assert "KERF-SCHEMA-PATTERN" in rules


def test_variables_of_git_and_a_program_in_the_folder_do_not_count(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Trap(tmp_path)
    shutil.copy(trap.program, trap.repo / "git")
    monkeypatch.chdir(trap.repo)
    for name, value in {"COUNT": "1", "KEY_0": "core.fsmonitor", "VALUE_0": str(trap.program)}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    assert validate.main(["--changed-since", "main", "pools"]) == 1
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert validate.main(["--changed-since", "main", "pools"]) == 2
    assert "git is not installed, or not on the PATH" in capsys.readouterr().err
    assert not trap.marker.exists()


def test_a_worktree_a_submodule_and_a_sparse_checkout_are_read(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = new_repository(tmp_path / "main", FILES | {"other/batch.yaml": BATCH})
    git(main, "worktree", "add", "--quiet", "-b", "work", str(tmp_path / "work"))
    work = tmp_path / "work"
    git(work, "sparse-checkout", "set", "pools", "classes")
    assert not (work / "other").exists()
    monkeypatch.chdir(work)
    assert validate.main(["--changed-since", "main", "."]) == 0
    assert "0 manifests" in capsys.readouterr().out
    commit(work, {"pools/general.yaml": WRONG})
    assert validate.main(["--changed-since", "main", "."]) == 1
    allow = ("-c", "protocol.file.allow=always")
    git(main, *allow, "submodule", "--quiet", "add", str(work), "inner")
    write(main, {"inner/pools/general.yaml": POOL})
    assert validate.main(["--changed-since", "HEAD", str(main / "inner/classes")]) == 0


def test_line_breaks_of_a_checkout_are_no_change(repo: Path, capsys: Capture) -> None:
    (repo / "pools/general.yaml").write_bytes(POOL.replace("\n", "\r\n").encode())
    assert validate.main(["--changed-since", "main", "."]) == 0
    assert capsys.readouterr().out == "no problem in 0 manifests of 0 files\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = new_repository(tmp_path / "repo", FILES)
    monkeypatch.chdir(made)
    return made


@pytest.mark.parametrize("name", ["sha256", "unknown"])
def test_formats_of_a_repository(name: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repo").mkdir()
    git(tmp_path / "repo", "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    commit(tmp_path / "repo", FILES)
    monkeypatch.chdir(tmp_path / "repo")
    write(tmp_path / "repo", {"pools/general.yaml": WRONG})
    if name == "sha256":
        assert validate.main(["--changed-since", "main", "."]) == 1
        return
    git(tmp_path / "repo", "config", "extensions.objectFormat", name)
    assert validate.main(["--changed-since", "main", "."]) == 2
    assert "extensions.objectformat is 'unknown'; supported are sha1 and sha256" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["link", "pipe", "file", "empty", "config", "head", "index"])
def test_other_layouts_are_refused(repo: Path, capsys: Capture, kind: str) -> None:
    place = repo / ".git"
    inside = {"config": place / "config", "head": place / "HEAD", "index": place / "index"}.get(kind)
    if inside is not None:
        inside.unlink()
        os.mkfifo(inside)
    else:
        place.rename(repo.parent / "elsewhere")
        make: dict[str, Callable[[], object]] = {
            "link": lambda: place.symlink_to(repo.parent / "elsewhere"),
            "pipe": lambda: os.mkfifo(place),
            "file": lambda: place.write_text("x"),
            "empty": lambda: place.mkdir(),
        }
        make[kind]()
    assert validate.main(["--changed-since", "main", "."]) == 2
    words = {
        "link": "this is no folder and no regular file; check out the repository with git itself",
        "pipe": "this is no folder and no regular file; check out the repository with git itself",
        "file": "this is no Git folder and no link to one; check out the repository again",
        "empty": "it has no objects and references; check it out again",
    }
    assert words.get(kind, "cannot be read: this is a named pipe (FIFO)") in capsys.readouterr().err


def _tree(repo: Path, rows: str) -> str:
    made = subprocess.run(["git", "mktree"], cwd=repo, input=rows, capture_output=True, text=True, check=True)
    return made.stdout.strip()


def test_a_commit_with_a_path_out_of_the_folder_is_refused(repo: Path, capsys: Capture) -> None:
    blob = git(repo, "rev-parse", "main:pools/general.yaml")
    tree = bytes.fromhex(blob)
    made = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
        cwd=repo,
        input=b"40000 ..\0" + bytes.fromhex(_tree(repo, f"100644 blob {blob}\tx.yaml\n")) + b"100644 y.yaml\0" + tree,
        capture_output=True,
        check=True,
    )
    evil = git(repo, "commit-tree", made.stdout.decode().strip(), "-m", "x")
    git(repo, "update-ref", "refs/heads/main", evil)
    assert validate.main(["--changed-since", "main", "."]) == 2
    assert "a file with the path '../x.yaml', which Git never writes" in capsys.readouterr().err


def test_a_tree_that_repeats_itself_ends(repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_MOST_OUTPUT", 1 << 20)
    tree = _tree(repo, f"100644 blob {git(repo, 'rev-parse', 'main:README.md')}\tx\n")
    for _ in range(9):
        tree = _tree(repo, "".join(f"040000 tree {tree}\t{name}\n" for name in "abcdefgh"))
    git(repo, "update-ref", "refs/heads/main", git(repo, "commit-tree", tree, "-m", "x"))
    assert validate.main(["--changed-since", "main", "."]) == 2
    assert "git printed more than 1048576 bytes" in capsys.readouterr().err


def test_a_program_has_bounds(tmp_path: Path) -> None:
    def run(script: str, **more: float) -> bounded.Done:
        bounds = bounded.Bounds(1000, **more)  # type: ignore[arg-type]
        return bounded.run(["/bin/sh", "-c", script], str(tmp_path), {}, bounds, given=b"in")

    assert run("/bin/cat; echo x >&2; exit 3") == bounded.Done(3, b"in", b"x\n")
    with pytest.raises(bounded.Exceeded, match=r"sh took longer than 0.2 s"):
        run("/bin/sleep 60 & wait", seconds=0.2)
    with pytest.raises(bounded.Exceeded, match="sh printed more than 1000 bytes"):
        run("while :; do echo xxxxxxxxxxxxxxxxxxx; done")
    assert run("a=x; while :; do a=$a$a; done", memory=1 << 26).code != 0
    with pytest.raises(bounded.Missing):
        bounded.run([str(tmp_path / "none")], str(tmp_path), {}, bounded.Bounds(1))
