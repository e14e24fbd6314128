"""A lane: a Python with Kerf's wheel and its dependencies, outside of the repository."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import which
from typing import Final

from tests.go_build import fingerprint
from tests.lanes.cases import Case
from tests.sources import ROOT

PYTHONS: Final = ("3.11", "3.12", "3.13")
NEWEST, PINNED = "newest", "pinned"
FOLDER: Final = ROOT / ".cache/lanes"
_SECONDS: Final = 600.0


class LaneMissing(Exception):
    """The machine lacks the Python of a lane, or its packages cannot be installed; with the reason."""


@dataclass(frozen=True)
class Lane:
    """`python` is a minor version; `dependencies` are the pinned ones, or the newest that the package allows."""

    python: str
    dependencies: str

    @property
    def name(self) -> str:
        return f"{self.python} {self.dependencies}"

    @cached_property
    def program(self) -> Path:
        """The installed `kerf`. Raises LaneMissing."""
        folder = FOLDER / f"{self.python}-{self.dependencies}"
        if not (folder / "bin/python").exists():
            _done([_interpreter(self.python), "-m", "venv", str(folder)])
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        pinned = ["--constraint", str(ROOT / "constraints.txt")]
        newest = ["--upgrade", "--upgrade-strategy", "eager"]
        _done([*pip, *(pinned if self.dependencies == PINNED else newest), str(wheel())])
        _done([*pip, "--no-deps", "--force-reinstall", str(wheel())])  # also where the version is as before
        return folder / "bin/kerf"

    def run(self, case: Case, folder: Path) -> str:
        """Run a case in a folder with the files of `cases`; what is wrong with it, empty when it is right."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        command = [str(self.program.with_name(case.program)), *case.arguments]
        done = subprocess.run(
            command, cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        if done.returncode not in case.codes:
            return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        if "Traceback" in done.stderr:
            return f"a traceback: {done.stderr.strip()[-300:]}"
        try:
            case.check(done.stdout)
        except Exception as error:  # whatever the parser of the format raises
            return f"{type(error).__name__}: {error}: {done.stdout[:200]!r}"
        return ""


def wheel() -> Path:
    """The wheel of the sources, built once for each state of them."""
    sources = [path for part in ("api", "reconciler", "webhook") for path in (ROOT / part).rglob("*") if path.is_file()]
    built = [path for path in sources if "__pycache__" not in path.parts]
    folder = FOLDER / "wheels" / fingerprint(sorted([*built, ROOT / "pyproject.toml"]))
    if not list(folder.glob("*.whl")):
        pip = [_interpreter(PYTHONS[0]), "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        _done([*pip, "--wheel-dir", str(folder), str(ROOT)])
    return next(folder.glob("*.whl"))


def _interpreter(version: str) -> str:
    """The path of a Python that works. Raises LaneMissing."""
    candidates: list[str | None] = [
        which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ]
    for found in filter(None, candidates):
        asked = [found, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == version:
            return found
    raise LaneMissing(f"there is no Python {version}")


def _done(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS, cwd="/")
    if done.returncode:
        raise LaneMissing(f"{' '.join(command[:6])} …: {done.stderr.strip()[-300:]}")
