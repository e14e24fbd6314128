"""The build of the oracle: our program in the module of the control plane, with the plugins of its kube-scheduler.

The module pins the Kubernetes version, and shares its modules and Go's build cache with the control plane. The program
is kept in `.cache/oracle/<hash of its sources>/`. The first build takes minutes when Go's build cache is empty.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.binaries import COMPILER_FLAGS, TOOLS, ControlPlaneUnavailable
from tests.go_build import GoBuildFailed, NoToolchain, filled, fingerprint, go_build

PROGRAM: Final = "oracle"
SOURCES: Final = TOOLS / PROGRAM
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / PROGRAM


@dataclass(frozen=True, slots=True)
class Release:
    """A minor version of Kubernetes: the file with its modules, and the build tags for its Go API."""

    modules: str
    tags: str = ""


#: The newest one is that of the control plane. The oldest one shows the rules that changed since.
RELEASES: Final = {"1.34": Release("kubernetes-1.34.mod", "v134"), "1.36": Release("go.mod")}
NEWEST: Final = "1.36"
OLDEST: Final = "1.34"

_LINKER_FLAGS: Final = "-s -w"
_ANNOUNCED: Final = "building the oracle with the plugins of Kubernetes {} (minutes when nothing is cached)"


class OracleUnavailable(ControlPlaneUnavailable):
    """There is no oracle on this machine; the message is one line with the reason."""


def find_oracle(
    version: str = NEWEST,
    announce: Callable[[str], None] = print,
    environment: Mapping[str, str] = os.environ,
    cache: Path = CACHE,
) -> Path:
    """Return the program with the plugins of this Kubernetes version, and build it first if need be.

    Raises OracleUnavailable without a Go toolchain, or when the build fails.
    """
    if version not in RELEASES:
        raise OracleUnavailable(f"no oracle for Kubernetes {version}: the versions are {', '.join(sorted(RELEASES))}")
    release = RELEASES[version]
    modules = TOOLS / release.modules
    files = (modules, modules.with_suffix(".sum"), *sorted(SOURCES.glob("*.go")))
    folder = cache / fingerprint(files, COMPILER_FLAGS, _LINKER_FLAGS, release.tags)

    def fill(go: str, staging: Path) -> None:
        flags = ["-p", "2", "-trimpath", "-gcflags", COMPILER_FLAGS, "-ldflags", _LINKER_FLAGS, "-tags", release.tags]
        flags += [f"-modfile={release.modules}", "-o", str(staging / PROGRAM), f"./{PROGRAM}"]
        try:
            go_build(go, flags, TOOLS, {"CGO_ENABLED": "0"})
        except GoBuildFailed as failure:
            raise OracleUnavailable(f"go build of the oracle failed: {failure}") from None

    try:
        return filled(folder, fill, lambda: announce(_ANNOUNCED.format(version)), environment) / PROGRAM
    except NoToolchain:
        raise OracleUnavailable("no Go toolchain to build the oracle with") from None
