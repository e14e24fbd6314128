"""Our hooks, run by pre-commit: what they are given, what they let through and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.gitops import pre_commit
from tests.gitops.repositories import commit, git, repository, write
from tests.gitops.runners import Machine
from tests.sources import ROOT

EXAMPLE: Final = (ROOT / "manifests" / "examples" / "general-purpose.yaml").read_text()
#: Neither is for the hooks: a template, which is no YAML, and a file of another kind.
REST: Final = {"chart/templates/pool.yaml": "{{ .Values.pool }}: [\n", "README.md": "kind: NodePool\n"}
WRONG: Final = EXAMPLE.replace("expireAfter: 720h", "expireAfter: 30d")
DRIFTING: Final = EXAMPLE.replace("terminationGracePeriod: 24h", "terminationGracePeriod: 1h")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"pools/general.yaml": EXAMPLE, **REST})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def test_everything_in_order(repo: Path, machine: Machine) -> None:
    pre_commit.configure(repo, *({"id": name} for name in pre_commit.HOOKS))
    commit(repo)
    done = pre_commit.run(machine, repo, "--all-files")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Passed") == len(pre_commit.HOOKS)
    assert "no problem in 2 manifests of 2 files" in done.stdout  # the configuration is one of them


def test_a_wrong_pool_is_not_committed(repo: Path, machine: Machine) -> None:
    pre_commit.configure(repo, {"id": "kerf-validate"})
    write(repo, {"pools/general.yaml": WRONG})
    git(repo, "add", "--all")
    done = pre_commit.run(machine, repo)
    assert done.returncode == 1
    assert "pools/general.yaml:14:20: error: NodePool general: spec.template.spec.expireAfter" in done.stdout


def test_what_is_not_staged_is_not_looked_at(repo: Path, machine: Machine) -> None:
    pre_commit.configure(repo, {"id": "kerf-validate-changes"})
    commit(repo)
    write(repo, {"pools/general.yaml": WRONG})
    done = pre_commit.run(machine, repo)
    assert (done.returncode, "no problem in 0 manifests" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("changed", "told"),
    [(DRIFTING, "pools/general.yaml:15:31: warning: NodePool general"), (None, "NodePool general is removed")],
    ids=["drift", "removal"],
)
def test_what_a_commit_means_for_nodes(repo: Path, machine: Machine, changed: str | None, told: str) -> None:
    pre_commit.configure(repo, {"id": "kerf-validate-changes"})
    commit(repo)
    if changed is None:
        (repo / "pools/general.yaml").unlink()
    else:
        write(repo, {"pools/general.yaml": changed})
    git(repo, "add", "--all")
    done = pre_commit.run(machine, repo)
    assert (done.returncode, told in done.stdout) == (1, True), done.stdout
