"""The CEL engine comes without its command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOOLKIT = ("cel.cli", "prompt_toolkit", "typer")


@pytest.mark.parametrize("module", ["kerf_api.cel_library", "kerf_api.lint", "kerf.runtime.proposer"])
def test_no_terminal_toolkit_is_imported_for_the_engine(module: str) -> None:
    code = f"import sys, {module}; print(sorted({set(TOOLKIT)} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_command_line_is_left_to_who_wants_it() -> None:
    code = "from kerf_api.cel_library import cel; import cel.cli; assert cel.cli.app; print(cel.evaluate('1 + 1'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"
