"""What a build sees: the packages and what makes a wheel of them, and nothing that lies about."""

from __future__ import annotations

from pathlib import Path

import pytest

from image.context import files, patterns, seen
from image.recipe import ROOT

RULES = patterns((ROOT / ".dockerignore").read_text())


@pytest.mark.parametrize(
    ("path", "is_seen"),
    [
        ("pyproject.toml", True),
        ("api/kerf_api/crds/nodepools.yaml", True),
        ("reconciler/kerf/cli/demo.yaml", True),
        ("api/__pycache__/quantity.cpython-311.pyc", False),
        ("api/.env", False),
        ("kerf.egg-info/PKG-INFO", False),
        ("tests/conftest.py", False),
        ("docs/index.md", False),
        (".git/config", False),
        (".venv/bin/python", False),
        ("charts/kerf/values.yaml", False),
        ("terraform.tfstate", False),
    ],
)
def test_what_is_seen(path: str, is_seen: bool) -> None:
    assert seen(Path(path), RULES) is is_seen


def test_the_last_pattern_that_matches_counts() -> None:
    assert seen(Path("a/b"), ("*", "!a"))
    assert not seen(Path("a/b"), ("*", "!a", "**/b"))
    assert not seen(Path("a/b/c"), ("*", "!a", "**/b"))
    assert not seen(Path("b/a"), ("*", "!a"))


def test_a_pattern_that_is_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a/b"):
        patterns("a/b\n")


def test_every_file_of_the_packages_is_seen_and_little_else() -> None:
    found = set(files(ROOT))
    assert {path.parts[0] for path in found} == {
        "LICENSE",
        "README.md",
        "api",
        "constraints.txt",
        "pyproject.toml",
        "reconciler",
        "webhook",
    }
    assert Path("api/kerf_api/lint/instance_types.json") in found
    assert not [path for path in found if path.suffix == ".pyc"]
