"""The documentation is a site, its links lead somewhere, and what it names in the repository is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.sources import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
#: Files and folders of the repository as documents name them: in backticks, from its root.
NAMED = re.compile(r"`((?:api|reconciler|webhook|manifests|charts|tests|benchmarks|docs)/[\w./*-]+)`")
#: The folders of the reconciler, with the folders in each.
ROOMS = {
    room.name: {inner.name for inner in room.iterdir() if (inner / "__init__.py").is_file()}
    for room in (ROOT / "reconciler/kerf").iterdir()
    if (room / "__init__.py").is_file()
}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")


def built(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Not with `--quiet`: then nothing is strict."""
    command = (
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(source / "mkdocs.yml"),
    )
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [*command, "--site-dir", str(site)], capture_output=True, text=True, check=False, env=environment
    )


def test_the_site_is_built_and_every_link_in_it_leads_somewhere(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in (tmp_path / "site").glob("*.html")} >= {
        page.stem for page in PAGES if page.parent.name == "docs"
    }
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 100_000


@pytest.mark.parametrize("wrong", ["[x](nowhere.md)", "[x](index.md#nowhere)", "[x](../README.md)"])
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Kerf\n\n{wrong}\n")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(config.partition("nav:\n-")[0])
    assert built(tmp_path, tmp_path / "site").returncode != 0


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_what_it_names_in_the_repository_is_there(page: Path) -> None:
    named = {name.rstrip("/.") for name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert [name for name in sorted(named) if not (ROOT / name).exists() and not list(ROOT.glob(name))] == []


def test_the_table_of_the_rooms_names_each_room_and_its_own_rooms() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \| .* \|(.*)\|$", text, re.MULTILINE)
    named = {room: set(re.findall(r"`(\w+)/`", own)) for room, own in rows}
    assert {room: inner for room, inner in named.items() if room in ROOMS} == ROOMS


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_line_of_a_page_stands_twice_in_a_row_and_no_table_has_two_heads(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    rules = [number for number, line in enumerate(lines) if re.fullmatch(r"\|(?:\s*:?-+:?\s*\|)+", line)]
    heads = [number for number in rules if number > 1 and lines[number - 2].startswith("|")]
    twice = [line for line, after in pairwise(lines) if line == after and line.startswith("|")]
    assert ([lines[number - 1] for number in heads], twice) == ([], [])
