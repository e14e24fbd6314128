"""Argo CD, built from its Go module, with what its repo-server runs: Kustomize, and a Redis.

`argocd_tools/go.mod` pins them; a module of its own, so that a change there does not build the control plane again. One
binary has all of Argo CD's programs, and is the one that its variable names. The definitions of its kinds come out of
the module. The result is kept in `.cache/argocd/<hash of what was asked for>/`: built once, in about five minutes when
nothing is cached.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.go_build import LINKER_FLAGS, GoBuildFailed, NoToolchain, build_programs, filled, fingerprint, module_folder

from .binaries import COMPILER_FLAGS, ControlPlaneUnavailable

TOOLS: Final = Path(__file__).resolve().parent / "argocd_tools"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "argocd"
ARGO_CD, KUSTOMIZE, REDIS = "argocd", "kustomize", "redis"
#: Where the folder has the definitions.
DEFINITIONS: Final = "crds"

_MODULE: Final = "github.com/argoproj/argo-cd/v3"
_PACKAGES: Final = {
    ARGO_CD: f"{_MODULE}/cmd",
    KUSTOMIZE: "sigs.k8s.io/kustomize/kustomize/v5",
    REDIS: "./redis",
}
_ANNOUNCED: Final = "building Argo CD (about five minutes when nothing is cached)"


class ArgoCdUnavailable(ControlPlaneUnavailable):
    """There is no Argo CD on this machine; the message is one line with the reason."""


def find_argocd(
    announce: Callable[[str], None] = print, environment: Mapping[str, str] = os.environ, cache: Path = CACHE
) -> Path:
    """Return the folder with the three programs and `DEFINITIONS`; build it if need be. Raises ArgoCdUnavailable."""
    sources = (TOOLS / "go.mod", TOOLS / "go.sum", *sorted(TOOLS.glob("redis/*.go")))
    folder = cache / fingerprint(sources, COMPILER_FLAGS, LINKER_FLAGS)
    try:
        return filled(folder, _fill, lambda: announce(_ANNOUNCED), environment)
    except NoToolchain:
        raise ArgoCdUnavailable("no Go toolchain to build Argo CD with") from None


def _fill(go: str, staging: Path) -> None:
    try:
        build_programs(go, _PACKAGES, TOOLS, staging, COMPILER_FLAGS)
        definitions = module_folder(go, TOOLS, _MODULE) / "manifests/crds"
    except GoBuildFailed as failure:
        raise ArgoCdUnavailable(str(failure)) from None
    (staging / DEFINITIONS).mkdir()
    for path in sorted(definitions.glob("*-crd.yaml")):
        shutil.copyfile(path, staging / DEFINITIONS / path.name)
