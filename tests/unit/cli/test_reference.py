"""The pages of docs/reference that are rendered from the code are current."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from kerf.cli.pages.reference import PAGES, settings_page
from kerf.runtime.settings.options import Options

REFERENCE = Path(__file__).parents[3] / "docs/reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == PAGES[name](), "run make manifests"


def test_every_setting_is_compared_with_karpenters() -> None:
    rows = [line.split(" | ") for line in settings_page().splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `") for row in rows} == {option.metadata["env"] for option in fields(Options)}
    ends = [row[3].removesuffix(" |") for row in rows]
    assert all(end in ("same", "Kerf's own") or end.startswith("different: ") for end in ends)
