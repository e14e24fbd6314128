"""The sample repository on a branch, and what hook, GitHub action and GitLab job tell of a change of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.cluster.binaries import find_binaries
from tests.gitops import pre_commit
from tests.gitops.mistakes import SAMPLE
from tests.gitops.repositories import commit, git, repository
from tests.gitops.runners import Machine, github, gitlab
from tests.sources import ROOT

Told = set[tuple[str, int, str]]


def with_renderers(folder: Path) -> Machine:
    """A machine that has kubectl and Helm. Raises ControlPlaneUnavailable."""
    programs = find_binaries()
    made = Machine(folder)
    for name in ("kubectl", "helm"):
        (made.programs / name).symlink_to(programs / name)
    return made


def checked_out(folder: Path) -> Path:
    """The sample on main, checked out on a branch."""
    shutil.copytree(SAMPLE, folder)
    repository(folder, {})
    pre_commit.configure(folder, {"id": "kerf-validate-changes", "args": ["--changed-since", "main", "."]})
    commit(folder)
    git(folder, "switch", "--quiet", "--create", "work")
    return folder


def told(machine: Machine, repo: Path) -> list[Told]:
    """File, line and rule of all that the hook, the action and the job say, in this order, of what has changed since
    main; each has to fail. It is committed then."""
    git(repo, "add", "--all")
    hook = pre_commit.run(machine, repo)
    assert hook.returncode == 1, hook.stdout
    commit(repo)
    action = github(machine, ROOT / "action.yml", repo, {"changed-since": "main"})
    base = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": git(repo, "rev-parse", "main")}
    job = gitlab(machine, ROOT / "manifests/ci/gitlab-validate.yml", repo, {}, base, "sh")
    assert (action.code, job.code) == (1, 1), (action.output, job.output)
    quality = repo / "kerf-code-quality.json"
    found = [by_text(hook.stdout), by_annotation(action.output), by_code_quality(quality.read_text())]
    quality.unlink()
    return found


def by_text(output: str) -> Told:
    """File, line and rule of each line of the text format."""
    rows = re.findall(r"^(\S+?):(\d+):\d+: .* \[(KERF-[A-Z0-9-]+)\]$", output, re.MULTILINE)
    return {(file, int(line), rule) for file, line, rule in rows}


def by_annotation(output: str) -> Told:
    rows = re.findall(r"^::\w+ file=([^,]+),line=(\d+),.*?title=(KERF-[A-Z0-9-]+)::", output, re.MULTILINE)
    return {(file, int(line), rule) for file, line, rule in rows}


def by_code_quality(text: str) -> Told:
    rows = json.loads(text)
    return {(row["location"]["path"], row["location"]["lines"]["begin"], row["check_name"]) for row in rows}
