"""The guide's commands are run one after the other on the files that it shows, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests import guides
from tests.sources import ROOT


def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "conversion.md").read_text(encoding="utf-8")
    (tmp_path / "guide").mkdir()
    assert guides.played(text, tmp_path / "guide") == text
    assert len(re.findall(r"^\$ kerf", text, re.MULTILINE)) >= 5
