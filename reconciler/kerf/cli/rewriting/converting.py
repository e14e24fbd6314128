"""From files to files: every old manifest in them converted, the rest left to the letter.

Pure. All files are converted together, because things move between objects. Findings are reported at their place in the
old file. A file with an error is not converted whole, and neither are those that share a move with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from kerf.cli.rewriting.rewriting import Sheet, Writer
from kerf.manifests import checking, documents, file_rules
from kerf.manifests.checking import Content, Finding, Manifest
from kerf.manifests.comments import Page
from kerf.manifests.documents import Document
from kerf.manifests.nodes import Place, Unreadable
from kerf_api.conversion import Conversion, Draft, Origin, Wish, convert
from kerf_api.lint import Problem

_DIVIDER: Final = "---"
_BY_HAND: Final = ", and write the template by hand"


@dataclass(frozen=True, slots=True)
class Converted:
    """A file before and after; `whole` when nothing that is old was left in it or in a file it is tied to."""

    name: str
    before: str
    after: str
    findings: tuple[Finding, ...]
    whole: bool

    @property
    def changed(self) -> bool:
        """Whether the file would change."""
        return self.before != self.after

    @property
    def faulty(self) -> bool:
        """Whether something in it cannot be converted, rather than in a file that it is tied to."""
        return any(finding.problem.severity == "error" for finding in self.findings)

    @property
    def unreadable(self) -> bool:
        """Whether some of it could not be looked at."""
        return any(finding.problem.rule in file_rules.UNREADABLE for finding in self.findings)


@dataclass(slots=True)
class _File:
    name: str
    text: str = ""
    found: list[tuple[Document, list[Manifest | None]]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Known:
    """All manifests of all files, each with its file, their indexes by identity, and what came of them."""

    manifests: Sequence[Manifest]
    files: Sequence[_File]
    numbers: Mapping[int, int]
    conversion: Conversion

    def number(self, manifest: Manifest) -> int:
        """The manifest's index."""
        return self.numbers[id(manifest)]

    def results(self, inside: Iterable[Manifest | None]) -> list[tuple[Draft, ...] | None]:
        """What takes the place of each of these, None for what stays."""
        return [self.conversion.results[self.number(m)] if m is not None else None for m in inside]


def convert_files(contents: Iterable[Content], wish: Wish) -> list[Converted]:
    """Every file, in the order given."""
    files = [_read(content) for content in contents]
    pairs = [(file, m) for file in files for _, inside in file.found for m in inside if m is not None]
    known = _Known(
        [manifest for _, manifest in pairs],
        [file for file, _ in pairs],
        {id(manifest): index for index, (_, manifest) in enumerate(pairs)},
        convert([manifest.node.value for _, manifest in pairs], wish, _twice(manifest for _, manifest in pairs)),
    )
    for index, problem in known.conversion.problems:
        known.files[index].findings += checking.placed(known.files[index].name, known.manifests[index], [problem])
    broken = _broken(files, known)
    texts = _texts(files, known)
    return [
        Converted(file.name, file.text, text, tuple(sorted(file.findings, key=_order)), file.name not in broken)
        for file, text in zip(files, texts, strict=True)
    ]


def _order(finding: Finding) -> tuple[Place, str, str]:
    return finding.start, finding.problem.rule, finding.problem.message


def _read(content: Content) -> _File:
    file = _File(content.name)
    if content.fault:
        file.findings.append(checking.unread(content))
        return file
    for found in documents.read(content.data):
        if isinstance(found, Unreadable):
            hint = f"{found.hint}{_BY_HAND}" if found.hint.endswith(" | kerf validate -") else found.hint
            failure = Unreadable(found.rule, found.place, found.message, hint)
            file.findings.append(checking.unreadable(content.name, failure))
        else:
            file.found.append((found, list(checking.objects(found))))
    with suppress(Unreadable):  # which is reported already
        file.text = documents.decoded(content.data)
    return file


def _twice(manifests: Iterable[Manifest]) -> dict[int, Problem]:
    """By index, the key that a manifest has twice: it is unknown which of the two is meant."""
    return {
        index: problem
        for index, manifest in enumerate(manifests)
        for _, problem in checking.oddities(manifest)
        if problem.rule == file_rules.TWICE
    }


def _broken(files: Sequence[_File], known: _Known) -> set[str]:
    """The files with an error, and those that are tied to one of them."""
    broken = {f.name for f in files if any(finding.problem.severity == "error" for finding in f.findings)}
    groups = [{known.files[index].name for index in tie} for tie in known.conversion.ties]
    while more := [group for group in groups if group & broken and not group <= broken]:
        broken |= more[0]
    return broken


