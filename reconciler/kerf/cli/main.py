"""The `kerf` command. What runs in Git hooks and editors is quick: no framework is loaded, and no other verb."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Final

#: Verbs with a module of their name whose `main` reads the rest of the command line, and what they are for.
QUICK: Final[Mapping[str, str]] = {
    "validate": "Check the YAML of NodePools and node classes before a cluster sees it.",
    "explain": "What a rule is about, why, and how to mend what breaks it.",
    "default": "Print a manifest with every default filled in and marked.",
    "convert": "Rewrite manifests of older versions for v1, comments and all.",
    "schema": "Print the JSON Schema of a kind, for editors and kubeconform.",
}


def main() -> None:
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb in QUICK:
        # Thousands of values live until the end; looking for rubbish among them would take as long as reading them.
        gc.disable()
        sys.exit(import_module(f"kerf.cli.{verb}").main(sys.argv[2:]))
    from kerf.cli.app import app

    app()


if __name__ == "__main__":
    main()
