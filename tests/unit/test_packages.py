"""What is installed is all there is: the list of packages in pyproject.toml names every one of the tree."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_is_installed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("api", "reconciler", "webhook")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert set(listed) == there
