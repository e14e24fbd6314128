"""Where the tests get the image from, and how they run what is in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from image.player import PLATFORMS, Configuration, Image, ImageUnavailable, StepFailed, play
from image.recipe import ROOT

#: What the tests say the commit is.
REVISION: Final = "0123456789abcdef0123456789abcdef01234567-dirty"


def played(platform: str, announce: Callable[[str], None] = print) -> Image:
    """The image for a platform. Raises ImageUnavailable, and StepFailed for what is wrong with the Dockerfile."""
    return play(platform, {"REVISION": REVISION}, announce)


def find_images() -> None:
    """Play the image for all platforms, so that no test has to wait for it. Raises ImageUnavailable."""
    for platform in PLATFORMS:
        try:
            played(platform)
        except StepFailed as failure:
            if not _reaches_an_index():
                raise ImageUnavailable(f"pip reaches no package index: {failure}") from None
            # It is the Dockerfile's fault: the tests say so.
            return


def _reaches_an_index() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        asked = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", folder]
        wanted = ["--constraint", str(ROOT / "constraints.txt"), "packaging"]
        ran = subprocess.run([sys.executable, *asked, *wanted], capture_output=True, check=False)
        return ran.returncode == 0


@dataclass(frozen=True, slots=True)
class Container:
    """The image's files in a folder that cannot be written to, and how its program is run there.

    As root the program has the image's user; somebody else is not root, and has no right to write there either.
    """

    root: Path
    configuration: Configuration

    def command(self, *arguments: str) -> list[str]:
        """The command line that a container would have; the Python is named, for its path begins with the root."""
        entry_point = [str(self.root / part.lstrip("/")) for part in self.configuration.entry_point]
        return [str(self.root / "usr/local/bin/python3"), *entry_point, *arguments]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the image sets, and nothing of this machine's but where its stand-in for Python has its library."""
        own = self.configuration.environment
        path = ":".join(str(self.root / part.lstrip("/")) for part in own["PATH"].split(":"))
        library = {"LD_LIBRARY_PATH": str(self.root / "usr/local/lib"), "HOME": "/nonexistent"}
        return {**own, "PATH": path, **library, **(more or {})}

    def start(self, *arguments: str, folder: Path, more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the program in a folder."""
        user, group = (int(part) for part in self.configuration.user.split(":"))
        may_change = os.geteuid() == 0
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment(more),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=user if may_change else None,
            group=group if may_change else None,
            extra_groups=() if may_change else None,
        )

    def run(self, *arguments: str, folder: Path, more: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run it to its end, four minutes at most on a busy machine: the exit code, and what it said."""
        with self.start(*arguments, folder=folder, more=more) as process:
            try:
                said, _ = process.communicate(timeout=240)
            finally:
                process.kill()
            return process.returncode, said

    def files(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of everything that is there."""
        found = {}
        for path in self.root.rglob("*"):
            state = path.lstat()
            found[str(path.relative_to(self.root))] = (state.st_size, state.st_mtime_ns)
        return found
