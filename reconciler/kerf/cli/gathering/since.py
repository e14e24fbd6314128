"""What a change of files makes wrong, and what it means for the cluster: the report of `--changed-since`.

All files are looked at, before and after, because objects depend on each other. The report has problems of objects that
differ; of the others, what was not found before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final

from kerf.cli.gathering.git import Earlier
from kerf.manifests import checking, documents
from kerf.manifests.checking import Content, File, Finding, Manifest, Report, Wish
from kerf.manifests.nodes import Place
from kerf_api import lint
from kerf_api.lint import Problem
from kerf_api.lint.differences.changes import Changes, Located, changes

#: Longer files are not compared line by line: that takes the square of their length.
_MOST_LINES: Final = 4000

_Placed = tuple[File, Manifest]


def check(contents: Iterable[Content], earlier: Earlier, wish: Wish, known: Callable[[], frozenset[str]]) -> Report:
    """The report on what has changed; `known` gives all rules that there are."""
    given = list(contents)
    files = [checking.read(content) for content in given]
    unchanged = [file for file in files if file.name not in earlier.changed]
    old_files = [*unchanged, *map(checking.read, earlier.contents)]
    new, old = _objects(files), _objects(old_files)
    made = changes(_located(old), _located(new), wish.settings)
    own = [[*problems, *_refused(index, new, old, made, wish)] for index, problems in enumerate(made.found)]
    report = checking.judge(files, wish, known, own)
    before = checking.judge(old_files, wish, known)
    touched = {(file.name, manifest.name) for i, (file, manifest) in enumerate(new) if i not in made.same}
    was = {_identity(finding) for finding in before.findings}
    kept = [
        finding
        for finding in report.findings
        if (finding.world or finding.file, finding.subject) in touched
        or (not finding.subject and finding.file in earlier.changed)
        or _identity(finding) not in was
    ]
    faulty = frozenset(file.name for file in files if file.findings)
    removed = [f for f in _removals(old, made, given, earlier, faulty) if f.problem.rule not in wish.left_out]
    return replace(
        report,
        findings=checking.once(sorted([*kept, *removed], key=lambda finding: (finding.file, finding.start))),
        subjects=tuple(s for s in report.subjects if (s.file, s.name) in touched),
        files=len(earlier.changed),
        skipped=sum(file.skipped for file in files if file.name in earlier.changed),
    )


def _objects(files: Sequence[File]) -> list[_Placed]:
    return [(file, manifest) for file in files for manifest in file.manifests]


def _located(placed: Sequence[_Placed]) -> list[Located]:
    return [Located(file.name, manifest.node.value) for file, manifest in placed]


def _refused(
    index: int, new: Sequence[_Placed], old: Sequence[_Placed], made: Changes, wish: Wish
) -> Iterator[Problem]:
    """What is sound by itself and no change that a cluster takes."""
    manifest = new[index][1]
    if index in made.same or index not in made.pairs or not manifest.ours:
        return
    value, was = manifest.node.value, old[made.pairs[index]][1].node.value
    alone = {(problem.rule, problem.steps) for problem in lint.validate(value, settings=wish.settings)}
    for problem in lint.validate(value, was, settings=wish.settings):
        if (problem.rule, problem.steps) not in alone:
            yield problem


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    return finding.file, finding.subject, finding.problem.rule, finding.problem.path


def _removals(
    old: Sequence[_Placed], made: Changes, now: Sequence[Content], earlier: Earlier, faulty: frozenset[str]
) -> Iterator[Finding]:
    """Problems of objects that are gone: at the line where they stood; in a file that is gone too, at the old one.

    A file that cannot be read now may well still hold them.
    """
    texts = {content.name: content.data for content in now}
    were = {content.name: content.data for content in earlier.contents}
    for (file, manifest), problems in zip(old, made.removed, strict=True):
        for problem in problems if file.name not in faulty else ():
            line = manifest.node.start.line if file.origin is None else 1
            if file.origin is None and file.name in texts:
                line = _line_now(were[file.name], texts[file.name], line)
            yield Finding(file.name, Place(line, 1), Place(line, 1), manifest.name, problem)


def _line_now(was: bytes, now: bytes, line: int) -> int:
    """The line of a text at which a line that it had stood, or would stand."""
    before, after = (documents.lines(text.decode("utf-8-sig", "replace")) for text in (was, now))
    if max(len(before), len(after)) > _MOST_LINES:
        return min(line, len(after))
    for _, first, last, place, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if first <= line - 1 < last:
            return min(place + 1 + (line - 1 - first if end - place == last - first else 0), len(after))
    return min(line, len(after))
