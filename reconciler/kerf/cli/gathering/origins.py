"""Where what was rendered comes from: for a problem of a rendered object the file and line of its source.

Objects are known again by their kind and name, fields by their path. Of several files that have a field, the one with
the value that was rendered is meant. Where the place is unknown, it is the first line of the kustomization or chart.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from kerf.cli.gathering.sources import is_inside
from kerf.manifests import checking, documents, regular
from kerf.manifests.checking import Content, File, Finding, Manifest
from kerf.manifests.nodes import Node, Place, locate, locate_key
from kerf_api.lint import Steps

#: Nothing but spaces up to the end of a line.
_REST = re.compile(r"[^\S\n]*+(?:\n|\Z)")
_VALUE = re.compile(r"\.Values\.([A-Za-z0-9_.]+)")
_SOURCE: Final = "# Source: "
_UNKNOWN: Final = object()
#: A text behind all others.
_LAST: Final = chr(0x10FFFF)


class Part(NamedTuple):
    """A file of a kustomization; a patch holds parts of objects."""

    path: Path
    is_patch: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A manifest, or a change of one, that may be where a field comes from. `line` is added to its lines."""

    file: File
    node: Node
    manifest: Manifest | None
    is_patch: bool
    before: Steps = ()
    line: int = 0


class OfKustomization:
    """The files of a kustomization, the nearest first, each with the name under which it is shown. `files` keeps what
    was read, for all kustomizations that build on it."""

    def __init__(self, parts: Sequence[Part], shown: Mapping[Path, str], files: dict[Path, File]) -> None:
        self._parts, self._shown, self._files = parts, shown, files
        self._candidates: list[_Candidate] | None = None

    def place(self, rendered: File, manifest: Manifest, finding: Finding) -> tuple[File, Finding, Manifest | None]:
        """The file, the place in it and the manifest there."""
        if self._candidates is None:
            self._candidates = [found for part in self._parts for found in self._read(part)]
        steps = finding.problem.steps
        depth, value = _reached(manifest.node, steps)
        missing = depth < len(steps)
        ranked = []
        for order, candidate in enumerate(self._candidates):
            if not _is_of(candidate, manifest):
                continue
            inner = steps[len(candidate.before) :]
            if steps[: len(candidate.before)] != candidate.before:
                continue
            reached, found = _reached(candidate.node, inner)
            far = reached + len(candidate.before)
            ranked.append((missing or found != value, -far, candidate.is_patch == missing, order))
        if not ranked:
            return rendered, replace(finding, start=Place(1, 1), end=Place(1, 1)), None
        best = self._candidates[min(ranked)[-1]]
        start, end = _located(best.node, steps[len(best.before) :], finding)
        if best.line:
            start, end = Place(start.line + best.line, 1), Place(end.line + best.line, 1)
        return best.file, replace(finding, file=best.file.name, start=start, end=end), best.manifest

    def _read(self, part: Part) -> Iterator[_Candidate]:
        if part.path not in self._files:
            self._files[part.path] = checking.read(
                Content(self._shown[part.path], regular.read(str(part.path), documents.LARGEST))
            )
        file = self._files[part.path]
        for document in file.documents:
            yield from _operations(file, document.node, 0)
            patches = document.node.below.get("patches")
            for entry in patches.below.values() if patches is not None else ():
                if (text := entry.below.get("patch")) is not None and isinstance(text.value, str):
                    inline = checking.read(Content(file.name, text.value.encode()))
                    line = text.start.line if text.style in ("|", ">") else text.start.line - 1
                    for inner in inline.documents:
                        yield from _operations(file, inner.node, line)
                    for manifest in inline.manifests:
                        yield _Candidate(file, manifest.node, manifest, True, line=line)
        for manifest in file.manifests:
            yield _Candidate(file, manifest.node, manifest, part.is_patch)


def _operations(file: File, node: Node, line: int) -> Iterator[_Candidate]:
    """The operations of a JSON patch, each as the value that it sets at its path; of what kind it is is not asked."""
    for operation in node.below.values() if isinstance(node.value, list) else ():
        path, value = operation.below.get("path"), operation.below.get("value")
        if path is not None and value is not None and isinstance(path.value, str):
            words = (word.replace("~1", "/").replace("~0", "~") for word in path.value.split("/")[1:])
            before = tuple(int(word) if word.isdecimal() else word for word in words)
            yield _Candidate(file, value, None, True, before, line)


