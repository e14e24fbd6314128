"""The GitHub action and the GitLab job, step by step as their services run them, on a branch that was pushed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
import yaml

from tests.gitops.repositories import commit, git, repository
from tests.gitops.runners import Machine, github, gitlab
from tests.sources import ROOT

ACTION: Final = ROOT / "action.yml"
JOB: Final = ROOT / "manifests" / "ci" / "gitlab-validate.yml"
EXAMPLE: Final = (ROOT / "manifests" / "examples" / "general-purpose.yaml").read_text()


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A branch with a commit more than main has: a wrong pool, and a change that replaces all nodes."""
    repo = repository(tmp_path / "repo", {"clusters/prod/pools.yaml": EXAMPLE, "old.yaml": wrong("left-alone")})
    git(repo, "switch", "--quiet", "--create", "work")
    grace = EXAMPLE.replace("terminationGracePeriod: 24h", "terminationGracePeriod: 1h")
    commit(repo, {"clusters/prod/pools.yaml": grace, "clusters/prod/a b.yaml": wrong("new")})
    return repo


def wrong(name: str) -> str:
    return f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec: {{wieght: 1}}\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def test_the_action_checks_what_a_pull_request_changes(machine: Machine, pull_request: Path) -> None:
    done = github(machine, ACTION, pull_request, {"changed-since": "main"})
    assert (done.code, done.outputs) == (1, {"exit-code": "1"})
    commands = [line.split("::")[1].split(",title=")[0] for line in done.output.splitlines() if line.startswith("::")]
    assert "error file=clusters/prod/a b.yaml,line=4,col=8,endLine=4,endColumn=14" in commands
    assert "KERF-DIFF-303" in done.output
    assert "old.yaml" not in done.output
    assert done.summary.startswith("### kerf validate\n\n    clusters/prod/a b.yaml:3:")
    log = json.loads((pull_request / "kerf.sarif").read_text())
    assert {row["ruleId"] for row in log["runs"][0]["results"]} >= {"KERF-SCHEMA-UNKNOWN", "KERF-DIFF-303"}


def test_the_action_installs_what_it_came_with(machine: Machine, pull_request: Path) -> None:
    github(machine, ACTION, pull_request, {})
    made, installed = machine.installed[:2]
    assert made == f"-m venv {machine.folder}/kerf"
    *_, constraint, path, package = installed.split()
    assert (constraint, Path(path), Path(package)) == ("--constraint", ROOT / "constraints.txt", ROOT)
    assert Path(path).is_file()


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({"paths": "clusters/prod/pools.yaml\nold.yaml\n"}, 1, "NodePool left-alone"),
        ({"paths": "clusters/prod/pools.yaml", "changed-since": "main", "strict": "true"}, 1, "KERF-DIFF-303"),
        (
            {"paths": "old.yaml", "ignore": "KERF-SCHEMA-UNKNOWN\nKERF-SCHEMA-REQUIRED"},
            0,
            "in 1 manifest of 1 file",
        ),
        ({"paths": "old.yaml", "render": "sometimes"}, 2, "--render: invalid choice: 'sometimes'"),
        ({"changed-since": "nowhere"}, 2, "nowhere is no commit of"),
        ({"paths": "--strict"}, 2, "--strict: no such file or folder"),
        ({"paths": '$(touch hacked)"; touch hacked'}, 2, "no such file or folder"),
        ({"catalogue": "nowhere.json"}, 2, "--catalogue nowhere.json: No such file"),
    ],
)
def test_the_inputs_of_the_action(
    machine: Machine, pull_request: Path, inputs: dict[str, str], code: int, words: str
) -> None:
    done = github(machine, ACTION, pull_request, inputs)
    assert done.code == code, done.output
    assert words in done.output
    assert not (pull_request / "hacked").exists()


def test_the_action_without_a_file_for_code_scanning(machine: Machine, pull_request: Path) -> None:
    github(machine, ACTION, pull_request, {"sarif": ""})
    assert not (pull_request / "kerf.sarif").exists()


def test_what_is_wrong_is_uploaded_too() -> None:
    (step,) = [step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if "uses" in step]
    assert step["if"].startswith("${{ !cancelled() && inputs.upload-sarif == 'true'")
    assert step["with"]["sarif_file"] == "${{ inputs.sarif }}"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_job_checks_what_a_merge_request_changes(machine: Machine, pull_request: Path, shell: str) -> None:
    base = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": git(pull_request, "rev-parse", "main")}
    done = gitlab(machine, JOB, pull_request, {"paths": "clusters"}, base, shell)
    assert done.code == 1, done.output
    entries: list[dict[str, Any]] = json.loads((pull_request / "kerf-code-quality.json").read_text())
    assert {(row["location"]["path"], row["check_name"]) for row in entries} >= {
        ("clusters/prod/a b.yaml", "KERF-SCHEMA-UNKNOWN"),
        ("clusters/prod/pools.yaml", "KERF-DIFF-303"),
    }
    suites = ElementTree.parse(pull_request / "kerf-junit.xml").getroot()
    assert suites.get("failures") != "0"
    assert machine.installed == ["-m pip install --quiet --disable-pip-version-check kerf"]


def test_the_job_on_a_branch_checks_everything(machine: Machine, pull_request: Path) -> None:
    done = gitlab(machine, JOB, pull_request, {"paths": "old.yaml clusters/prod/pools.yaml"}, {}, "sh")
    assert (done.code, "NodePool left-alone" in done.output, "DIFF" in done.output) == (1, True, False)
    base = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "main"}
    done = gitlab(machine, JOB, pull_request, {"paths": "old.yaml", "changes-only": False}, base, "sh")
    assert "NodePool left-alone" in done.output
    options = {"paths": "clusters/prod/pools.yaml", "options": "--strict"}
    assert gitlab(machine, JOB, pull_request, {"paths": "clusters/prod/pools.yaml"}, base, "sh").code == 0
    assert gitlab(machine, JOB, pull_request, options, base, "sh").code == 1


def test_the_reports_of_the_job_are_those_that_it_writes() -> None:
    job = yaml.safe_load(JOB.read_text().split("\n---\n")[1])["kerf-validate"]
    reports = job["artifacts"]["reports"]
    assert job["artifacts"]["when"] == "always"
    for form, name in (("gitlab", reports["codequality"]), ("junit", reports["junit"])):
        assert f"--write={form}={name}" in job["script"][0]
    assert job["variables"]["GIT_DEPTH"] == "0"
