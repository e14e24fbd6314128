"""Flux's kustomize-controller, built from its Go module, and the definitions of the kinds that it works with.

`flux_tools/go.mod` pins the controller; it is a module of its own, so that the control plane is not built anew with it.
Its definitions and those of source-controller, which it watches, are taken out of their modules. The result is kept in
`.cache/flux/<hash of what was asked for>/`: built once, a few minutes when nothing is cached, seconds afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.go_build import (
    LINKER_FLAGS,
    GoBuildFailed,
    NoToolchain,
    build_programs,
    filled,
    fingerprint,
    go_output,
    module_folder,
)

from .binaries import COMPILER_FLAGS, ControlPlaneUnavailable

TOOLS: Final = Path(__file__).resolve().parent / "flux_tools"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "flux"
PROGRAM: Final = "kustomize-controller"
#: Where the program's folder has the definitions.
DEFINITIONS: Final = "crds"

_CONTROLLER: Final = "github.com/fluxcd/kustomize-controller"
#: Of this module only the definitions are read, so it is no dependency of ours: its version, and the hash of it.
_SOURCES: Final = "github.com/fluxcd/source-controller@v1.9.0"
_SOURCES_SUM: Final = "h1:5msg2yyjVYDULZos+2ve8MZzcSqTpusiXmrOeBhc9yY="
_MODULE_DEFINITIONS: Final = "config/crd/bases"
_ANNOUNCED: Final = "building Flux's kustomize-controller (a few minutes when nothing is cached)"


class FluxUnavailable(ControlPlaneUnavailable):
    """There is no kustomize-controller on this machine; the message is one line that says why."""


def find_flux(
    announce: Callable[[str], None] = print, environment: Mapping[str, str] = os.environ, cache: Path = CACHE
) -> Path:
    """Return the folder with `PROGRAM` and `DEFINITIONS`, making it first if need be. Raises FluxUnavailable."""
    modules = (TOOLS / name for name in ("go.mod", "go.sum"))
    folder = cache / fingerprint(modules, COMPILER_FLAGS, LINKER_FLAGS, _SOURCES, _SOURCES_SUM)
    try:
        return filled(folder, _fill, lambda: announce(_ANNOUNCED), environment)
    except NoToolchain:
        raise FluxUnavailable("no Go toolchain to build Flux's kustomize-controller with") from None


def _fill(go: str, staging: Path) -> None:
    try:
        build_programs(go, {PROGRAM: _CONTROLLER}, TOOLS, staging, COMPILER_FLAGS)
        modules = module_folder(go, TOOLS, _CONTROLLER), _sources_module(go)
    except GoBuildFailed as failure:
        raise FluxUnavailable(str(failure)) from None
    (staging / DEFINITIONS).mkdir()
    for module in modules:
        for path in sorted((module / _MODULE_DEFINITIONS).glob("*.yaml")):
            shutil.copyfile(path, staging / DEFINITIONS / path.name)


def _sources_module(go: str) -> Path:
    told = json.loads(go_output(go, TOOLS, "mod", "download", "-json", _SOURCES))
    if told["Sum"] != _SOURCES_SUM:
        raise FluxUnavailable(f"{_SOURCES} is not what it was: its hash is {told['Sum']}")
    return Path(told["Dir"])
