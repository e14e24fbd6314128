"""`kerf validate --changed-since`: what differs from a commit of Git is judged, and what the change means is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kerf.cli.verbs import validate
from tests.gitops.repositories import commit, git, repository, write
from tests.sources import python_path

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
spec:
  limits: {cpu: "1000"}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}
      terminationGracePeriod: 24h
      requirements:
      - key: karpenter.sh/capacity-type
        operator: In
        values: [spot, on-demand]
"""
CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: general
spec:
  role: example
  amiSelectorTerms: [{alias: al2023@v20250519}]
  subnetSelectorTerms: [{tags: {discovery: example}}]
  securityGroupSelectorTerms: [{tags: {discovery: example}}]
"""
BATCH = POOL.replace("name: general\nspec", "name: batch\nspec").replace('"1000"', '"10"').replace("[spot, on", "[on")
WRONG = POOL.replace("24h", "1d")
FILES = {"pools/general.yaml": POOL, "classes/general.yaml": CLASS, "README.md": "x"}

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = repository(tmp_path / "repo", FILES)
    monkeypatch.chdir(made)
    return made


def told(capsys: Capture, *arguments: str, ref: str = "main") -> list[tuple[str, int, str]]:
    """File, line and rule of what is told of the changes."""
    assert validate.main(["--changed-since", ref, "--format", "json", *(arguments or (".",))]) < 2
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["problems"]
    return [(row["file"], row["line"], row["rule"]) for row in found]


def refusal(capsys: Capture, *arguments: str) -> str:
    assert validate.main(list(arguments)) == 2
    return capsys.readouterr().err


def test_nothing_has_changed(repo: Path, capsys: Capture) -> None:
    assert validate.main(["--changed-since", "main", "."]) == 0
    assert capsys.readouterr().out == "no problem in 0 manifests of 0 files\n"


def test_only_objects_that_differ_are_judged(repo: Path, capsys: Capture) -> None:
    commit(repo, {"pools/old.yaml": WRONG.replace("name: general\nspec", "name: old\nspec")})
    write(repo, {"pools/old.yaml": (repo / "pools/old.yaml").read_text() + "---\n" + WRONG.replace("l\nsp", "l2\nsp")})
    assert [row for row in told(capsys) if "SCHEMA" in row[2]] == [("pools/old.yaml", 25, "KERF-SCHEMA-PATTERN")]


@pytest.mark.parametrize("stage", ["committed", "staged", "not staged", "untracked", "ignored"])
def test_what_counts_is_what_is_on_the_disk(repo: Path, capsys: Capture, stage: str) -> None:
    git(repo, "switch", "--quiet", "--create", "work")
    name = "pools/new.yaml" if stage in ("untracked", "ignored") else "pools/general.yaml"
    write(repo, {name: WRONG} | ({".gitignore": "new.yaml\n"} if stage == "ignored" else {}))
    if stage == "committed":
        commit(repo)
    elif stage == "staged":
        git(repo, "add", "--all")
    assert (name, 10, "KERF-SCHEMA-PATTERN") in told(capsys)


def test_what_others_did_meanwhile_is_no_change_of_this_branch(repo: Path, capsys: Capture) -> None:
    git(repo, "switch", "--quiet", "--create", "work")
    git(repo, "switch", "--quiet", "main")
    commit(repo, {"pools/batch.yaml": BATCH})
    git(repo, "switch", "--quiet", "work")
    assert told(capsys) == []


def test_a_renamed_pool_in_a_renamed_file(repo: Path, capsys: Capture) -> None:
    git(repo, "mv", "pools/general.yaml", "pools/standard.yaml")
    write(repo, {"pools/standard.yaml": POOL.replace("name: general\nspec", "name: standard\nspec")})
    assert told(capsys) == [("pools/standard.yaml", 4, "KERF-DIFF-301")]
    assert validate.main(["--changed-since", "main", "."]) == 0
    assert "this renames NodePool general: a cluster sees another NodePool" in capsys.readouterr().out
    assert validate.main(["--changed-since", "main", ".", "--strict"]) == 1


def test_a_pool_that_only_moved_to_another_file_is_no_change(repo: Path, capsys: Capture) -> None:
    git(repo, "mv", "pools/general.yaml", "all.yaml")
    write(repo, {"all.yaml": "# ours\n" + POOL})
    assert told(capsys) == []


def test_a_removed_pool_is_told_where_it_stood(repo: Path, capsys: Capture) -> None:
    commit(repo, {"pools/general.yaml": POOL + "---\n" + BATCH})
    write(repo, {"pools/general.yaml": "# one\n# two\n" + BATCH})
    assert told(capsys) == [("pools/general.yaml", 1, "KERF-DIFF-302")]
    write(repo, {"pools/general.yaml": "# one\n" + POOL + "# two\n"})
    assert told(capsys) == [("pools/general.yaml", 16, "KERF-DIFF-302")]
    (repo / "pools/general.yaml").unlink()
    assert told(capsys) == [("pools/general.yaml", 1, "KERF-DIFF-302"), ("pools/general.yaml", 16, "KERF-DIFF-302")]


def test_what_a_removal_breaks_elsewhere_is_told_of_what_did_not_change(repo: Path, capsys: Capture) -> None:
    other = CLASS.replace("name: general", "name: other").replace("role: example", "role: {}")
    commit(repo, {"classes/other.yaml": other.replace("{}", "example"), "pools/batch.yaml": BATCH})
    (repo / "classes/general.yaml").unlink()
    assert told(capsys) == [
        ("classes/general.yaml", 1, "KERF-DIFF-322"),
        ("pools/batch.yaml", 9, "KERF-SET-301"),
        ("pools/general.yaml", 9, "KERF-SET-301"),
    ]


def test_a_change_that_no_cluster_takes_is_an_error(repo: Path, capsys: Capture) -> None:
    write(repo, {"pools/general.yaml": POOL.replace("spec:\n  limits", "spec:\n  replicas: 3\n  limits", 1)})
    assert "KERF-NP-001" in [rule for _, _, rule in told(capsys)]
    assert validate.main(["--changed-since", "main", "."]) == 1


def test_an_exception_in_the_file_covers_what_the_change_means(repo: Path, capsys: Capture) -> None:
    text = POOL.replace("24h", "12h")
    write(repo, {"pools/general.yaml": text})
    assert told(capsys) == [("pools/general.yaml", 10, "KERF-DIFF-303")]
    write(repo, {"pools/general.yaml": text.replace("12h", "12h  # kerf:ignore KERF-DIFF-303 announced for Monday")})
    assert told(capsys) == []
    write(repo, {"pools/general.yaml": POOL.replace("24h", "24h  # kerf:ignore KERF-DIFF-303 announced")})
    assert told(capsys) == []
    (repo / "pools/general.yaml").unlink()
    assert told(capsys, ".", "--ignore", "KERF-DIFF-302") == []


def test_of_a_file_that_cannot_be_read_nothing_is_said_to_be_removed(repo: Path, capsys: Capture) -> None:
    write(repo, {"pools/general.yaml": "a: b: c\n"})
    assert validate.main(["--changed-since", "main", "."]) == 2
    assert "KERF-DIFF" not in capsys.readouterr().out


def test_an_unreadable_file_that_was_so_before_is_not_told(repo: Path, capsys: Capture) -> None:
    commit(repo, {"chart/templates/a.yaml": "a: {{ .Values.a }}\n"})
    assert told(capsys) == []


def test_paths_say_what_is_looked_at(repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repo, {"pools/batch.yaml": BATCH, "pools/.hidden/a.yaml": BATCH, "pools/a.txt": BATCH})
    for name in ("pools/batch.yaml", "pools/.hidden/a.yaml", "pools/a.txt"):
        (repo / name).unlink()
    gone = [("pools/batch.yaml", 1, "KERF-DIFF-302")]
    assert told(capsys, "classes") == []
    assert told(capsys, "pools/batch.yaml") == gone
    assert told(capsys, "pools/*.yaml") == gone
    assert told(capsys, "pools") == gone
    (repo / "pools/general.yaml").unlink()
    assert len(told(capsys, "pools")) == 2
    monkeypatch.chdir(repo / "classes")
    assert told(capsys, "../pools/batch.yaml") == [("../pools/batch.yaml", 1, "KERF-DIFF-302")]
    assert "nowhere: no such file or folder" in refusal(capsys, "--changed-since", "main", "nowhere")


def test_names_that_are_odd(repo: Path, capsys: Capture) -> None:
    commit(repo, {'pools/é "x"\n.yaml': BATCH})
    (repo / 'pools/é "x"\n.yaml').unlink()
    assert told(capsys) == [('pools/é "x"\n.yaml', 1, "KERF-DIFF-302")]


def test_links_of_the_earlier_commit_are_passed_over(repo: Path, capsys: Capture) -> None:
    (repo / "link.yaml").symlink_to("pools/general.yaml")
    commit(repo)
    (repo / "link.yaml").unlink()
    assert told(capsys) == []


def test_outside_of_a_repository(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.yaml": POOL})
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    words = refusal(capsys, "--changed-since", "main", str(tmp_path))
    assert words.startswith(f"kerf validate: --changed-since main: {tmp_path}: not a git repository")


def test_two_repositories(repo: Path, tmp_path: Path, capsys: Capture) -> None:
    other = repository(tmp_path / "other", FILES)
    assert "is not in the repository" in refusal(capsys, "--changed-since", "main", ".", str(other))


def test_a_commit_that_there_is_not(repo: Path, tmp_path: Path, capsys: Capture) -> None:
    assert refusal(capsys, "--changed-since", "nowhere", ".").endswith(f"nowhere is no commit of {repo}\n")
    assert "is no commit of" in refusal(capsys, "--changed-since=--all", ".")
    git(tmp_path, "clone", "--quiet", str(repo), "clone")
    git(tmp_path / "clone", "switch", "--quiet", "--create", "work")
    git(tmp_path / "clone", "branch", "--quiet", "--delete", "main")
    assert "did you mean origin/main?" in refusal(capsys, "--changed-since", "main", str(tmp_path / "clone"))


def test_a_shallow_clone(repo: Path, tmp_path: Path, capsys: Capture) -> None:
    first = git(repo, "rev-parse", "HEAD")
    commit(repo)
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repo}", "clone")
    assert "the clone is shallow; fetch more of it" in refusal(
        capsys, "--changed-since", first, str(tmp_path / "clone")
    )


def test_branches_that_have_nothing_in_common(repo: Path, capsys: Capture) -> None:
    git(repo, "switch", "--quiet", "--orphan", "other")
    commit(repo, FILES | {"README.md": "another beginning"})
    assert "main and HEAD have no commit in common" in refusal(capsys, "--changed-since", "main", ".")


def test_without_git(repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "git is not installed" in refusal(capsys, "--changed-since", "main", ".")


def test_standard_input_has_no_history(repo: Path, capsys: Capture) -> None:
    assert "standard input has no history" in refusal(capsys, "--changed-since", "main", "-")


def test_in_a_hook_of_git_itself(repo: Path) -> None:
    hook = repo / ".git/hooks/pre-commit"
    program = (
        f"PYTHONPATH={python_path()} {sys.executable} -m kerf.cli.main validate --strict --changed-since HEAD . >&2"
    )
    hook.write_text(f"#!/bin/sh\n{program}\n")
    hook.chmod(0o755)
    write(repo, {"pools/general.yaml": POOL.replace("24h", "12h")})
    with pytest.raises(subprocess.CalledProcessError) as refused:
        git(repo, "commit", "--quiet", "--all", "--message", "x")
    assert "[KERF-DIFF-303]" in refused.value.stderr
