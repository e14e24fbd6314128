"""docs/gitops-pull-requests.md does what it says: its commands, its workflow, its GitLab job and its hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from tests import guides
from tests.gitops import pre_commit
from tests.gitops.repositories import IDENTITY, commit, git, repository
from tests.gitops.runners import Machine, github, gitlab
from tests.sources import ROOT

TEXT: Final = (ROOT / "docs" / "gitops-pull-requests.md").read_text(encoding="utf-8")
FILES: Final = guides.files(TEXT)
POOL: Final = "pools/general.yaml"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A checked-out pull request: the merge of main and a branch on which the pool has another name."""
    made = repository(tmp_path / "repo", {POOL: FILES[POOL]})
    git(made, "switch", "--quiet", "--create", "work")
    commit(made, {POOL: FILES[POOL].replace("  name: general\nspec", "  name: standard\nspec")})
    git(made, "switch", "--quiet", "main")
    git(made, "merge", "--quiet", "--no-ff", "--message", "x", "work")
    return made


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    folder = repository(tmp_path / "guide", {"README.md": "x"})
    assert guides.played(TEXT, folder, IDENTITY) == TEXT


def test_its_workflow(repo: Path, machine: Machine) -> None:
    steps = yaml.safe_load(FILES[".github/workflows/kerf.yaml"])["jobs"]["validate"]["steps"]
    (step,) = [step for step in steps if "/kerf@" in step["uses"]]
    done = github(machine, ROOT / "action.yml", repo, step["with"])
    assert (done.code, "KERF-DIFF-301" in done.output) == (0, True), done.output


def test_its_job(repo: Path, machine: Machine) -> None:
    (include,) = yaml.safe_load(FILES[".gitlab-ci.yaml"])["include"]
    base = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": git(repo, "rev-parse", "HEAD^1")}
    done = gitlab(machine, ROOT / include["file"], repo, include["inputs"], base, "sh")
    assert (done.code, "KERF-DIFF-301" in done.output) == (0, True), done.output
    assert machine.installed[-1].endswith(include["inputs"]["package"])


def test_its_hooks(repo: Path, machine: Machine) -> None:
    (source,) = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"]
    git(repo, "update-ref", "refs/remotes/origin/main", "HEAD^1")
    pre_commit.configure(repo, *source["hooks"])
    commit(repo)
    done = pre_commit.run(machine, repo, "--all-files")
    assert (done.returncode, done.stdout.count("Failed"), "KERF-DIFF-301" in done.stdout) == (1, 1, True), done.stdout
