"""The `kerf` command. What runs in Git hooks and editors is quick: no framework is loaded, and no other verb."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Final

from kerf.cli.verbs import QUICK

#: Set by the shell that asks how a command line may go on.
_COMPLETING: Final = "_KERF_COMPLETE"


def main() -> None:
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb in QUICK and _COMPLETING not in os.environ:
        # Thousands of values live until the end; looking for rubbish among them would take as long as reading them.
        gc.disable()
        sys.exit(import_module(f"kerf.cli.verbs.{verb}").main(sys.argv[2:]))
    from kerf.cli.app import app

    app(prog_name="kerf")


if __name__ == "__main__":
    main()
