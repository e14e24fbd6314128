"""Where the sources are: tests and benchmarks judge those beside them, whatever else is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: The folder of each package, below the root.
FOLDERS: Final = {"kerf_api": "api", "kerf": "reconciler", "kerf_webhook": "webhook"}


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for a process that uses the packages of a tree, from whatever folder it is started."""
    return os.pathsep.join(str(root / folder) for folder in FOLDERS.values())


def module_of(file: str) -> str:
    """The module that is imported from a file, given below the root: `kerf.decide` of `reconciler/kerf/decide.py`."""
    parts = Path(file).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] in FOLDERS.values() else parts)


def of_another_tree() -> list[str]:
    """The packages that this process would import from elsewhere."""
    found = {name: find_spec(name) for name in FOLDERS}
    return [name for name, spec in found.items() if spec is None or not Path(spec.origin or "").is_relative_to(ROOT)]
