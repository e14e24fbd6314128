"""`python -m kerf_api.crds render DIR…`: write the CustomResourceDefinitions to folders, one file per kind.

The plain manifests and the chart both carry rendered copies, because `kubectl` and Helm read folders, not packages.
`--check` writes nothing and fails when a copy is missing or stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from . import FILES, file_name, kinds, text

HEADER: Final = (
    "# Rendered by `python -m kerf_api.crds render` from api/kerf_api/crds/{source}. Edit that file, not this one.\n"
)


def rendered() -> Mapping[str, str]:
    """File name to text, for every kind."""
    return {file_name(kind): HEADER.format(source=FILES[kind]) + _body(kind) for kind in kinds()}


def stale(folder: Path) -> tuple[str, ...]:
    """The names of the files in `folder` that are missing or differ from what `render` would write."""
    return tuple(name for name, body in rendered().items() if not _holds(folder / name, body))


def render(folder: Path) -> tuple[Path, ...]:
    """Write the files, making the folder when needed; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in rendered().items():
        (folder / name).write_text(body, encoding="utf-8")
    return tuple(folder / name for name in rendered())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m kerf_api.crds", description=__doc__)
    command = parser.add_subparsers(dest="command", required=True).add_parser("render", help="write the definitions")
    command.add_argument("folders", type=Path, nargs="+")
    command.add_argument("--check", action="store_true", help="write nothing; fail when a file is not current")
    options = parser.parse_args(arguments)
    if options.check:
        wrong = [(folder, name) for folder in options.folders for name in stale(folder)]
        for folder, name in wrong:
            print(f"{folder / name} is not current; run python -m kerf_api.crds render {folder}")
        return 1 if wrong else 0
    for folder in options.folders:
        for path in render(folder):
            print(path)
    return 0


def _body(kind: str) -> str:
    """The definition without the comment at its head, which speaks to those who edit the source."""
    lines = text(kind).splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return "".join(lines[start:])


def _holds(path: Path, body: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == body


if __name__ == "__main__":
    sys.exit(main())
