"""Misreadings of the kube-scheduler's rules, planted in the engine: each must show as a difference within some seeds.

python -m tests.oracle.hunt                        # all of them, one process for each
python -m tests.oracle.hunt "sidecar ports"        # one of them, in this process

A planted module is changed in memory when it is imported, so nothing of the engine is imported before.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Final

from tests.mutations.edits import Edit, changed
from tests.oracle.planted import MISREADINGS, Misreading
from tests.sources import ROOT, module_of

#: Each misreading must be found within so many seeds.
SEEDS: Final = 500


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> Any:
        """Compile the changed source; no cached bytecode."""
        return compile(self._text, self.path, "exec", dont_inherit=True)


class Planting(MetaPathFinder):
    """Finds the modules of some edits, with the edits applied."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        texts = changed(edits, ROOT)
        self._texts = {module_of(file): text for file, text in texts.items()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        text = self._texts.get(fullname)
        found = None if text is None else PathFinder.find_spec(fullname, path, target)
        if text is None or found is None or found.origin is None:
            return None
        loader = _Loader(fullname, found.origin, text)
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=loader)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every misreading is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.hunt", description="Hunt planted misreadings.")
    parser.add_argument("name", nargs="?", help="one misreading, in this process")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"number of seeds (default {SEEDS})")
    chosen = parser.parse_args(arguments)
    if chosen.name is not None:
        return hunted(next(one for one in MISREADINGS if one.name == chosen.name), chosen.seeds)
    missed = [one.name for one in MISREADINGS if _apart(one, chosen.seeds) != 0]
    print(f"{len(MISREADINGS) - len(missed)} of {len(MISREADINGS)} misreadings are found")
    return 1 if missed else 0


def _apart(one: Misreading, seeds: int) -> int:
    command = [sys.executable, "-m", "tests.oracle.hunt", one.name, "--seeds", str(seeds)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def hunted(one: Misreading, seeds: int) -> int:
    """0 when a seed has a difference that nothing explains."""
    sys.meta_path.insert(0, Planting(one.edits))
    from tests.oracle.campaign import tried
    from tests.oracle.client import Oracle

    with Oracle.started() as oracle:
        for seed in range(seeds):
            found = tried(seed, oracle)
            if found.unexplained:
                print(f"{one.name}: found by seed {seed}: {found.unexplained[0]}", flush=True)
                return 0
    print(f"{one.name}: NOT found within {seeds} seeds", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
