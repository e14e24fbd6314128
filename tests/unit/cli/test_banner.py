"""A comment banner is read in good time by each verb."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import ROOT, python_path

BANNER = f"{'#' * 79}\n# Default NodePool\n{'#' * 79}\n"


@pytest.mark.parametrize("verb", ["validate", "default", "convert"])
def test_a_banner_is_read(verb: str, tmp_path: Path) -> None:
    text = BANNER + (ROOT / "manifests/examples/general-purpose.yaml").read_text()
    (tmp_path / "a.yaml").write_text(text)
    command = [sys.executable, "-m", "kerf.cli.main", verb, "a.yaml"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": python_path()}, capture_output=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert verb == "validate" or done.stdout.decode().startswith(BANNER)
