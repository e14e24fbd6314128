"""The guide's commands are run one after the other on the files that it shows, and print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
GUIDE: Final = ROOT / "docs" / "conversion.md"
_BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.yaml)\n(.*)", re.DOTALL)


def played(text: str, folder: Path) -> str:
    """The guide with what its commands print in an empty folder now."""
    (folder / "bin").mkdir()
    kerf = folder / "bin" / "kerf"
    kerf.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler.cli.main "$@"\n')
    kerf.chmod(0o755)
    environment = os.environ | {"PATH": f"{kerf.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def block(found: re.Match[str]) -> str:
        language, body = found[1], found[2]
        if language == "yaml":
            if file := _FILE.fullmatch(body):
                (folder / file[1]).parent.mkdir(exist_ok=True)
                (folder / file[1]).write_text(file[2])
            return found[0]
        lines = []
        for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
            done = subprocess.run(
                ["/bin/sh", "-c", f"({command}) 2>&1"], cwd=folder, env=environment, capture_output=True, text=True
            )
            lines += [f"$ {command}\n", done.stdout]
        return f"```console\n{''.join(lines)}```"

    return _BLOCK.sub(block, text)


def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert played(text, tmp_path) == text
    assert len(re.findall(r"^\$ kerf", text, re.MULTILINE)) >= 5
