"""Kustomizations and charts of a folder, rendered by the tools made for them, and the files that go into them.

What is rendered is judged instead of the files that it is made of: these are no whole objects, or no YAML at all. A
kustomization that another one builds on is rendered as a part of that one. Nothing is rendered where a file and no
folder is given.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from kerf.cli.gathering import rendering_tools
from kerf.cli.gathering.origins import OfChart, OfKustomization, Part
from kerf.cli.gathering.rendering_tools import Failed, Runner
from kerf.cli.gathering.sources import CHART, KUSTOMIZATIONS, ToolMissing, is_inside
from kerf.manifests import documents, file_rules, regular
from kerf.manifests.checking import Content, File, Origin
from kerf.manifests.documents import LARGEST, Document
from kerf_api.lint import Severity

#: For the version that a chart may ask for: every build of Helm believes in another one.
KUBERNETES: Final = "1.36"
#: Where a kustomization names what it builds from, files or folders, and where it names what changes them.
_RESOURCES: Final = ("resources", "bases", "components", "crds")
_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What was rendered, by the name of its kustomization or chart; the files that went into it, by their real paths;
    the real paths of charts that were not rendered; and what is to be said where nothing was rendered."""

    contents: tuple[Content, ...] = ()
    consumed: frozenset[str] = frozenset()
    charts: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Kustomization:
    """A kustomization: its file, what it names, and whether it can be built by itself. Paths are real ones. `fault` is
    why it must not be built."""

    file: Path
    below: tuple[Path, ...]
    parts: tuple[Part, ...]
    whole: bool
    fault: str = ""


def render(folders: Mapping[str, str], mode: str, *, fetch: bool = False, root: str = "") -> Rendered:
    """Render what is in folders: real paths, each with the name under which it is shown.

    The tools fetch nothing from the network without `fetch`. Kustomizations must stay in the folder `root`; without
    one, in that of the repository, or else in the current one. Raises ToolMissing with `always`.
    """
    charts, found = _roots(folders, root, fetch) if mode != "never" else ([], {})
    kustomize, helm = _kustomize(), shutil.which("helm")
    missing = [f"{len(found)} kustomizations need kustomize or kubectl"] * bool(found and not kustomize)
    missing += [f"{len(charts)} charts need helm"] * bool(charts and not helm)
    if missing and mode == "always":
        raise ToolMissing(f"{' and '.join(missing)} on the PATH")
    rendering = _Rendering(folders, mode, Runner(fetch))
    for chart in charts if helm else ():
        rendering.chart(chart, helm or "")
    used = {path for known in found.values() for path in known.below}
    for folder, known in found.items() if kustomize else ():
        if known.whole and folder not in used:
            rendering.kustomization(folder, found, kustomize)
    note = f"not rendered: {' and '.join(missing)} on the PATH" if missing else ""
    left = [os.path.realpath(chart) for chart in charts]
    unrendered = tuple(chart for chart in left if os.path.join(chart, CHART) not in rendering.consumed)
    return Rendered(tuple(rendering.contents), frozenset(rendering.consumed), unrendered, note)


@dataclass(slots=True)
class _Rendering:
    """What has been rendered so far, and the real paths of the files that went into it."""

    folders: Mapping[str, str]
    mode: str
    runner: Runner
    contents: list[Content] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)
    #: Files that several kustomizations are made of are read once.
    files: dict[Path, File] = field(default_factory=dict)

    def chart(self, chart: Path, helm: str) -> None:
        """A chart with its default values."""
        command = [helm, "template", "release", str(chart), "--include-crds", f"--kube-version={KUBERNETES}"]
        shown, fault = _shown(chart, self.folders), rendering_tools.unsafe(chart, fetch=self.runner.fetch)
        self._add(os.path.join(shown, CHART), command, partial(OfChart, chart, shown), fault, lambda: chart.rglob("*"))

    def kustomization(self, folder: Path, found: Mapping[Path, _Kustomization], kustomize: Sequence[str]) -> None:
        """A kustomization with all that it builds on."""
        parts = list(_parts(folder, found))
        names = {part.path: _shown(part.path, self.folders) for part in parts}
        origin = partial(_same, OfKustomization(parts, names, self.files))
        fault = next(filter(None, (found[place].fault for place in _built(folder, found))), "")
        shown = _shown(found[folder].file, self.folders)
        real = (Path(os.path.realpath(part.path)) for part in parts)
        self._add(shown, [*kustomize, str(folder)], origin, fault, lambda: real)

    def _add(
        self,
        shown: str,
        command: Sequence[str],
        origin: Callable[[bytes], Origin],
        fault: str,
        files: Callable[[], Iterable[Path]],
    ) -> None:
        made = _content(shown, command, origin, self.mode, self.runner, fault)
        self.contents.append(made)
        if made.origin or self.mode == "always":
            self.consumed.update(map(str, files()))


