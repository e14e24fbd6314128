"""`kerf validate`: what the cluster would refuse, and what is unwise, reported before it is committed.

A Git hook runs this at every commit, so it starts quickly: the command line is read by the standard library, and
what checking needs is imported when there is something to check.
"""

from __future__ import annotations

import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kerf.cli.parser import Parser
from kerf.cli.terminal import plain

if TYPE_CHECKING:
    from kerf.manifests.checking import Report, Wish
    from kerf_api.lint import LintSettings

FORMATS: Final = ("text", "json", "sarif", "github", "gitlab", "junit")
RENDER: Final = ("auto", "never", "always")
_ABOUT: Final = """\
Check NodePools, EC2NodeClasses and the other kinds of Karpenter in YAML or JSON before a cluster sees them.

Every problem is reported with its file, line and column. Objects of other kinds are skipped and counted. A comment in
the file makes an exception: at the end of a line for that line, on a line of its own for the next key and its value

    # kerf:ignore KERF-NP-201 the reason
"""
_EXIT_CODES: Final = "Exit codes: 0 no error; 1 an error; 2 a file is not readable, or the command is invalid."


class Refused(Exception):
    """The command makes no sense, in words."""


def main(arguments: Sequence[str]) -> int:
    """Read the command line, check the files, report the findings; the exit code."""
    asked = _parser().parse_args(arguments)
    _leave_out("cel.cli")
    from kerf.cli.gathering import gathering, sources
    from kerf.cli.reports import escaping, formats
    from kerf.manifests import checking

    try:
        written = _written(asked.write)
        wish = checking.Wish(_rules(asked.ignore), asked.strict, _settings(asked.catalogue))
        if asked.changed_since:
            report = _changed(asked, wish)
        else:
            found = sources.find(asked.paths)
            report = checking.check(gathering.now(asked.paths, found, asked.render, _note, asked.fetch), wish, _known)
    except (Refused, sources.NotFound, sources.ToolMissing) as error:
        escaping.complain(f"kerf validate: {error}")
        return 2
    with suppress(BrokenPipeError):  # the reader may have seen enough; the other reports and the exit code stay
        sys.stdout.write(_told(report, asked))
    for path, form in written.items():
        try:
            sources.named(path).write(formats.FORMATS[form](report).encode())
        except OSError as error:
            escaping.complain(f"kerf validate: --write {form}={path}: {error.strerror}")
            return 2
    return 2 if report.unreadable else int(report.failed)


def _note(words: str) -> None:
    from kerf.cli.reports import escaping

    escaping.complain(f"kerf validate: {words}")


def _leave_out(module: str) -> None:
    """Let an import of this module find nothing: the CEL library's own command line brings a toolkit for terminals,
    and that takes as long as all the rest."""
    sys.modules.setdefault(module, ModuleType(module))


def _parser() -> Parser:
    parser = Parser(
        "kerf validate", description=_ABOUT, epilog=_EXIT_CODES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, a pattern, or - for standard input")
    parser.add_argument("--format", choices=FORMATS, default="text", help="format of the report (text)")
    write = "write the report to a file in another format, too; repeatable"
    parser.add_argument("--write", action="append", default=[], metavar="FORMAT=FILE", help=write)
    parser.add_argument("--strict", action="store_true", help="warnings fail, too")
    parser.add_argument("--ignore", action="append", default=[], metavar="RULE", help="leave out a rule; repeatable")
    render = (
        "whether kustomizations and charts of folders are rendered: where the tools are there (auto), or else refuse"
    )
    parser.add_argument("--render", choices=RENDER, default="auto", help=render)
    fetch = "let kustomize and Helm fetch from the network what a kustomization or chart names"
    parser.add_argument("--fetch", action="store_true", help=fetch)
    since = "only what differs from this commit of Git, and what the change means for nodes"
    parser.add_argument("--changed-since", default="", metavar="REF", help=since)
    catalogue = "instance types, as kerf catalogue prints them (default: those of us-east-1)"
    parser.add_argument("--catalogue", default="", metavar="FILE", help=catalogue)
    return parser


def _changed(asked: Namespace, wish: Wish) -> Report:
    """The report on what differs from a commit."""
    from kerf.cli.gathering import gathering, git, repository, since

    try:
        history = git.read(asked.paths, asked.changed_since)
        found = history.find(asked.paths)
        today = gathering.now(asked.paths, found, asked.render, _note, asked.fetch)
        with gathering.then(history, asked.paths, found, today, asked.render, asked.fetch) as earlier:
            return since.check(today, earlier, wish, _known)
    except repository.Refused as error:
        raise Refused(f"--changed-since {asked.changed_since}: {error}") from error


def _settings(path: str) -> LintSettings:
    from kerf.cli.gathering import sources
    from kerf_api.lint import LintSettings
    from kerf_api.lint.catalogue import read

    if not path:
        return LintSettings()
    try:
        return LintSettings(catalogue=read(sources.named(path).read()))
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"--catalogue {path}: {words}") from error


def _written(wanted: Sequence[str]) -> dict[str, str]:
    """The files to write, each with its format."""
    files = {}
    for text in wanted:
        form, _, path = text.partition("=")
        if form not in FORMATS or not path:
            raise Refused(f"--write {text}: write FORMAT=FILE, with one of {', '.join(FORMATS)}")
        files[path] = form
    return files


def _rules(names: Sequence[str]) -> frozenset[str]:
    """The rules to leave out. An unknown one is refused: it would silently leave out nothing."""
    from kerf.manifests import ignores

    known = _known() if names else frozenset()
    for name in names:
        if name.upper() not in known:
            hint = ignores.did_you_mean(name.upper(), known)
            raise Refused(f"--ignore {name}: there is no such rule" + (f"; {hint}" if hint else ""))
    return frozenset(name.upper() for name in names)


def _known() -> frozenset[str]:
    from kerf.manifests import file_rules

    return file_rules.known()


def _told(report: Report, asked: Namespace) -> str:
    from kerf.cli.reports import formats

    if asked.format == "text" and sys.stdout.isatty() and not plain():
        return formats.text(report, colour=True)
    return formats.FORMATS[asked.format](report)
