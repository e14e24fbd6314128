"""Somebody at a terminal, who types what guides say: kubectl, Helm, `kerf`, and as much of `aws` as they use."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.sources import python_path

from .control_plane import ControlPlane
from .installation import KERF

_AWS: Final = Path(__file__).parent / "aws_command.py"


class Person:
    """Whose working directory is `place`; `programs` is a folder for what is on the PATH before all else.

    `variables` are added to the environment, and so may be others later.
    """

    def __init__(self, control_plane: ControlPlane, programs: Path, place: Path, variables: Mapping[str, str]) -> None:
        self.variables = {"KUBECONFIG": str(control_plane.kubeconfig), "PYTHONPATH": python_path(), **variables}
        self._place, self._programs = place, programs
        self._path = f"{programs}:{control_plane.binaries}:{os.environ['PATH']}"
        self._helm = control_plane.binaries / "helm"
        programs.mkdir(exist_ok=True)
        self._write("kerf", f'exec {shlex.join(KERF)} "$@"')
        self._write("aws", f'exec {shlex.quote(sys.executable)} {shlex.quote(str(_AWS))} "$@"')

    def with_values(self, file: Path) -> None:
        """From now on `helm install kerf …` has these values, too: they tie the chart to a plane without pods."""
        more = f'case "$1 $2" in "install kerf") exec {self._helm} "$@" --values {shlex.quote(str(file))};; esac'
        self._write("helm", f'{more}\nexec {self._helm} "$@"')

    def run(self, command: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """What became of a command; what it printed, errors included, is its `stdout`."""
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self._place,
            env={**os.environ, **self.variables, "PATH": self._path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )

    def does(self, command: str, timeout: float = 120) -> str:
        """What a command prints that has to succeed."""
        done = self.run(command, timeout)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def _write(self, name: str, script: str) -> None:
        (self._programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (self._programs / name).chmod(0o755)
