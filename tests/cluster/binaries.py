"""Where the control plane's programs come from.

Kubernetes publishes its servers as Go modules, so `tools/go.mod` pins every one of them like any other dependency and
the Go toolchain builds them: minutes the first time, seconds when Go's build cache is warm. The result is kept in
`.cache/control-plane/<hash of what was asked for>/`. Set `KERF_CONTROL_PLANE_BIN` to a folder with the same programs
(another Kubernetes version, say) to use those instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.go_build import GoBuildFailed, NoToolchain, filled, fingerprint, go_build

TOOLS: Final = Path(__file__).resolve().parent / "tools"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "control-plane"
FOLDER_VARIABLE: Final = "KERF_CONTROL_PLANE_BIN"

PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "helm": "helm.sh/helm/v3/cmd/helm",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
#: Neither inlining nor debug information: it takes 40 % off the build, and tests that mostly wait do not miss it.
COMPILER_FLAGS: Final = "all=-l -dwarf=false"
_ANNOUNCED: Final = "building the Kubernetes {} control plane (about 5 minutes when nothing is cached)"


class ControlPlaneUnavailable(Exception):
    """There are no control plane programs on this machine; the message is one line that says why."""


def find_binaries(announce: Callable[[str], None] = print, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with all of `PACKAGES`' programs, building them first if need be.

    Raises ControlPlaneUnavailable when they are missing and cannot be built here.
    """
    chosen = environment.get(FOLDER_VARIABLE)
    if chosen:
        return _complete_folder(Path(chosen))
    modules = (TOOLS / "go.mod", TOOLS / "go.sum")
    folder = CACHE / fingerprint(modules, _linker_flags(), COMPILER_FLAGS, *PACKAGES)
    try:
        return filled(folder, _fill, lambda: announce(_ANNOUNCED.format(kubernetes_version())), environment)
    except NoToolchain:
        words = f"no Go toolchain to build the control plane with, and {FOLDER_VARIABLE} is unset"
        raise ControlPlaneUnavailable(words) from None


def kubernetes_version() -> str:
    """The Kubernetes version that `tools/go.mod` pins, such as `v1.36.3`."""
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (TOOLS / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ControlPlaneUnavailable(f"{TOOLS / 'go.mod'} does not pin k8s.io/kubernetes")
    return found.group(1)


def _complete_folder(folder: Path) -> Path:
    missing = [name for name in PACKAGES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ControlPlaneUnavailable(f"{FOLDER_VARIABLE}={folder} has no {', '.join(missing)}")
    return folder.resolve()


def _linker_flags() -> str:
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    # Without these a plainly built API server calls itself v0.0.0, and Helm charts refuse to install on that.
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items()]
    return " ".join(["-s", "-w", *stamps])


def _fill(go: str, staging: Path) -> None:
    flags = ["-p", "2", "-trimpath", "-gcflags", COMPILER_FLAGS, "-ldflags", _linker_flags(), "-o", f"{staging}/"]
    try:
        go_build(go, [*flags, *PACKAGES.values()], TOOLS, {"CGO_ENABLED": "0"})
    except GoBuildFailed as failure:
        raise ControlPlaneUnavailable(f"go build of the control plane failed: {failure}") from None
    # Go names a program after its import path, and etcd's main package lies in a folder called "server".
    (staging / "server").rename(staging / "etcd")