def _kustomize() -> list[str]:
    if program := shutil.which("kustomize"):
        return [program, "build"]
    return [program, "kustomize"] if (program := shutil.which("kubectl")) else []


def _roots(folders: Mapping[str, str], root: str, fetch: bool) -> tuple[list[Path], dict[Path, _Kustomization]]:
    """The charts, and the kustomizations by their folders with all that they build on."""
    charts: list[Path] = []
    found: dict[Path, _Kustomization] = {}
    for folder in folders:
        around = root or _root(os.path.realpath(folder))
        for path, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if not name.startswith("."))
            if CHART in names:
                charts.append(Path(path))
                below.clear()
            elif any(name in names for name in KUSTOMIZATIONS):
                waiting = [Path(os.path.realpath(path))]
                while waiting:
                    place = waiting.pop()
                    if place not in found and (known := _read(place, around, fetch)) is not None:
                        found[place] = known
                        waiting += known.below
    return charts, found


def _root(folder: str) -> str:
    """The folder that a kustomization of a folder must stay in: that of the repository, or else the current one."""
    for place in (Path(folder), *Path(folder).parents):
        if os.path.lexists(place / ".git"):
            return str(place)
    here = os.path.realpath(os.curdir)
    return here if is_inside(folder, here) else folder


def _read(folder: Path, root: str, fetch: bool) -> _Kustomization | None:
    """Read a kustomization; what cannot be read is left to the tool's own words."""
    file = next((folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()), None)
    if file is None:
        return None
    if not is_inside(os.path.realpath(file), root):
        return _Kustomization(file, (), (), True, f"{file.name} is a link out of {root}; put a copy in its place")
    read = next(documents.read(regular.read(str(file), LARGEST)), None)
    about = read.node.value if isinstance(read, Document) and isinstance(read.node.value, dict) else {}
    named = [folder / name for field in _RESOURCES for name in _texts(about.get(field))]
    fault = "" if fetch or not (far := rendering_tools.remote(about, folder)) else _remote(far)
    outside = next((path for path in named if path.exists() and not is_inside(os.path.realpath(path), root)), None)
    if outside is not None:
        fault = f"{outside} leads out of {root}; run the command in a folder that contains both"
        named = []
    below = tuple(Path(os.path.realpath(path)) for path in named if path.is_dir())
    parts = [Part(path, False) for path in named if path.is_file()]
    patches = [folder / name for name in _patches(about)]
    parts += [Part(path, True) for path in patches if path.is_file() and is_inside(os.path.realpath(path), root)]
    whole = about.get("kind") != "Component"
    return _Kustomization(file, below, (Part(file, True), *parts), whole, fault)


def _remote(text: str) -> str:
    return f"it names {text}, which kustomize fetches from the network; add --fetch to allow it, or copy it here"


def _texts(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _patches(about: Mapping[str, Any]) -> Iterator[str]:
    for name in _PATCHES:
        entries = about.get(name)
        for entry in entries if isinstance(entries, list) else ():
            path = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str) and "\n" not in path:
                yield path


def _parts(folder: Path, found: Mapping[Path, _Kustomization]) -> Iterator[Part]:
    """The files of a kustomization and of all that it builds on, the nearest first."""
    for place in _built(folder, found):
        yield from found[place].parts


def _built(folder: Path, found: Mapping[Path, _Kustomization]) -> list[Path]:
    """The folders of a kustomization and of all that it builds on, the nearest first."""
    seen: dict[Path, None] = {}
    waiting = deque([folder])
    while waiting:
        place = waiting.popleft()
        if place not in seen and place in found:
            seen[place] = None
            waiting += found[place].below
    return list(seen)


def _same(origin: OfKustomization, _: bytes) -> Origin:
    return origin


def _shown(path: Path, folders: Mapping[str, str]) -> str:
    """The name under which a file or folder is shown."""
    for folder, shown in folders.items():
        if path.is_relative_to(folder):
            return os.path.normpath(Path(shown) / path.relative_to(folder))
    folder, shown = next(iter(folders.items()))
    return os.path.normpath(os.path.join(shown, os.path.relpath(path, folder)))


def _content(
    name: str, command: Sequence[str], origin: Callable[[bytes], Origin], mode: str, runner: Runner, fault: str
) -> Content:
    """What a tool prints, or its words when it fails: an error where everything has to be rendered."""
    severity: Severity = "error" if mode == "always" else "warning"
    try:
        if fault:
            raise Failed(fault)
        made = runner.run(command)
    except Failed as error:
        return Content(name, b"", str(error), file_rules.RENDER, severity)
    return Content(name, made, origin=origin(made))
