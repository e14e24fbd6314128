"""The guides in docs/ as plays: their files are written, their commands run, and what these print takes its place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.sources import python_path

_BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.yaml)\n(.*)", re.DOTALL)


def files(text: str) -> dict[str, str]:
    """The files that a guide shows: blocks of YAML whose first line is a comment with the name."""
    found = (_FILE.fullmatch(body) for language, body in _BLOCK.findall(text) if language == "yaml")
    return {file[1]: file[2] for file in found if file}


def played(text: str, folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """The guide with what its commands print in a folder now, one after the other; `kerf` is of these sources."""
    programs = folder.parent / "programs"
    programs.mkdir()
    kerf = programs / "kerf"
    kerf.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kerf.cli.main "$@"\n')
    kerf.chmod(0o755)
    own = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": python_path(), **(variables or {})}

    def block(found: re.Match[str]) -> str:
        language, body = found[1], found[2]
        if language == "yaml":
            if file := _FILE.fullmatch(body):
                (folder / file[1]).parent.mkdir(parents=True, exist_ok=True)
                (folder / file[1]).write_text(file[2])
            return found[0]
        lines = []
        for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
            done = subprocess.run(
                ["/bin/sh", "-c", f"({command}) 2>&1"],
                cwd=folder,
                env=os.environ | own,
                capture_output=True,
                text=True,
                check=False,
            )
            lines += [f"$ {command}\n", done.stdout.replace(str(folder), "…")]
        return f"```console\n{''.join(lines)}```"

    return _BLOCK.sub(block, text)
