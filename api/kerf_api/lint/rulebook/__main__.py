"""`python -m kerf_api.lint.rulebook FILE`: write the page of the rules; with `--check`, only say if it is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kerf_api.lint.rulebook.page import markdown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m kerf_api.lint.rulebook", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is not current")
    options = parser.parse_args(arguments)
    if not options.check:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(markdown(), encoding="utf-8")
    elif not options.file.is_file() or options.file.read_text(encoding="utf-8") != markdown():
        print(f"{options.file} is not current; run make manifests")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
