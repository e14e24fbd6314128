"""The demo as a picture of a terminal: `python -m tests.pictures.demo` writes it, from a real run."""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console

from kerf.cli.demonstration.demo import Demo
from kerf.cli.demonstration.screen import LineScreen
from kerf.cli.verbs.show import print_numbers
from tests.sources import ROOT

PICTURE: Final = ROOT / "docs/demo.svg"
COLUMNS: Final = 118
#: Each title of the SVG's elements has an ID of its own; it would change with every run.
_ID: Final = "kerf-demo"
#: The picture goes by the fonts of the reader's machine.
_FONTS: Final = re.compile(r"\s*@font-face \{[^}]*\}")


def console() -> Console:
    """A terminal that keeps what is printed, without a real one."""
    return Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )


def play(screen: Console) -> None:
    """Run the demo on it."""
    print_numbers(screen, Demo(LineScreen(screen, wrapped=True), pause_seconds=0).run())


def drawn(screen: Console) -> str:
    """What it shows, as SVG that refers to nothing elsewhere."""
    return _FONTS.sub("", screen.export_svg(title="kerf demo", unique_id=_ID, clear=False)).replace("Fira Code, ", "")


def write(path: Path = PICTURE) -> None:
    """Run the demo and draw it."""
    screen = console()
    play(screen)
    path.write_text(drawn(screen), encoding="utf-8")


if __name__ == "__main__":
    write()
    print(f"{PICTURE.relative_to(ROOT)} is written", file=sys.stderr)
