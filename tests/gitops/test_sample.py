"""A repository of three teams, with kustomize and a Helm chart: sound as it is, and what is told of a change.

With the real kubectl (for kustomize) and Helm, built with the control plane. What becomes of its mistakes, from the
editor to the cluster, is shown with Flux (tests/cluster/test_flux.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.binaries import ControlPlaneUnavailable
from tests.gitops.checks import by_annotation, checked_out, with_renderers
from tests.gitops.mistakes import MISTAKES
from tests.gitops.repositories import commit, git
from tests.gitops.runners import Machine, github
from tests.sources import ROOT

pytestmark = pytest.mark.cluster


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    try:
        return with_renderers(tmp_path / "machine")
    except ControlPlaneUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return checked_out(tmp_path / "repo")


def test_it_is_sound(machine: Machine, repo: Path) -> None:
    done = github(machine, ROOT / "action.yml", repo, {"strict": "true"})
    assert done.code == 0, done.output
    assert "in 9 manifests of" in done.output
    done = github(machine, ROOT / "action.yml", repo, {"changed-since": "main"})
    assert (done.code, done.output) == (0, "no problem in 0 manifests of 0 files\n")


def test_what_was_wrong_before_is_not_told_of_a_change_elsewhere(machine: Machine, repo: Path) -> None:
    for mistake in MISTAKES:
        mistake.make(repo)
    commit(repo)
    git(repo, "branch", "--quiet", "--force", "main", "HEAD")
    pool = repo / "payments/overlays/staging/kustomization.yaml"
    pool.write_text(pool.read_text().replace("168h", "24h"))
    done = github(machine, ROOT / "action.yml", repo, {"changed-since": "main"})
    assert {(file, rule) for file, _, rule in by_annotation(done.output)} >= {
        ("payments/overlays/staging/kustomization.yaml", "KERF-DIFF-307")
    }
    assert "search/" not in done.output
    assert "data/" not in done.output
    assert "overlays/prod" not in done.output
