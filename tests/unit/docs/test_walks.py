"""docs/walks.md: each walk is short enough to be walked, and each of its stations is there."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests import references
from tests.sources import ROOT

TEXT: Final = (ROOT / "docs/walks.md").read_text(encoding="utf-8")
WALKS: Final = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n)*)", TEXT, re.MULTILINE))


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_has_twelve_stations_at_most_and_each_names_a_place(walk: str) -> None:
    stations = re.split(r"^\d+\. ", WALKS[walk], flags=re.MULTILINE)[1:]
    assert 6 < len(stations) <= 12
    assert [one for one in stations if not references.named(one)] == []


def test_there_are_three_walks() -> None:
    assert len(WALKS) == 3


@pytest.mark.parametrize("page", ["architecture", "restarts", "walks"])
def test_what_a_page_names_is_there(page: str) -> None:
    assert [*references.missing((ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "text", ["`runtime/nowhere.py`", "`runtime/controller.py:Controller.tock`", "`decide.py:Plan`", "`tests/no.py:a`"]
)
def test_what_is_not_there_is_found(text: str) -> None:
    assert [*references.missing(f"See {text}.")] == [text.strip("`")]


def test_methods_attributes_and_files_of_other_folders_are_found() -> None:
    there = "`model/snapshot.py:Snapshot.interruptions` `decide.py` `webhook/kerf_webhook/server.py:Options`"
    assert len(references.named(there)) == 3
    assert [*references.missing(there)] == []
