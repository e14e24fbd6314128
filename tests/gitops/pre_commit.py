"""pre-commit itself, with our hooks and nothing installed: the hooks of `.pre-commit-hooks.yaml`, run by these sources.

A hook's environment is what pre-commit would build from the repository that it clones; here it is a program on the
PATH. Which files a hook is given, when it is left out and how it ends is pre-commit's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.gitops.runners import Machine
from tests.sources import ROOT

HOOKS: Final = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


def configure(repo: Path, *hooks: Mapping[str, Any]) -> None:
    """Write `.pre-commit-config.yaml` with hooks, as a user's configuration names them: an `id`, and what differs."""
    rows = [{**HOOKS[hook["id"]], **hook, "language": "system"} for hook in hooks]
    config = {"repos": [{"repo": "local", "hooks": rows}]}
    (repo / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))


def run(machine: Machine, repo: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pre-commit run` in a repository: what is staged, or with `--all-files` all; output and errors together."""
    own = {"PRE_COMMIT_HOME": str(machine.folder / "store"), "PATH": f"{machine.programs}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--verbose", "--color=never", *arguments],
        cwd=repo,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
