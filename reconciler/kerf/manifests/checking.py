"""From files to findings: every manifest of ours in them, validated by itself and beside the others, with places.

Pure. Objects of other kinds are counted and not judged by themselves, so that whole repositories, chart releases and
clusters' exports can be given as they are; what ours say about each other may depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from kerf.manifests import documents, file_rules, ignores, ours, worlds
from kerf.manifests.documents import Document
from kerf.manifests.nodes import Node, Place, Unreadable, locate, locate_key
from kerf.manifests.ours import is_ours, mentions_ours
from kerf.manifests.unreplaced import placeholders_of
from kerf_api import lint
from kerf_api.lint import LintSettings, Problem, Severity, Steps
from kerf_api.lint.problem import RANK, shown
from kerf_api.lint.reading import placeholders

#: Rules whose complaint is about the key rather than the value.
ABOUT_KEYS: Final = ("KERF-SCHEMA-UNKNOWN", "KERF-SCHEMA-KEY")


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and where it is shown; `subject` is the manifest, such as `NodePool default`, "" for a whole file.
    `world` names the kustomization or chart that was rendered to find it, "" where nothing was."""

    file: str
    start: Place
    end: Place
    subject: str
    problem: Problem
    world: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A manifest that was looked at: its file, its first line, and what it is."""

    file: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it all; findings in the order of files and lines. `failing` are the severities that fail a run."""

    findings: tuple[Finding, ...]
    subjects: tuple[Subject, ...]
    files: int
    skipped: int
    failing: frozenset[str]

    def count(self, severity: str) -> int:
        """How many findings have this severity."""
        return sum(finding.problem.severity == severity for finding in self.findings)

    @property
    def failed(self) -> bool:
        """Whether something was found that fails the run."""
        return any(finding.problem.severity in self.failing for finding in self.findings)

    @property
    def unreadable(self) -> bool:
        """Whether some of the files could not be looked at."""
        rules = (f.problem.rule for f in self.findings if f.problem.severity == "error")
        return any(rule in file_rules.UNREADABLE for rule in rules)


@dataclass(slots=True)
class File:
    """A file that was read: its lines where they may hold exceptions, its documents, the manifests in them, what could
    not be read, and how many objects are not ours."""

    name: str
    lines: Sequence[str] = ()
    documents: list[Document] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    findings: list[_Told] = field(default_factory=list)
    skipped: int = 0
    origin: Origin | None = None


class Origin(Protocol):
    """Where the text of a file comes from that was rendered."""

    def place(self, rendered: File, manifest: Manifest, finding: Finding) -> tuple[File, Finding, Manifest | None]:
        """Of what was found of a rendered manifest the source file, the place in it, and what is there."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object in a document: at the root of it, or an item of a list; `ours` when it is for us to judge."""

    document: Document
    node: Node
    prefix: Steps
    name: str
    ours: bool


_Told = tuple[Finding, Manifest | None]


@dataclass(frozen=True, slots=True)
class Content:
    """A file's name with its bytes, or why there are none and the rule for that; what was rendered has an origin."""

    name: str
    data: bytes
    fault: str = ""
    rule: str = file_rules.READ
    severity: Severity = "error"
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for: rules whose problems are not reported, whether warnings fail the run, how the linter
    judges."""

    left_out: frozenset[str] = frozenset()
    strict: bool = False
    settings: LintSettings = field(default_factory=LintSettings)


def check(contents: Iterable[Content], wish: Wish, known: Callable[[], frozenset[str]]) -> Report:
    """Everything that is wrong; `known` gives all rules that there are, and is asked only when comments name some."""
    report = judge([read(content) for content in contents], wish, known)
    return replace(report, findings=once(report.findings))


def once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that several renderings of one file have in common, once."""
    return tuple({(f.file, f.start, f.subject, f.problem.rule, f.problem.message): f for f in findings}.values())


def judge(
    files: Sequence[File], wish: Wish, known: Callable[[], frozenset[str]], more: Sequence[Sequence[Problem]] = ()
) -> Report:
    """Everything that is wrong in files that were read. `more` are further problems, a list for each of the manifests
    in their order."""
    manifests = [(file, manifest) for file in files for manifest in file.manifests]
    together = _together(manifests, wish.settings)
    shown = list(files)
    told = {id(file): list(file.findings) for file in files}
    for (file, manifest), beside, own in zip(manifests, together, more or [()] * len(together), strict=True):
        alone = lint.validate(manifest.node.value, settings=wish.settings) if manifest.ours else ()
        problems = lint.ordered((*alone, *beside, *own))
        for finding in _findings(file.name, manifest, problems):
            source, there, written = _origin(file, manifest, finding)
            if id(source) not in told:
                shown.append(source)
                told[id(source)] = []
            told[id(source)].append((there, written))
    findings = [finding for file in shown for finding in _heeded(file, told[id(file)], known)]
    return Report(
        findings=tuple(finding for finding in findings if finding.problem.rule not in wish.left_out),
        subjects=tuple(Subject(f.name, m.node.start.line, m.name) for f, m in manifests if m.ours),
        files=len(files),
        skipped=sum(file.skipped for file in files),
        failing=frozenset(("error", "warning") if wish.strict else ("error",)),
    )


