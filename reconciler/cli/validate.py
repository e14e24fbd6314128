"""`kerf validate`: what the cluster would refuse, and what is unwise, told before it is committed.

A Git hook runs this at every commit, so it starts quickly: the command line is read by the standard library, and
what checking needs is imported when there is something to check.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from api.lint import LintSettings
    from reconciler.cli.checking import Content, Report
    from reconciler.cli.sources import Source

FORMATS: Final = ("text", "json", "sarif", "github", "junit")
_ABOUT: Final = """\
Check NodePools, EC2NodeClasses and the other kinds of Karpenter in YAML or JSON before a cluster sees them.

Every problem is told with its file, line and column. Objects of other kinds are skipped and counted. A comment in the
file excepts one place: at the end of a line what is shown there, on a line of its own the next line's key and all in it

    # kerf:ignore KERF-NP-201 the reason
"""
_EXIT_CODES: Final = "Exit codes: 0 nothing is wrong; 1 something is; 2 a file cannot be read, or the command is wrong."


class Refused(Exception):
    """The command makes no sense, in words."""


def main(arguments: Sequence[str]) -> int:
    """Read the command line, check the files, tell what was found; the exit code."""
    asked = _parser().parse_args(arguments)
    _leave_out("cel.cli")
    from reconciler.cli import checking, sources

    try:
        wish = checking.Wish(_rules(asked.ignore), asked.strict, _settings(asked.catalogue))
        found = sources.find(asked.paths)
    except (Refused, sources.NotFound) as error:
        print(f"kerf validate: {error}", file=sys.stderr)
        return 2
    report = checking.check(_contents(found), wish, _known)
    sys.stdout.write(_told(report, asked))
    return 2 if report.unreadable else int(report.failed)


def _leave_out(module: str) -> None:
    """Let an import of this module find nothing: the CEL library's own command line brings a toolkit for terminals,
    and that takes as long as all the rest."""
    sys.modules.setdefault(module, ModuleType(module))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        "kerf validate", description=_ABOUT, epilog=_EXIT_CODES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, a pattern, or - for standard input")
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to tell it (text)")
    parser.add_argument("--strict", action="store_true", help="warnings fail, too")
    parser.add_argument("--ignore", action="append", default=[], metavar="RULE", help="leave out a rule; repeatable")
    catalogue = "instance types to judge by, as kerf catalogue prints them (us-east-1)"
    parser.add_argument("--catalogue", default="", metavar="FILE", help=catalogue)
    return parser


def _settings(path: str) -> LintSettings:
    from api.lint import LintSettings
    from api.lint.catalogue import read

    if not path:
        return LintSettings()
    try:
        return LintSettings(catalogue=read(Path(path).read_bytes()))
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"--catalogue {path}: {words}") from error


def _rules(names: Sequence[str]) -> frozenset[str]:
    """The rules to leave out. An unknown one is refused: it would silently leave out nothing."""
    from reconciler.cli import ignores

    known = _known() if names else frozenset()
    for name in names:
        if name.upper() not in known:
            hint = ignores.did_you_mean(name.upper(), known)
            raise Refused(f"--ignore {name}: there is no such rule" + (f"; {hint}" if hint else ""))
    return frozenset(name.upper() for name in names)


def _known() -> frozenset[str]:
    from reconciler.cli import file_rules

    return file_rules.known()


def _contents(found: Sequence[Source]) -> Iterator[Content]:
    from reconciler.cli.checking import Content

    for source in found:
        try:
            yield Content(source.name, source.read())
        except OSError as error:
            yield Content(source.name, b"", error.strerror or str(error))


def _told(report: Report, asked: Namespace) -> str:
    from reconciler.cli import formats

    if asked.format == "text" and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return formats.text(report, colour=True)
    return formats.FORMATS[asked.format](report)
