"""What the process of the controller loads: it lives for months in every cluster, on a node that others pay for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sources import python_path

#: Libraries of other verbs, and those that other libraries load if they are installed.
UNUSED = ("rich", "typer", "click", "flask", "gunicorn", "jsonschema", "numpy.ma", "scipy", "pandas")


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Names of the modules of `kerf run`, up to its first error: there is no such cluster."""
    program = (
        "import sys; from kerf.cli import main\n"
        "sys.argv = ['kerf', 'run', '--kubeconfig', '/nowhere', '--cluster-name', 'a', '--aws-region', 'us-west-2']\n"
        "try: main.main()\n"
        "except SystemExit: print(*sys.modules, file=sys.__stdout__)"
    )
    environment = {**os.environ, "PYTHONPATH": python_path()}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "cannot start" in done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("library", UNUSED)
def test_the_controller_loads_no_library_that_it_does_not_use(loaded: set[str], library: str) -> None:
    assert "kerf.runtime.program" in loaded
    assert not {name for name in loaded if name == library or name.startswith(f"{library}.")}
