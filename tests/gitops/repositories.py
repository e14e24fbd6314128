"""Small Git repositories for tests, with nobody's own configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

#: Who commits, and no settings of the machine.
IDENTITY: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str) -> str:
    """What Git prints, in a folder. Raises CalledProcessError when it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | IDENTITY, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def commit(folder: Path, files: dict[str, str] | None = None) -> str:
    """Write files and commit all that has changed; the commit."""
    write(folder, files or {})
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path, files: dict[str, str]) -> Path:
    """A new repository with one commit on the branch main."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, files)
    return folder
