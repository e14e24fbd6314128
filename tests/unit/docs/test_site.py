"""What the pages of docs/ name in the repository exists, and their tables are whole."""

from __future__ import annotations

import re
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
