"""The completion of `kubectl kerf`: kubectl runs `kubectl_complete-kerf` with the words of the command line.

It prints a candidate to a line and then a directive of Cobra's: `:4` offers nothing else, `:0` files.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys


def main() -> None:
    """Print the candidates for the last word."""
    from kerf.cli.app import app

    words = sys.argv[1:] or [""]
    asked = {
        "_KERF_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(["kerf", *words]),
        "COMP_CWORD": str(len(words)),
    }
    os.environ.update(asked)
    answer = io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.suppress(SystemExit):
        app(prog_name="kerf")
    found = answer.getvalue().split()
    sys.stdout.write("".join(f"{word}\n" for word in [*found, ":4" if found else ":0"]))