def _is_of(candidate: _Candidate, rendered: Manifest) -> bool:
    """Whether it is about that object; a kustomization may put something before or behind names."""
    if candidate.manifest is None:
        return True
    kind, _, name = candidate.manifest.name.partition(" ")
    whole, _, full = rendered.name.partition(" ")
    return kind == whole and bool(name) and (full.startswith(name) or full.endswith(name))


class OfChart:
    """A chart's folder, the name under which it is shown, and what it was rendered to."""

    def __init__(self, folder: Path, shown: str, rendered: bytes) -> None:
        self._folder, self._shown = folder, shown
        rows = enumerate(documents.lines(rendered.decode("utf-8", "replace")), 1)
        self._sources = [(number, text) for number, text in rows if text.startswith(_SOURCE)]
        self._files: dict[str, tuple[File, list[str]]] = {}

    def place(self, rendered: File, manifest: Manifest, finding: Finding) -> tuple[File, Finding, Manifest | None]:
        """The template and the line in it; of a value that the template takes as it is, that value's own."""
        nowhere = rendered, replace(finding, start=Place(1, 1), end=Place(1, 1)), None
        name = self._template(manifest.node.start.line)
        # A template can print such a line of its own, with any path.
        if not name or not self._has(name):
            return nowhere
        file, lines = self._read(name, template=True)
        same = [m for m in file.manifests if m.name.split(" ")[0] == manifest.name.split(" ")[0]]
        source = next((m for m in same if m.name == manifest.name), same[0] if same else None)
        if source is None:
            return file, replace(finding, file=file.name, start=Place(1, 1), end=Place(1, 1)), None
        steps = finding.problem.steps
        depth, _ = _reached(source.node, steps)
        start, end = _located(source.node, steps, finding)
        near = lines[start.line - 1 : start.line + (depth < len(steps))]
        for value in _VALUE.findall("\n".join(near)):
            if (found := self._value(value, steps[depth:])) is not None:
                values, place = found
                return values, replace(finding, file=values.name, start=place[0], end=place[1]), None
        return file, replace(finding, file=file.name, start=start, end=end), source

    def _has(self, name: str) -> bool:
        path = self._folder / name
        return "\0" not in name and path.is_file() and is_inside(os.path.realpath(path), os.path.realpath(self._folder))

    def _template(self, line: int) -> str:
        """The template that an object was rendered from, within the chart; "" when it is not said."""
        index = bisect_right(self._sources, (line, _LAST))
        return self._sources[index - 1][1].removeprefix(_SOURCE).partition("/")[2].strip() if index else ""

    def _value(self, path: str, rest: Steps) -> tuple[File, tuple[Place, Place]] | None:
        if not self._has("values.yaml"):
            return None
        file, _ = self._read("values.yaml", template=False)
        wanted = path.split(".")
        for document in file.documents:
            if _reached(document.node, tuple(wanted))[0] == len(wanted):
                return file, locate(document.node, (*wanted, *rest))
        return None

    def _read(self, name: str, *, template: bool) -> tuple[File, list[str]]:
        if name not in self._files:
            text = regular.read(str(self._folder / name), documents.LARGEST).decode("utf-8", "replace")
            shown = os.path.join(self._shown, name)
            content = Content(shown, (_without_braces(text) if template else text).encode())
            self._files[name] = checking.read(content), text.split("\n")
        return self._files[name]


def _without_braces(text: str) -> str:
    """The text of a template with as many lines that is YAML: nothing for braces that stand alone on their lines, a
    word for others. Each character is read a fixed number of times."""
    parts: list[str] = []
    done = 0
    while (start := text.find("{{", done)) >= 0 and (end := text.find("}}", start + 2)) >= 0:
        end += 2
        between = text[done:start]
        begins = "\n" in between or not parts
        alone = begins and not between.rpartition("\n")[2].strip() and _REST.match(text, end) is not None
        parts += [between, text.count("\n", start, end) * "\n" if alone else "x"]
        done = end
    return "".join([*parts, text[done:]])


def _reached(node: Node, steps: Steps) -> tuple[int, Any]:
    """How many steps lead somewhere, and the value where they end; of a way that ends sooner no value."""
    for count, step in enumerate(steps):
        if step not in node.below:
            return count, _UNKNOWN
        node = node.below[step]
    return len(steps), node.value


def _located(node: Node, steps: Steps, finding: Finding) -> tuple[Place, Place]:
    if finding.problem.rule in checking.ABOUT_KEYS and (key := locate_key(node, steps)) is not None:
        return key
    return locate(node, steps)