def _texts(files: Sequence[_File], known: _Known) -> Iterator[str]:
    """The new text of each file."""
    pages: list[Page] = []
    sheets: dict[int, Sheet] = {}
    drafts: dict[int, list[Draft]] = {}
    by_file: list[list[tuple[Document, int]]] = []
    is_json: list[bool] = []
    for file in files:
        by_file.append([])
        lines = documents.lines(file.text)
        is_json.append(_is_json(file.text))
        for document, inside in file.found:
            results = known.results(inside)
            if is_json[-1] or all(result is None for result in results):
                continue
            number = len(pages)
            pages.append(Page(document.node, lines))
            for manifest in inside:
                if manifest is not None:
                    sheets[known.number(manifest)] = Sheet(number, manifest.prefix)
            root = -1 - number
            sheets[root] = Sheet(number, ())
            drafts[number] = _of_document(document, root, results)
            by_file[-1].append((document, number))
    written = _written(pages, sheets, drafts)
    for file, found, is_whole in zip(files, by_file, is_json, strict=True):
        if is_whole:
            yield _json(file, known)
        else:
            yield _assembled(file.text, [(pages[number], written[number]) for _, number in found])


def _is_json(text: str) -> bool:
    """Whether a file is JSON: one value after the other, and not YAML in braces, which may have comments."""
    reader, place = json.JSONDecoder(), documents.content(text, 0)
    try:
        while text.startswith(("{", "["), place):
            place = documents.content(text, reader.raw_decode(text, place)[1])
    except (ValueError, RecursionError):
        return False
    return place == len(text) and not text.isspace() and bool(text)


def _of_document(document: Document, root: int, results: Sequence[tuple[Draft, ...] | None]) -> list[Draft]:
    """The objects that take the place of a document: one or more, or a list with others in it."""
    value = document.node.value
    if not (
        "items" in document.node.below and isinstance(value["items"], list) and len(results) == len(value["items"])
    ):
        return [*chain.from_iterable(result for result in results if result is not None)]
    whole = Draft(value, Origin(root, ()))
    if value["kind"] != "List":  # ProvisionerList and the like, of which there are none for objects of two kinds
        whole.put(("apiVersion",), "v1", Origin(root, ("apiVersion",)))
        whole.put(("kind",), "List", Origin(root, ("kind",)))
    items: list[tuple[int, Draft | None]] = []
    for index, result in enumerate(results):
        items += [(index, draft) for draft in result] if result is not None else [(index, None)]
    values = [draft.values if draft is not None else value["items"][index] for index, draft in items]
    whole.put(("items",), values, Origin(root, ("items",)))
    for place, (index, draft) in enumerate(items):
        whole.trace(("items", place), Origin(root, ("items", index)))
        for steps, origins in draft.traced() if draft is not None else ():
            if steps:
                whole.trace(("items", place, *steps), *origins)
    return [whole]


def _written(
    pages: Sequence[Page], sheets: Mapping[int, Sheet], drafts: Mapping[int, Sequence[Draft]]
) -> dict[int, list[list[str]]]:
    """The lines of each object. What leans on anchors that are elsewhere now is written out."""
    written = Writer(pages, sheets).write(drafts)
    amiss = [number for number, found in written.items() if not _says(found, drafts[number])]
    if amiss:
        plain = Writer(pages, sheets, plain=True).write(drafts)
        written |= {number: plain[number] for number in amiss}
        for number in amiss:
            if not _says(plain[number], drafts[number]):
                raise AssertionError(f"the new text has another meaning than {drafts[number][0].values}")
    return written


def _says(texts: Sequence[Sequence[str]], drafts: Sequence[Draft]) -> bool:
    """Whether these lines, read again, are the objects."""
    read = list(
        documents.read(f"{_DIVIDER}\n".join("".join(f"{line}\n" for line in lines) for lines in texts).encode())
    )
    return [repr(d.node.value) for d in read if isinstance(d, Document)] == [repr(draft.values) for draft in drafts]


def _assembled(text: str, written: Sequence[tuple[Page, Sequence[Sequence[str]]]]) -> str:
    """A file's text with other lines in the place of some documents."""
    if not written:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    kept = text.splitlines(keepends=True)
    parts: list[str] = []
    done = 0
    for page, found in written:
        parts += kept[done : page.first - 1]
        for number, lines in enumerate(found):
            divided = number > 0 or page.lines[page.first - 1].startswith(_DIVIDER)
            parts += [f"{_DIVIDER}{newline}"] if divided else []
            parts += [line + newline for line in lines]
        done = page.last
    return "".join([*parts, *kept[done:]])


def _json(file: _File, known: _Known) -> str:
    """A file of JSON with its objects converted, in the same number of values."""
    texts: list[str] = []
    if all(all(r is None for r in known.results(inside)) for _, inside in file.found):
        return file.text
    for document, inside in file.found:
        results = known.results(inside)
        if all(result is None for result in results):
            values = [document.node.value]
        else:
            values = [draft.values for draft in _of_document(document, 0, results)]
        whole: Any = {"apiVersion": "v1", "kind": "List", "items": values} if len(values) > 1 else values[0]
        indent = None if len(file.text.strip().splitlines()) == 1 else _indent(file.text)
        texts.append(json.dumps(whole, indent=indent, ensure_ascii=False) + "\n")
    return "".join(texts)


def _indent(text: str) -> int:
    """How far a file of JSON indents what lies within."""
    return next((len(line) - len(line.lstrip()) for line in text.splitlines() if line[:1] == " "), 2)
