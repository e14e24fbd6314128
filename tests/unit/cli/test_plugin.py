"""`kubectl kerf`: kubectl finds the program and its completion, and texts name it so."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from shutil import which

import pytest

from kerf.cli import terminal
from tests.sources import ROOT, python_path

SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs of the wheel, as an installation writes them."""
    folder = tmp_path_factory.mktemp("programs")
    for name, target in SCRIPTS.items():
        module, _, function = target.partition(":")
        text = f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def run(programs: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": python_path(), "HOME": str(programs)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own, stdin=subprocess.DEVNULL)


def test_the_wheel_has_the_programs_that_kubectl_looks_for() -> None:
    assert {*SCRIPTS} == {"kerf", terminal.PLUGIN, terminal.COMPLETION}
    for target in SCRIPTS.values():
        module, _, function = target.partition(":")
        assert callable(getattr(import_module(module), function))


def test_the_image_has_them_too() -> None:
    assert f"for program in {' '.join(SCRIPTS)}; do" in (ROOT / "Dockerfile").read_text()


@pytest.mark.skipif(which("kubectl") is None, reason="needs kubectl")
def test_kubectl_finds_it_and_its_errors_name_the_plugin(programs: Path) -> None:
    done = run(programs, "kubectl", "kerf", "events", "nod/x")
    assert done.returncode == 2 or "exit status 2" in done.stderr
    assert "kubectl kerf events: 'nod' is no kind" in done.stderr


def test_its_help_names_the_plugin_and_the_program_in_the_pod_stays(programs: Path) -> None:
    done = run(programs, "kubectl-kerf", "status", "-h")
    assert done.returncode == 0
    assert done.stdout.startswith("kubectl kerf status [--url URL]")
    assert "kubectl exec -n NAMESPACE deploy/NAME -- kerf status" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("validate", "--strickt", "x"), "kubectl kerf validate: error: "),
        (("bogus",), "Usage: kubectl kerf "),
        (("demo", "--bogus"), "Usage: kubectl kerf demo"),
    ],
)
def test_errors_of_all_parsers_name_the_plugin(programs: Path, words: tuple[str, ...], said: str) -> None:
    done = run(programs, "kubectl-kerf", *words)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("val",), ["validate", ":4"]),
        (("events", "nodec"), ["nodeclaim", ":4"]),
        (("validate", "x.y"), [":0"]),
    ],
)
def test_kubectl_completes_its_words(programs: Path, words: tuple[str, ...], lines: list[str]) -> None:
    assert run(programs, terminal.COMPLETION, *words).stdout.splitlines() == lines


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("kerf why: no", "kubectl kerf why: no"),
        ("see `kerf status --help`", "see `kubectl kerf status --help`"),
        ("kubectl exec deploy/kerf -- kerf status", "kubectl exec deploy/kerf -- kerf status"),
        ("namespace kerf before", "namespace kerf before"),
        ("/usr/bin/kerf run", "/usr/bin/kerf run"),
    ],
)
def test_only_commands_are_spelled_otherwise(monkeypatch: pytest.MonkeyPatch, text: str, spelled: str) -> None:
    assert terminal.spelled(text) == text
    monkeypatch.setattr(sys, "argv", [f"/usr/local/bin/{terminal.PLUGIN}"])
    assert terminal.spelled(text) == spelled