def _together(manifests: Sequence[tuple[File, Manifest]], settings: LintSettings) -> list[list[Problem]]:
    """The problems that manifests have with each other.

    What was rendered together is a world of its own, and so are folders that each have their own version of an object.
    """
    written = [(file.name, manifest.name) for file, manifest in manifests if manifest.ours and not file.origin]
    of_folder = worlds.of_folders(written)
    inside: dict[tuple[bool, str], list[int]] = {}
    for index, (file, _) in enumerate(manifests):
        world = file.name if file.origin else of_folder(file.name)
        inside.setdefault((file.origin is not None, world), []).append(index)
    found: list[list[Problem]] = [[] for _ in manifests]
    for indexes in inside.values():
        given = [manifests[index] for index in indexes]
        places = [f"{file.name}:{manifest.node.start.line}" for file, manifest in given]
        beside = lint.together([manifest.node.value for _, manifest in given], settings, places)
        for index, problems in zip(indexes, beside, strict=True):
            found[index] = problems
    return found


def _origin(file: File, manifest: Manifest, finding: Finding) -> tuple[File, Finding, Manifest | None]:
    if file.origin is None:
        return file, finding, manifest
    source, there, written = file.origin.place(file, manifest, finding)
    return source, replace(there, world=file.name), written


def read(content: Content) -> File:
    """A file's documents and the manifests in them, and what keeps others from being read."""
    file = File(content.name, origin=content.origin)
    if content.fault:
        file.findings.append((unread(content), None))
        return file
    if content.origin is None and ignores.WORD.encode() in content.data:
        file.lines = documents.lines(content.data.decode("utf-8-sig", "replace"))
    templates: set[str] = set()
    for found in documents.read(content.data):
        if isinstance(found, Document):
            file.documents.append(found)
            file.findings += [(_finding(content.name, node, "", p), None) for node, p in ours.misplaced(found.node)]
            inside = list(objects(found))
            file.manifests += [manifest for manifest in inside if manifest is not None]
            file.skipped += sum(manifest is None or not manifest.ours for manifest in inside)
            continue
        if found.rule != file_rules.TEMPLATE:
            file.findings.append((unreadable(content.name, found), None))
        elif not mentions_ours(content.data):
            file.skipped += 1
        elif found.hint not in templates:  # one for each system
            templates.add(found.hint)
            file.findings.append((unreadable(content.name, found), None))
    return file


def _finding(file: str, node: Node, subject: str, problem: Problem) -> Finding:
    return Finding(file, node.start, node.start, subject, problem)


def unread(content: Content) -> Finding:
    """That a file could not even be opened, or rendered."""
    verb = "rendered" if content.rule == file_rules.RENDER else "read"
    found = unreadable(content.name, Unreadable(content.rule, Place(1, 1), f"cannot be {verb}: {content.fault}"))
    return replace(found, problem=replace(found.problem, severity=content.severity))


def unreadable(name: str, failure: Unreadable, subject: str = "") -> Finding:
    """What keeps a file, or a document of it, from being looked at."""
    problem = Problem(failure.rule, "error", "", failure.message, failure.hint)
    return Finding(name, failure.place, failure.place, subject, problem)


def manifests(document: Document) -> list[Manifest]:
    """The manifests of a document that are ours."""
    return [manifest for manifest in objects(document) if manifest is not None and manifest.ours]


def objects(document: Document) -> Iterator[Manifest | None]:
    """The objects of a document, those of lists within lists too; None for what is none."""
    found: list[tuple[Node, Steps]] = [(document.node, ())]
    while found:
        node, prefix = found.pop()
        items = node.below.get("items")
        value = node.value if isinstance(node.value, dict) else {}
        if items is not None and isinstance(items.value, list) and str(value.get("kind")).endswith("List"):
            found += reversed([(item, (*prefix, "items", step)) for step, item in items.below.items()])
        else:
            yield _manifest(document, node, prefix)


def _manifest(document: Document, node: Node, prefix: Steps) -> Manifest | None:
    value = node.value
    ours = isinstance(value, dict) and is_ours(value.get("apiVersion"), value.get("kind"))
    if not isinstance(value, dict) or not (ours or isinstance(value.get("kind"), str)):
        return None
    metadata = value.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    kind = shown(value.get("kind"), quotes=False)
    return Manifest(document, node, prefix, f"{kind} {shown(name, quotes=False)}" if name else kind, ours)


