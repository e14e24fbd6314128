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


def test_modules_on_the_map_of_the_code_are_there() -> None:
    """The map names packages at the margin; below each, indented, its rooms and modules, and modules in a room."""
    drawn = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("```\napi/")[2].partition("\n```")[0]
    package, entry, named = ROOT, ROOT, list[Path]()
    for line in f"api/{drawn}".splitlines():
        if row := re.match(r"( {0,2})([\w/]+(?:\.py)?)(?: +[○●]|$)", line):
            package = package if row[1] else ROOT / row[2]
            entry = package / row[2] if row[1] else package
            named.append(entry)
        if entry.is_dir() and entry != package:
            named += [entry / module for module in re.findall(r"(?<![\w/])([\w/*]+\.py)\b", line)]
    assert len(named) > 30
    assert [path for path in named if not list(ROOT.glob(str(path.relative_to(ROOT))))] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_line_of_a_page_stands_twice_in_a_row_and_no_table_has_two_heads(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    rules = [number for number, line in enumerate(lines) if re.fullmatch(r"\|(?:\s*:?-+:?\s*\|)+", line)]
    heads = [number for number in rules if number > 1 and lines[number - 2].startswith("|")]
    twice = [line for line, after in pairwise(lines) if line == after and line.startswith("|")]
    assert ([lines[number - 1] for number in heads], twice) == ([], [])
