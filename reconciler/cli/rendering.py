"""Kustomizations and charts of a folder, rendered by the tools made for them, and the files that go into them.

What is rendered is judged instead of the files that it is made of: these are no whole objects, or no YAML at all. A
kustomization that another one builds on is rendered as a part of that one. Nothing is rendered where a file and no
folder is given.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from api.lint import Severity
from reconciler.cli import file_rules
from reconciler.cli.checking import Content, File, Origin
from reconciler.cli.origins import OfChart, OfKustomization, Part
from reconciler.cli.sources import CHART, KUSTOMIZATIONS, ToolMissing

#: For the version that a chart may ask for: every build of Helm believes in another one.
KUBERNETES: Final = "1.36"
_SECONDS: Final = 60
#: Where a kustomization names what it builds from, files or folders, and where it names what changes them.
_RESOURCES: Final = ("resources", "bases", "components", "crds")
_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What was rendered, by the name of its kustomization or chart; the files that went into it, by their real paths;
    and what is to be said where nothing was rendered."""

    contents: tuple[Content, ...] = ()
    consumed: frozenset[str] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Kustomization:
    """A kustomization: its file, what it names, and whether it can be built by itself. Paths are real ones."""

    file: Path
    below: tuple[Path, ...]
    parts: tuple[Part, ...]
    whole: bool


def render(folders: Mapping[str, str], mode: str) -> Rendered:
    """Render what is in folders: real paths, each with the name under which it is shown. Raises ToolMissing with
    `always`."""
    charts, found = _roots(folders) if mode != "never" else ([], {})
    kustomize, helm = _kustomize(), shutil.which("helm")
    missing = [f"{len(found)} kustomizations need kustomize or kubectl"] * bool(found and not kustomize)
    missing += [f"{len(charts)} charts need helm"] * bool(charts and not helm)
    if missing and mode == "always":
        raise ToolMissing(f"{' and '.join(missing)} on the PATH")
    contents: list[Content] = []
    consumed: set[str] = set()
    files: dict[Path, File] = {}
    for chart in charts if helm else ():
        command = [helm or "", "template", "release", str(chart), "--include-crds", f"--kube-version={KUBERNETES}"]
        shown = _shown(chart, folders)
        made = _content(os.path.join(shown, CHART), command, partial(OfChart, chart, shown), mode)
        contents.append(made)
        consumed.update(str(path) for path in (chart.rglob("*") if made.origin or mode == "always" else ()))
    used = {path for known in found.values() for path in known.below}
    for folder, known in found.items() if kustomize else ():
        if not known.whole or folder in used:
            continue
        parts = list(_parts(folder, found))
        names = {part.path: _shown(part.path, folders) for part in parts}
        origin = partial(_same, OfKustomization(parts, names, files))
        made = _content(_shown(known.file, folders), [*kustomize, str(folder)], origin, mode)
        contents.append(made)
        consumed.update(os.path.realpath(part.path) for part in (parts if made.origin or mode == "always" else ()))
    note = f"not rendered: {' and '.join(missing)} on the PATH" if missing else ""
    return Rendered(tuple(contents), frozenset(consumed), note)


def _kustomize() -> list[str]:
    if program := shutil.which("kustomize"):
        return [program, "build"]
    return [program, "kustomize"] if (program := shutil.which("kubectl")) else []


def _roots(folders: Mapping[str, str]) -> tuple[list[Path], dict[Path, _Kustomization]]:
    """The charts, and the kustomizations by their folders with all that they build on."""
    charts: list[Path] = []
    found: dict[Path, _Kustomization] = {}
    for folder in folders:
        for path, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if not name.startswith("."))
            if CHART in names:
                charts.append(Path(path))
                below.clear()
            elif any(name in names for name in KUSTOMIZATIONS):
                _read(Path(path), found)
    return charts, found


def _read(folder: Path, found: dict[Path, _Kustomization]) -> None:
    """Read a kustomization and all that it builds on; what cannot be read is left to the tool's own words."""
    folder = Path(os.path.realpath(folder))
    file = next((folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()), None)
    if file is None or folder in found:
        return
    try:
        about = yaml.safe_load(file.read_bytes())
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        about = None
    about = about if isinstance(about, dict) else {}
    named = [folder / name for field in _RESOURCES for name in _texts(about.get(field))]
    below = tuple(Path(os.path.realpath(path)) for path in named if path.is_dir())
    parts = [Part(path, False) for path in named if path.is_file()]
    parts += [Part(folder / name, True) for name in _patches(about) if (folder / name).is_file()]
    whole = about.get("kind") != "Component"
    found[folder] = _Kustomization(file, below, (Part(file, True), *parts), whole)
    for path in below:
        _read(path, found)


def _texts(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _patches(about: Mapping[str, Any]) -> Iterator[str]:
    for field in _PATCHES:
        for entry in about.get(field) or ():
            path = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str) and "\n" not in path:
                yield path


def _parts(folder: Path, found: Mapping[Path, _Kustomization]) -> Iterator[Part]:
    """The files of a kustomization and of all that it builds on, the nearest first."""
    seen: set[Path] = set()
    waiting = [folder]
    while waiting:
        place = waiting.pop(0)
        if place not in seen and place in found:
            seen.add(place)
            yield from found[place].parts
            waiting += found[place].below


def _same(origin: OfKustomization, _: bytes) -> Origin:
    return origin


def _shown(path: Path, folders: Mapping[str, str]) -> str:
    """The name under which a file or folder is shown."""
    for folder, shown in folders.items():
        if path.is_relative_to(folder):
            return os.path.normpath(Path(shown) / path.relative_to(folder))
    folder, shown = next(iter(folders.items()))
    return os.path.normpath(os.path.join(shown, os.path.relpath(path, folder)))


def _content(name: str, command: Sequence[str], origin: Callable[[bytes], Origin], mode: str) -> Content:
    """What a tool prints, or its words when it fails: an error where everything has to be rendered."""
    severity: Severity = "error" if mode == "always" else "warning"
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Content(name, b"", f"{command[0]} took longer than {_SECONDS} s", file_rules.RENDER, severity)
    if done.returncode:
        words = " ".join(done.stderr.decode("utf-8", "replace").split())
        words = words.removeprefix("Error: ").removeprefix("error: ")
        return Content(name, b"", words, file_rules.RENDER, severity)
    return Content(name, done.stdout, origin=origin(done.stdout))