def _findings(file: str, manifest: Manifest, problems: Iterable[Problem]) -> Iterator[Finding]:
    """A manifest's problems at their places, and what is odd about how it is written."""
    unreplaced = placeholders_of(manifest.node) if manifest.ours else ()
    yield from placed(file, manifest, (*problems, *unreplaced))
    for place, problem in oddities(manifest) if manifest.ours else ():
        yield Finding(file, place, place, manifest.name, problem)


def placed(file: str, manifest: Manifest, problems: Iterable[Problem]) -> Iterator[Finding]:
    """A manifest's problems at their places.

    All that is due to placeholders of one system is one finding. It is an error only where a cluster would refuse the
    text, for otherwise nothing keeps a tool from replacing it later.
    """
    systems: dict[str, Finding] = {}
    for problem in problems:  # the errors come first
        start, end = _located(manifest.node, problem)
        if found := placeholders.of(problem):
            template = unreadable(file, documents.placeholder(found, start), manifest.name)
            severity: Severity = "error" if problem.severity == "error" else "info"
            systems.setdefault(found.kind, replace(template, problem=replace(template.problem, severity=severity)))
        else:
            yield Finding(file, start, end, manifest.name, as_written(manifest.node, problem))
    yield from systems.values()


def oddities(manifest: Manifest) -> Iterator[tuple[Place, Problem]]:
    """What is odd about how a manifest is written, each with its place."""
    for oddity in manifest.document.oddities:
        if oddity.steps[: len(manifest.prefix)] == manifest.prefix:
            steps = oddity.steps[len(manifest.prefix) :]
            severity = file_rules.SEVERITIES[oddity.rule]
            path = lint.path_text(steps)
            yield oddity.place, Problem(oddity.rule, severity, path, oddity.message, oddity.hint, steps=steps)


def _located(node: Node, problem: Problem) -> tuple[Place, Place]:
    if problem.rule in ABOUT_KEYS:
        key = locate_key(node, problem.steps)
        if key is not None:
            return key
    return locate(node, problem.steps)


def as_written(node: Node, problem: Problem) -> Problem:
    """The problem in the words of the file: the author of `on` should not read about "true" in quotes."""
    for step in problem.steps:
        if step not in node.below:
            return problem
        node = node.below[step]
    word = node.word
    if problem.rule != "KERF-SCHEMA-TYPE" or not word or shown(problem.value) in (word, shown(None)):
        return problem
    message = f"{problem.message} (unquoted, {word} is read as {shown(problem.value)})"
    quoted = 'put it in quotes: "{}"'.format
    literal = problem.hint == quoted(shown(problem.value))
    return replace(problem, message=message, hint=quoted(word) if literal else problem.hint)


def _heeded(file: File, told: Sequence[_Told], known: Callable[[], frozenset[str]]) -> list[Finding]:
    """A file's findings without those that its comments except, and what is to be said of the comments."""
    findings = [finding for finding, _ in told]
    if file.lines:
        nodes = [document.node for document in file.documents]
        findings = list(_kept(file, told, ignores.comments(file.lines, nodes, known())))
    return sorted(findings, key=lambda f: (f.start, RANK[f.problem.severity], f.problem.rule, f.problem.message))


def _kept(file: File, told: Sequence[_Told], comments: ignores.Comments) -> Iterator[Finding]:
    used: set[ignores.Ignore] = set()
    exceptions = _Exceptions(file, comments.ignores)
    for finding, manifest in told:
        hits = [ignore for ignore in exceptions.near(finding, manifest) if finding.problem.rule in ignore.rules]
        used.update(hits)
        if not hits:
            yield finding
    unused = [ignore for ignore in comments.ignores if ignore not in used]
    # What could not be read may well have what an exception is for.
    readable = not any(finding.problem.rule in file_rules.UNREADABLE for finding, _ in told)
    for place, problem in (*comments.faults, *(ignores.unused(unused) if readable else ())):
        yield Finding(file.name, place, place, "", problem)


class _Exceptions:
    """The exceptions of a file, by their line and by the path in a document that they cover."""

    def __init__(self, file: File, found: Iterable[ignores.Ignore]) -> None:
        self._lines: dict[int, list[ignores.Ignore]] = {}
        self._paths: dict[int, dict[Steps, list[ignores.Ignore]]] = {}
        for ignore in found:
            self._lines.setdefault(ignore.line, []).append(ignore)
        for document in file.documents:
            paths = self._paths[id(document)] = {}
            for line, steps in ignores.outermost(document.node).items():
                inside = [ignore for ignore in self._lines.get(line, ()) if ignore.within]
                if inside:
                    paths[steps] = inside

    def near(self, finding: Finding, manifest: Manifest | None) -> list[ignores.Ignore]:
        """The exceptions that cover the place of a finding."""
        found = list(self._lines.get(finding.start.line, ()))
        paths = self._paths.get(id(manifest.document), {}) if manifest is not None else {}
        steps = (*manifest.prefix, *finding.problem.steps) if paths and manifest is not None else ()
        for depth in range(1, len(steps) + 1):
            found += paths.get(steps[:depth], ())
        return found
