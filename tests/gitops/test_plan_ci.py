"""The plan in CI services: no credential for strangers, no rights for code of a pull request, artifacts are data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.sources import ROOT

CI = ROOT / "manifests/ci"
MARK = "<!-- kerf plan -->"


def _read(name: str) -> list[dict[Any, Any]]:
    return list(YAML(typ="safe").load_all(CI / name))


@pytest.fixture
def gh(tmp_path: Path) -> Path:
    """A `gh` that notes its arguments, and knows one pull request; the comment of the plan is in the file `own`."""
    tool = tmp_path / "bin" / "gh"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in */pulls/*) echo abc; exit ;; *--paginate*) cat {tmp_path}/own; exit ;; esac\n'
        f'printf "%s\\n" "$@" > {tmp_path}/arguments\ncp body.md {tmp_path}/posted\n'
    )
    tool.chmod(0o755)
    (tmp_path / "work" / "plan").mkdir(parents=True)
    (tmp_path / "own").write_text("")
    return tmp_path


def _comment(folder: Path, number: str, plan: str, sha: str = "abc") -> subprocess.CompletedProcess[str]:
    """Run the script of the workflow on an artifact."""
    steps = _read("github-plan-comment.yml")[0]["jobs"]["comment"]["steps"]
    script = next(step["run"] for step in steps if step.get("name") == "Comment")
    (folder / "work/plan/number").write_text(number)
    (folder / "work/plan/plan.md").write_text(plan)
    env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "REPOSITORY": "a/b", "HEAD_SHA": sha, "GH_TOKEN": "x"}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder / "work", env=env, capture_output=True, text=True, check=False
    )


def test_a_plan_is_posted(gh: Path) -> None:
    done = _comment(gh, "17\n", "### the plan")
    assert done.returncode == 0, done.stderr
    assert (gh / "arguments").read_text().split("\n")[2:5] == ["--method", "POST", "repos/a/b/issues/17/comments"]
    assert (gh / "posted").read_text() == f"{MARK}\n### the plan"


def test_the_plan_of_a_later_commit_takes_the_place_of_the_first_alone(gh: Path) -> None:
    (gh / "own").write_text("42\n43\n")
    assert _comment(gh, "17\n", "### the plan").returncode == 0
    assert (gh / "arguments").read_text().split("\n")[2:5] == ["--method", "PATCH", "repos/a/b/issues/comments/42"]


def test_a_plan_that_is_no_text_is_posted_as_far_as_it_is(gh: Path) -> None:
    done = _comment(gh, "17\n", "€" * 40_000)
    assert done.returncode == 0, done.stderr
    assert "The plan is longer" in (gh / "posted").read_text(encoding="utf-8")


def test_a_long_plan_is_cut(gh: Path) -> None:
    assert _comment(gh, "17\n", "x" * 200_000).returncode == 0
    posted = (gh / "posted").read_text()
    assert len(posted) < 65_536
    assert "The plan is longer" in posted


@pytest.mark.parametrize("number", ["", "x", "17; rm -rf /", "$(id)", "17\n18", "--repo other/x", "1" * 30])
def test_what_is_no_number_of_a_pull_request_is_refused(gh: Path, number: str) -> None:
    done = _comment(gh, number, "### the plan", sha="abc" if not number.startswith("1" * 30) else "other")
    posted = (gh / "arguments").read_text() if (gh / "arguments").exists() else ""
    assert done.returncode == 1 or posted.split("\n")[4].split("/")[4].isdigit()
    assert "rm" not in posted
    assert "other/x" not in posted


def test_another_commit_than_the_planned_one_is_refused(gh: Path) -> None:
    done = _comment(gh, "17", "### the plan", sha="another")
    assert done.returncode == 1
    assert not (gh / "posted").exists()


@pytest.mark.parametrize("name", ["github-plan.yml", "github-plan-comment.yml"])
def test_no_workflow_has_code_of_a_pull_request_and_rights(name: str) -> None:
    (found,) = _read(name)
    on = found.get("on", found.get(True))
    assert "pull_request_target" not in str(on)
    assert found["permissions"] == {}
    (job,) = found["jobs"].values()
    checks_out = any("checkout" in step.get("uses", "") for step in job["steps"])
    writes = [right for right, level in job["permissions"].items() if level == "write" and right != "id-token"]
    assert not (checks_out and writes)
    expressions = [step["run"] for step in job["steps"] if "run" in step]
    assert all("${{" not in script for script in expressions), "text of a pull request would be part of a script"


def test_strangers_get_no_plan() -> None:
    (found,) = _read("github-plan.yml")
    assert found["jobs"]["plan"]["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
    (comment,) = _read("github-plan-comment.yml")
    same = "github.event.workflow_run.head_repository.full_name == github.repository"
    assert same in comment["jobs"]["comment"]["if"], "the artifact of a fork's workflow has any text"
    _, job = _read("gitlab-plan.yml")
    (rule,) = job["kerf-plan"]["rules"]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID" in rule["if"]


def _asked(script: str, folder: Path, **variables: str) -> list[str]:
    """The arguments of `kerf` in a script, after `--`."""
    tool = folder / "bin" / "kerf"
    tool.parent.mkdir(parents=True)
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\n')
    tool.chmod(0o755)
    env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "RUNNER_TEMP": str(folder), **variables}
    env["GITHUB_STEP_SUMMARY"] = str(folder / "summary")
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, check=True, timeout=30)
    found = (folder / "arguments").read_text().split("\n")[:-1]
    return found[found.index("--") + 1 :]


def test_both_services_take_paths_with_spaces_between_them(tmp_path: Path) -> None:
    (github,) = _read("github-plan.yml")
    script = next(step["run"] for step in github["jobs"]["plan"]["steps"] if step.get("id") == "plan")
    _, gitlab = _read("gitlab-plan.yml")
    paths = "nodepools classes/a.yaml"
    assert _asked(script, tmp_path / "github", PATHS=paths, NUMBER="1") == paths.split()
    (own,) = gitlab["kerf-plan"]["script"]
    assert _asked(own, tmp_path / "gitlab", KERF_PATHS=paths, KERF_SNAPSHOT="a") == paths.split()


def test_the_options_are_those_of_kerf_plan() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kerf.cli.main", "plan", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=_env(),
    )
    for name in ("github-plan.yml", "gitlab-plan.yml"):
        for option in ("--changed-since", "--snapshot", "-o markdown", "--fail-on"):
            assert option in (CI / name).read_text(encoding="utf-8")
            assert option.split()[0] in done.stdout


def _env() -> dict[str, str]:
    from tests.sources import python_path

    return {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "HOME": "/nonexistent"}
