"""Scenarios: small worlds as YAML. Each file tells a story in steps, and after each step what must be true.

All the while the simulation's invariants hold, and at the end every pod that was made to leave runs again. Verbs and
expectations are in `story.py` and `sights.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.scenarios.story import Story

WORLDS = Path(__file__).parent / "worlds"
FILES = sorted(WORLDS.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(WORLDS).with_suffix("").as_posix())
def test_scenario(file: Path) -> None:
    first, *rest = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    story = Story(first.get("world"))
    for step in [{verb: given for verb, given in first.items() if verb != "world"}, *rest]:
        story.play(step)
    story.end()
