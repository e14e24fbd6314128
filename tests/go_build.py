"""Programs of others that Go builds from their modules: once, by one builder at a time, whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

#: Neither symbols nor debug information.
LINKER_FLAGS: Final = "-s -w"


class GoBuildFailed(Exception):
    """The toolchain could not build it; the message is the last line of what it said."""


class NoToolchain(Exception):
    """Go is not on the path."""


def fingerprint(files: Iterable[Path], *texts: str) -> str:
    """A hash of what is asked for: the contents of files, and texts such as flags; on machines of this kind."""
    asked_for = [path.read_bytes() for path in files]
    asked_for += [text.encode() for text in (*texts, platform.system(), platform.machine())]
    return hashlib.sha256(b"\0".join(asked_for)).hexdigest()[:16]


def filled(
    folder: Path, fill: Callable[[str, Path], None], announce: Callable[[], None], environment: Mapping[str, str]
) -> Path:
    """`folder`; if it is not there `fill` makes it, given the toolchain and where to. Raises NoToolchain."""
    if not folder.is_dir():
        go = shutil.which("go", path=environment.get("PATH", ""))
        if go is None:
            raise NoToolchain
        build_once(folder, partial(fill, go), announce)
    return folder


def build_once(folder: Path, build: Callable[[Path], None], announce: Callable[[], None]) -> None:
    """Make `folder` by letting `build` fill an empty one, unless another run made it while we waited for the lock."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
        announce()
        with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as temporary:
            staging = Path(temporary) / "bin"
            staging.mkdir()
            build(staging)
            # The rename is the moment the build counts: an interrupted one leaves no folder of that name.
            staging.rename(folder)


def go_build(
    go: str, arguments: Sequence[str], sources: Path, environment: Mapping[str, str], *, give_way: bool = False
) -> None:
    """Run `go build` in a module's folder; `give_way` to whatever else the machine does. Raises GoBuildFailed."""
    # The compilers are short-lived: collecting their garbage four times less often saves a quarter of their time.
    own = {"GOGC": "400", **os.environ, "GOWORK": "off", **environment}
    nice = shutil.which("nice") if give_way else None
    command = [*([nice] if nice else []), go, "build", "-mod=readonly", *arguments]
    built = subprocess.run(command, cwd=sources, env=own, stderr=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        lines = built.stderr.strip().splitlines() or [f"exit code {built.returncode}"]
        raise GoBuildFailed(lines[-1])


def build_programs(
    go: str, packages: Mapping[str, str], sources: Path, staging: Path, compiler_flags: str, *, tags: str = ""
) -> None:
    """Build each package as the program of that name in `staging`, without cgo. Raises GoBuildFailed with its name."""
    flags = ["-p", "2", "-trimpath", "-tags", tags, "-gcflags", compiler_flags, "-ldflags", LINKER_FLAGS]
    for name, package in packages.items():
        try:
            go_build(go, [*flags, "-o", str(staging / name), package], sources, {"CGO_ENABLED": "0"})
        except GoBuildFailed as failure:
            raise GoBuildFailed(f"go build of {name} failed: {failure}") from None


def go_output(go: str, sources: Path, *arguments: str) -> str:
    """Return the output of a command of Go in a module's folder. Raises GoBuildFailed."""
    done = subprocess.run([go, *arguments], cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise GoBuildFailed(f"go {' '.join(arguments)}: {lines[-1]}")
    return done.stdout.strip()


def module_folder(go: str, sources: Path, module: str) -> Path:
    """Return the folder of a module that the module in `sources` requires. Raises GoBuildFailed."""
    return Path(go_output(go, sources, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module))
