"""What runs CI jobs, as far as our actions and jobs use it: inputs, variables, files for results, and the shell.

Nothing is installed: `python3 -m venv` and `pip` are noted down, and `kerf` is the one of these sources.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sources import python_path

_PYTHON: Final = """\
#!/bin/sh
echo "$*" >> "{noted}"
[ "$2" = venv ] || exit 0
mkdir -p "$3/bin"
cp "{programs}/python3" "$3/bin/python"
cp "{programs}/kerf" "$3/bin/"
"""
_KERF: Final = '#!/bin/sh\nPYTHONPATH="{path}" exec "{python}" -m kerf.cli.main "$@"\n'


@dataclass(frozen=True, slots=True)
class Done:
    """A job that has ended: its exit code, what it printed, and what a person sees as its summary."""

    code: int
    output: str
    summary: str = ""
    outputs: Mapping[str, str] | None = None


class Machine:
    """A machine for jobs, with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder, folder / "programs"
        self.programs.mkdir(parents=True)
        self._noted = folder / "noted"
        self._noted.touch()
        values = {"noted": self._noted, "programs": self.programs, "path": python_path(), "python": sys.executable}
        for name, text in (("python3", _PYTHON), ("kerf", _KERF)):
            (self.programs / name).write_text(text.format(**values))
            (self.programs / name).chmod(0o755)

    @property
    def installed(self) -> list[str]:
        """What was asked of Python, in order."""
        return self._noted.read_text().splitlines()

    def shell(self, shell: list[str], script: str, where: Path, variables: Mapping[str, str]) -> Done:
        path = f"{self.programs}:{os.environ['PATH']}"
        done = subprocess.run(
            [*shell, script],
            cwd=where,
            env={"HOME": str(self.folder), **os.environ, **variables, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout)


def github(machine: Machine, action: Path, where: Path, given: Mapping[str, str]) -> Done:
    """Run a composite action in a checked-out repository, with these inputs; steps that use other actions are left
    out."""
    about = yaml.safe_load(action.read_text())
    unknown = set(given) - set(about["inputs"])
    assert not unknown, unknown
    inputs = {name: str(given.get(name, row["default"])) for name, row in about["inputs"].items()}
    files = {name: machine.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    variables = {"RUNNER_TEMP": str(machine.folder), "GITHUB_ACTION_PATH": str(action.parent), "GITHUB_ACTIONS": "true"}
    variables |= {name: str(file) for name, file in files.items()}
    printed, code = "", 0
    for step in about["runs"]["steps"]:
        if "run" not in step or code:
            continue
        assert "${{" not in step["run"], "text of a pull request would be part of a script"
        own = {name: _filled(text, inputs) for name, text in step.get("env", {}).items()}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
        done = machine.shell(shell, step["run"], where, variables | own)
        printed, code = printed + done.output, done.code
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return Done(code, printed, files["GITHUB_STEP_SUMMARY"].read_text(), outputs)


def _filled(text: str, inputs: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)


def gitlab(
    machine: Machine, template: Path, where: Path, given: Mapping[str, Any], variables: Mapping[str, str], shell: str
) -> Done:
    """Run the only job of a template with these inputs and the variables that the service would set."""
    header, text = template.read_text().split("\n---\n")
    known = yaml.safe_load(header)["spec"]["inputs"]
    unknown = set(given) - set(known)
    assert not unknown, unknown
    inputs = {name: given.get(name, row["default"]) for name, row in known.items()}
    words = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in inputs.items()}
    filled = re.sub(r"\$\[\[ inputs\.([a-z-]+) \]\]", lambda found: words[found[1]], text)
    ((_, job),) = yaml.safe_load(filled).items()
    own = {name: str(value) for name, value in job["variables"].items()}
    script = "\n".join([*job["before_script"], *job["script"]])
    return machine.shell([shell, "-e", "-c"], script, where, {**own, **variables})
