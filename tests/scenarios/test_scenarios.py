"""Scenarios: small worlds as YAML. Each file tells a story in steps, and after each step what must be true.

All the while the simulation's invariants hold, and at the end every pod that was made to leave runs again. Verbs and
expectations are in `story.py` and `sights.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.scenarios.story import Story

WORLDS = Path(__file__).parent / "worlds"
FILES = sorted(WORLDS.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(WORLDS).with_suffix("").as_posix())
def test_scenario(file: Path) -> None:
    play(file)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_packed_cluster_stays_as_it_is_for_a_month() -> None:
    play(WORLDS / "consolidation" / "packed.yaml", idle="720h")


def play(file: Path, **instead: Any) -> None:
    """A world's story; `instead` is what other verbs are given than it says."""
    first, *rest = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    story = Story(first.get("world"))
    for step in [{verb: given for verb, given in first.items() if verb != "world"}, *rest]:
        story.play({verb: instead.get(verb, given) for verb, given in step.items()})
    story.end()
