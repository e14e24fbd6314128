"""`kerf default`: a manifest as the cluster will keep it, with every default filled in and marked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from kerf.cli.parser import Parser

_ABOUT: Final = (
    "Print a manifest with every default filled in, each marked by the comment # default. "
    "Everything else in the file, comments too, stays as it is."
)


def main(arguments: Sequence[str]) -> int:
    """Print a file with its defaults; 2 when it cannot be read."""
    parser = Parser("kerf default", description=_ABOUT)
    parser.add_argument("file", metavar="FILE", help="a file, or - for standard input")
    asked = parser.parse_args(arguments)
    from kerf.cli.gathering import sources
    from kerf.cli.reports import escaping
    from kerf.cli.rewriting import filling
    from kerf.manifests.nodes import Unreadable

    source = sources.named(asked.file)
    try:
        text = filling.filled(source.read())
    except OSError as error:
        escaping.complain(f"kerf default: {asked.file}: {error.strerror}")
        return 2
    except Unreadable as error:
        place = f"{escaping.name(source.name)}:{error.place.line}:{error.place.column}"
        escaping.complain(f"{place}: error: {error.message}{f'; {error.hint}' if error.hint else ''}")
        return 2
    sys.stdout.write(text)
    return 0
