"""`kerf convert`: manifests of older versions rewritten for v1, with their comments, before a cluster is upgraded."""

from __future__ import annotations

import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from kerf.cli.parser import Parser
from kerf.cli.reports import escaping
from kerf.cli.terminal import plain

if TYPE_CHECKING:
    from kerf.cli.gathering.sources import Source
    from kerf.cli.rewriting.converting import Converted
    from kerf.manifests.checking import Content

_ABOUT: Final = """\
Rewrite Provisioners, AWSNodeTemplates and everything of v1beta1 as NodePools, EC2NodeClasses and NodeClaims of v1, and
old names in workloads. Comments and the order of fields stay. The command prints the new text, and problems on standard
error.

Give all manifests of one cluster together, because some things move from one object to another.
"""
_EXIT_CODES: Final = """\
Exit codes: 0 all is converted, or with --check nothing would change; 1 something cannot be converted, or with --check
something would change; 2 a file cannot be read, or the command is wrong.
"""
_STDIN: Final = "<stdin>"


def main(arguments: Sequence[str]) -> int:
    """Read the command line, convert the files, report the findings; the exit code."""
    asked = _parser().parse_args(arguments)
    from kerf.cli.gathering import sources
    from kerf.cli.rewriting import converting
    from kerf_api.conversion import Wish

    try:
        found = sources.find(asked.paths)
    except sources.NotFound as error:
        return _refused(str(error))
    if asked.in_place and any(source.name == _STDIN for source in found):
        return _refused("standard input cannot be changed in place")
    contents = list(sources.contents(found))
    files = converting.convert_files(contents, Wish(asked.role, asked.instance_profile))
    _tell(files)
    failed = _write(files, found, contents) if asked.in_place else []
    if asked.diff or not asked.in_place:
        shown = [file for file in files if file.whole and file not in failed] if asked.in_place else files
        sys.stdout.write("".join(_shown(shown, asked)))
    if failed or any(file.unreadable for file in files):
        return 2
    return int(any(not file.whole for file in files) or (asked.check and any(file.changed for file in files)))


def _refused(words: str) -> int:
    escaping.complain(f"kerf convert: {words}")
    return 2


def _parser() -> Parser:
    parser = Parser("kerf convert", description=_ABOUT, epilog=_EXIT_CODES, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, a pattern, or - for standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--in-place", action="store_true", help="write the files that can be converted whole")
    how.add_argument(
        "--check", action="store_true", help="only list the files that would change, and set the exit code"
    )
    parser.add_argument("--diff", action="store_true", help="print the changes as a unified diff")
    profile = parser.add_mutually_exclusive_group()
    role = "for EC2NodeClasses without an instance profile: the role of their nodes"
    profile.add_argument("--role", default="", metavar="NAME", help=role)
    profile.add_argument("--instance-profile", default="", metavar="NAME", help="the same, by an instance profile")
    return parser


def _tell(files: Sequence[Converted]) -> None:
    from kerf.cli.reports import formats

    colour = sys.stderr.isatty() and not plain()
    for file in files:
        for finding in file.findings:
            hint = finding.problem.hint.replace("| kerf validate -", "| kerf convert -")
            own = replace(finding, problem=replace(finding.problem, hint=hint))
            print(formats.line(own, colour), file=sys.stderr)


def _shown(files: Sequence[Converted], asked: Namespace) -> Iterator[str]:
    """What goes to standard output."""
    if asked.diff:
        for file in files:
            before, after = (text.splitlines(keepends=True) for text in (file.before, file.after))
            name = escaping.visible(file.name)
            yield from _whole_lines(unified_diff(before, after, name, name))
    elif asked.check:
        yield from (f"{escaping.name(file.name)}\n" for file in files if file.changed)
    else:
        texts = [file.after for file in files if file.after]
        yield "---\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts)


def _whole_lines(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _write(files: Sequence[Converted], found: Sequence[Source], contents: Sequence[Content]) -> list[Converted]:
    """Write what is whole, and say of every file that would change what was done; the files that cannot be written."""
    from kerf.cli.rewriting import replacing

    failed: list[Converted] = []
    for file, source, content in zip(files, found, contents, strict=True):
        done = ""
        if file.faulty:
            done = "left as it is; it cannot be converted whole"
        elif not file.whole:
            done = "left as it is, for something moves between it and a file that is left"
        elif file.changed:
            try:
                source.require_inside()
                mark = BOM_UTF8 if content.data.startswith(BOM_UTF8) else b""
                replacing.replace(source.name, content.data, mark + file.after.encode())
                done = "converted"
            except OSError as error:
                failed.append(file)
                done = f"cannot be written: {error.strerror}"
        if done:
            escaping.complain(f"{escaping.name(file.name)}: {done}")
    return failed
