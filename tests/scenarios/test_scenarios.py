"""Scenarios: small worlds as YAML. Each file tells a story in steps, and after each step what must be true.

All the while the simulation's invariants hold, and at the end every pod that was made to leave runs again. Verbs and
expectations are in `story.py` and `sights.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.scenarios.story import Story

FILES = sorted((Path(__file__).parent / "worlds").rglob("*.yaml"), key=lambda file: file.stem)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(file: Path) -> None:
    first, *rest = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    story = Story(first.get("world"))
    for step in [{verb: given for verb, given in first.items() if verb != "world"}, *rest]:
        story.play(step)
    story.end()


def test_worlds_have_names_of_their_own() -> None:
    assert len({file.stem for file in FILES}) == len(FILES)
