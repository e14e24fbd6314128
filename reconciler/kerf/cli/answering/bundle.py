"""`kerf bundle`: one archive for support, without secrets."""

from __future__ import annotations

import os
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kerf.cli.arguments import Mistake
from kerf.cli.operating import debug_port
from kerf.cli.parser import Parser
from kerf.cli.terminal import say

_ABOUT: Final = """\
Save one archive for support: a snapshot of the cluster, the record of decisions, the status, the settings and the
versions of the controller. contents.txt in it lists the files, and those that are missing.

It has no Secrets, environment variables, commands or arguments of pods, and digests in place of user data. It has
names, labels and prices. Only its owner may read it (mode 0600).
"""
_EPILOG: Final = f"""\
{debug_port.WHERE.format(command="kerf bundle -o -")}

Exit codes: 0 saved; 1 saved, and something is missing; 2 the command is wrong, or the file cannot be written."""


def main(arguments: Sequence[str]) -> int:
    """Read the command line, gather, save; the exit code."""
    parser = Parser("kerf bundle", description=_ABOUT, epilog=_EPILOG, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the archive (.tar.gz); - is standard output"
    )
    parser.add_argument("--url", default="", help="the debug port; http://127.0.0.1:8082 by default, or DEBUG_PORT")
    usual = os.environ.get("RECORD_FOLDER", "")
    parser.add_argument(
        "--record", default=usual, metavar="FOLDER", help="the record, or s3://...; RECORD_FOLDER by default"
    )
    asked = parser.parse_args(arguments)
    from kerf.cli.answering import saved
    from kerf.cli.operating import bundling
    from kerf.cli.reports import escaping

    bundle = bundling.gathered(asked.url, asked.record, os.environ, _listed)
    try:
        saved.write(asked.output, bundle.archive())
    except OSError as error:
        escaping.complain(f"kerf bundle: {error}")
        return 2
    say(bundle.contents(), err=True, end="")
    return 1 if bundle.missing else 0


def _listed(folder: str) -> Sequence[Path]:
    """The files of a record. Raises OSError."""
    from kerf.cli.answering import records
    from kerf.runtime.recording.ring import parts

    if not records.is_address(folder):
        return parts(Path(folder))
    try:
        return records.found(folder)
    except Mistake as error:
        raise OSError(str(error).removeprefix(f"{folder}: ")) from error
